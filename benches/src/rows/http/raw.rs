//! The raw log as the rows over HTTP stand beside it: as many callers, without HTTP and without a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::runtime::Runtime;

use crate::measured::{Counts, Measured, Phase, Stopwatch, Times, window};
use crate::raw_log::{RawLog, RawRecords};
use crate::{Failure, seam};

/// What each caller does, over and over.
#[derive(Clone, Copy)]
pub(super) struct Calling {
    pub(super) callers: usize,
    pub(super) per_call: usize,
    /// Bytes of one event, and of its end if that is waited for too.
    pub(super) event_bytes: usize,
    pub(super) end_bytes: Option<usize>,
}

pub(super) fn round(
    runtime: &Runtime,
    raw: &Arc<RawLog>,
    calling: Calling,
    times: Times,
) -> Result<Measured, Failure> {
    raw.wait_until_ready();
    runtime.block_on(async {
        let (phase, finished) = (Arc::<Phase>::default(), Arc::<AtomicU64>::default());
        let callers: Vec<_> = (0..calling.callers)
            .map(|_| {
                let (raw, phase, finished) = (Arc::clone(raw), Arc::clone(&phase), Arc::clone(&finished));
                seam::spawn(async move { call(&raw, calling, &phase, &finished).await })
            })
            .collect();
        let counts = || {
            let (syncs, bytes) = raw.written();
            Counts { events: finished.load(Ordering::Relaxed), syncs, bytes, index_syncs: 0 }
        };
        let mut measured = window(&phase, times, counts).await;
        for caller in callers {
            measured.calls.extend(caller.await??);
        }
        Ok(measured)
    })
}

async fn call(
    raw: &RawLog,
    calling: Calling,
    phase: &Phase,
    finished: &AtomicU64,
) -> Result<Vec<u32>, Failure> {
    let mut stopwatch = Stopwatch::default();
    while !phase.is_over() {
        let begun = seam::now();
        let bytes = vec![7; calling.per_call * calling.event_bytes];
        raw.append(RawRecords::Events { shard: 0, bytes }).await?;
        if let Some(end_bytes) = calling.end_bytes {
            raw.append(RawRecords::Ends(vec![7; calling.per_call * end_bytes])).await?;
        }
        stopwatch.note(phase, begun, finished, calling.per_call);
    }
    Ok(stopwatch.into_calls())
}
