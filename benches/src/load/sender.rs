//! A client that appends one event at a time at a steady pace, to one stream after the other.
//!
//! A call that begins late because the one before was slow counts from when it should have begun: a stall is not one long
//! call but as many as it kept from beginning.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use laneway_core::{Draft, Partition};
use tokio::task::JoinHandle;

use super::{Recorder, Stream};
use crate::{Failure, seam};

/// Later than that the clock's own grain does not explain it.
const LATE: Duration = Duration::from_millis(2);

/// A running sender.
pub(crate) struct Sender {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Result<(), Failure>>,
}

impl Sender {
    /// Appends the event that `draft` makes of its number, every so often from now on.
    pub(crate) fn start(
        streams: Vec<Stream>,
        every: Duration,
        recorder: &Recorder,
        draft: impl FnMut(u64) -> Result<Draft, Failure> + Send + 'static,
    ) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let task = seam::spawn(send(streams, every, recorder.clone(), draft, Arc::clone(&stop)));
        Self { stop, task }
    }

    pub(crate) async fn stop(self) -> Result<(), Failure> {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await?
    }
}

async fn send(
    streams: Vec<Stream>,
    every: Duration,
    recorder: Recorder,
    mut draft: impl FnMut(u64) -> Result<Draft, Failure>,
    stop: Arc<AtomicBool>,
) -> Result<(), Failure> {
    let mut beats = seam::beats(every);
    for (number, stream) in (0..).zip(streams.iter().cycle()) {
        let due: Instant = beats.tick().await.into();
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let now = seam::now();
        let begun = if now.duration_since(due) > LATE { due } else { now };
        let draft = draft(number)?;
        let partition = draft.key.as_ref().map_or(Partition(0), |key| key.partition(stream.partitions()));
        stream.append(partition.0, vec![draft]).await?;
        recorder.note(begun);
    }
    Ok(())
}
