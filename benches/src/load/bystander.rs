//! A client that has nothing to do with a situation: it appends one small event each millisecond. How long it waits tells
//! what the situation costs everybody else.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;

use super::{Latencies, Stream, draft};
use crate::{Failure, seam};

const EVERY: Duration = Duration::from_millis(1);
const EVENT_BYTES: usize = 100;

/// A running bystander.
struct Bystander {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Result<Vec<u32>, Failure>>,
}

impl Bystander {
    /// Appends to the first partition of a stream from now on.
    fn start(stream: &Stream) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let task = seam::spawn(append_until(Arc::clone(&stop), stream.clone()));
        Self { stop, task }
    }

    /// Stops it and answers how long its appends took.
    async fn stop(self) -> Result<Latencies, Failure> {
        self.stop.store(true, Ordering::Relaxed);
        Ok(Latencies::new(self.task.await??))
    }
}

async fn append_until(stop: Arc<AtomicBool>, stream: Stream) -> Result<Vec<u32>, Failure> {
    let mut calls = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let begun = seam::now();
        stream.append(0, vec![draft("bystander", EVENT_BYTES)?]).await?;
        calls.push(u32::try_from(seam::now().duration_since(begun).as_micros()).unwrap_or(u32::MAX));
        seam::pause(EVERY).await;
    }
    Ok(calls)
}

/// Appends of a bystander without and with something beside them.
#[derive(Debug)]
pub(crate) struct Compared {
    pub(crate) alone: Latencies,
    pub(crate) beside: Latencies,
}

/// Watches a bystander for so long alone, and then while `work` runs on the runtime as calls of others would.
pub(crate) async fn compare<T: Send + 'static>(
    stream: &Stream,
    alone: Duration,
    work: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<(Compared, T), Failure> {
    let bystander = Bystander::start(stream);
    seam::pause(alone).await;
    let alone = bystander.stop().await?;
    let bystander = Bystander::start(stream);
    let done = seam::spawn(work).await??;
    let beside = bystander.stop().await?;
    Ok((Compared { alone, beside }, done))
}
