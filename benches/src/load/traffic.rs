//! A busy stream: large events, as fast as they go or at a rate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use laneway_core::{Draft, Kind};
use tokio::task::JoinHandle;

use super::{Stream, numbered_key};
use crate::{Failure, seam};

const MIB: usize = 1 << 20;
/// Events of one call, which carries one MiB.
const EVENTS: usize = 64;
/// Calls at a time when there is no rate.
const WRITERS: usize = 4;

/// Appends so many MiB as fast as they go.
pub(crate) async fn write_mib(stream: &Stream, mib: u64) -> Result<(), Failure> {
    let left = Arc::new(AtomicU64::new(mib));
    let writers: Vec<_> =
        (0..WRITERS).map(|_| seam::spawn(write_until(stream.clone(), Arc::clone(&left)))).collect();
    for writer in writers {
        writer.await??;
    }
    Ok(())
}

async fn write_until(stream: Stream, left: Arc<AtomicU64>) -> Result<(), Failure> {
    let payload = Bytes::from(vec![7; MIB / EVENTS]);
    while let Ok(before) = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |mib| mib.checked_sub(1)) {
        let partition = (before % u64::from(stream.partitions())) as u32;
        stream.append(partition, one_mib(&payload)?).await?;
    }
    Ok(())
}

fn one_mib(payload: &Bytes) -> Result<Vec<Draft>, Failure> {
    let one = |number| Ok(Draft::new(Some(numbered_key("busy", number)?), Kind::default(), payload.clone()));
    (0..EVENTS as u64).map(one).collect()
}

/// Traffic at a rate, until it is stopped.
pub(crate) struct Traffic {
    stop: Arc<AtomicBool>,
    mib: Arc<AtomicU64>,
    task: JoinHandle<Result<(), Failure>>,
}

impl Traffic {
    /// Appends so many MiB each second, one per call, to the partitions in turn. Falls behind when the store is slower.
    pub(crate) fn start(stream: &Stream, mib_per_second: u64) -> Self {
        let (stop, mib) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let every = Duration::from_secs(1) / u32::try_from(mib_per_second).unwrap_or(u32::MAX);
        let task = seam::spawn(write_at(stream.clone(), every, Arc::clone(&stop), Arc::clone(&mib)));
        Self { stop, mib, task }
    }

    /// MiB appended so far.
    pub(crate) fn mib(&self) -> u64 {
        self.mib.load(Ordering::Relaxed)
    }

    /// Stops it and answers how many MiB were appended.
    pub(crate) async fn stop(self) -> Result<u64, Failure> {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await??;
        Ok(self.mib.load(Ordering::Relaxed))
    }
}

async fn write_at(
    stream: Stream,
    every: Duration,
    stop: Arc<AtomicBool>,
    mib: Arc<AtomicU64>,
) -> Result<(), Failure> {
    let payload = Bytes::from(vec![7; MIB / EVENTS]);
    let start = seam::now();
    while !stop.load(Ordering::Relaxed) {
        let written = mib.fetch_add(1, Ordering::Relaxed);
        stream.append((written % u64::from(stream.partitions())) as u32, one_mib(&payload)?).await?;
        let due = every * u32::try_from(written + 1)?;
        if let Some(left) = due.checked_sub(seam::now().duration_since(start)) {
            seam::pause(left).await;
        }
    }
    Ok(())
}
