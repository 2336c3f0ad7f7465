//! Appends events at a fixed rate, round-robin over streams, without waiting for earlier appends (an open loop).
//!
//! Latency counts from the time an append was due, so a stall shows in every append that was due during it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use laneway_core::{Draft, Partition};
use tokio::task::JoinHandle;

use super::{Recorder, Stream};
use crate::{Failure, seam};

/// Later than that the clock's own grain does not explain it.
const LATE: Duration = Duration::from_millis(2);

/// The most appends in flight.
const OPEN_MAX: usize = 4_096;

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
    let mut open: VecDeque<JoinHandle<Result<(), Failure>>> = VecDeque::new();
    for (number, stream) in (0..).zip(streams.iter().cycle()) {
        let due: Instant = beats.tick().await.into();
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let now = seam::now();
        let begun = if now.duration_since(due) > LATE { due } else { now };
        open.push_back(seam::spawn(append(stream.clone(), draft(number)?, begun, recorder.clone())));
        while open.len() >= OPEN_MAX || open.front().is_some_and(JoinHandle::is_finished) {
            finish_first(&mut open).await?;
        }
    }
    while !open.is_empty() {
        finish_first(&mut open).await?;
    }
    Ok(())
}

async fn append(stream: Stream, draft: Draft, begun: Instant, recorder: Recorder) -> Result<(), Failure> {
    let partition = draft.key.as_ref().map_or(Partition(0), |key| key.partition(stream.partitions()));
    stream.append(partition.0, vec![draft]).await?;
    recorder.note(begun);
    Ok(())
}

async fn finish_first(open: &mut VecDeque<JoinHandle<Result<(), Failure>>>) -> Result<(), Failure> {
    match open.pop_front() {
        Some(first) => first.await?,
        None => Ok(()),
    }
}
