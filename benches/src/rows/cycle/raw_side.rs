//! The cycle on the raw log: the same producers, as many consumers, the same calls and the same bytes. An index in memory
//! says what is to be fetched; nothing is checked.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{join_all, select};
use tokio::sync::Notify;

use super::flow::{CONSUMERS, Flow, shards_of};
use super::raw_index::RawIndex;
use crate::measured::{Counts, Measured, Stopwatch, Times, window};
use crate::producers::Producers;
use crate::raw_log::{Delivery, Place, RawLog, RawOptions, RawRecords};
use crate::targets::RawTarget;
use crate::workload::{EVENT_BYTES, Keys, RESULT_BYTES};
use crate::{Failure, seam};

/// Events fetched from one shard at a time.
const FETCH_MAX: usize = 2_048;

/// The raw log with its index, from round to round.
pub(super) struct RawSide {
    pub(super) log: Arc<RawLog>,
    index: Arc<RawIndex>,
    arrived: Vec<Arc<Notify>>,
}

impl RawSide {
    pub(super) fn start(dir: &Path, keep: Duration) -> Result<Self, Failure> {
        let arrived: Vec<Arc<Notify>> = (0..CONSUMERS).map(|_| Arc::default()).collect();
        let index = Arc::<RawIndex>::default();
        let (of_log, tell) = (Arc::clone(&index), arrived.clone());
        let deliver = move |delivery: Delivery| {
            of_log.add(&delivery);
            tell[(delivery.shard % CONSUMERS) as usize].notify_one();
        };
        let options = RawOptions { keep: Some(keep), deliver: Some(Box::new(deliver)) };
        Ok(Self { log: Arc::new(RawLog::create(dir, options)?), index, arrived })
    }

    /// One round with as many bytes per event as the store wrote in its last.
    pub(super) async fn round(
        &self,
        keys: &Arc<Keys>,
        bytes_per_event: f64,
        times: Times,
    ) -> Result<Measured, Failure> {
        let flow = Flow::new();
        let target = RawTarget { log: Arc::clone(&self.log), record_bytes: EVENT_BYTES };
        let end_bytes = (bytes_per_event.round() as usize).saturating_sub(EVENT_BYTES).max(RESULT_BYTES);
        self.index.forget_results();
        let consumer = |number| Consumer {
            log: Arc::clone(&self.log),
            index: Arc::clone(&self.index),
            arrived: Arc::clone(&self.arrived[number as usize]),
            number,
            end_bytes,
        };
        let consumers: Vec<_> =
            (0..CONSUMERS).map(|number| seam::spawn(consume(consumer(number), flow.clone()))).collect();
        let producers = Producers::start(&target, keys, &flow.round);
        let counts = || {
            let (syncs, bytes) = self.log.written();
            Counts { events: flow.settled.load(Ordering::Relaxed), syncs, bytes, index_syncs: 0 }
        };
        let mut measured = window(&flow.round.phase, times, counts).await;
        let produced = producers.join().await;
        let closed = flow.close().await;
        for consumer in consumers {
            measured.calls.extend(consumer.await??);
        }
        produced.and(closed).map(|()| measured)
    }
}

struct Consumer {
    log: Arc<RawLog>,
    index: Arc<RawIndex>,
    arrived: Arc<Notify>,
    number: u32,
    end_bytes: usize,
}

async fn consume(consumer: Consumer, flow: Flow) -> Result<Vec<u32>, Failure> {
    let outcome = consumer.consume_until_closed(&flow).await;
    flow.leave(outcome)
}

impl Consumer {
    async fn consume_until_closed(&self, flow: &Flow) -> Result<Vec<u32>, Failure> {
        let mut stopwatch = Stopwatch::default();
        loop {
            let mut fetched = Vec::new();
            for shard in shards_of(self.number) {
                let events = self.index.fetch(shard, FETCH_MAX);
                if !events.is_empty() {
                    read_back(&events)?;
                    fetched.push((shard, events));
                }
            }
            if fetched.is_empty() {
                if flow.is_closing() {
                    return Ok(stopwatch.into_calls());
                }
                let (arrived, closed) = (self.arrived.notified().boxed(), flow.closed().boxed());
                drop(select(arrived, closed).await);
                continue;
            }
            let begun = seam::now();
            let answers = fetched.into_iter().map(|(shard, events)| self.append_ends(shard, events));
            for answer in join_all(answers).await {
                flow.settle(&mut stopwatch, begun, answer?);
            }
        }
    }

    /// Makes the ends of these events durable; answers how many.
    async fn append_ends(&self, shard: u32, events: Vec<(u64, Place)>) -> Result<usize, Failure> {
        let place = self.log.append(RawRecords::Ends(ends(events.len(), self.end_bytes))).await?;
        self.index.end(shard, &events, &place, self.end_bytes);
        Ok(events.len())
    }
}

/// Reads every event from its file, as a handler would get it.
fn read_back(events: &[(u64, Place)]) -> Result<(), Failure> {
    for (_, place) in events {
        let mut bytes = vec![0; EVENT_BYTES];
        place.file.read_exact_at(&mut bytes, place.offset)?;
        std::hint::black_box(bytes);
    }
    Ok(())
}

/// The ends of so many events: a result each, and zeros up to the size the store needs.
fn ends(events: usize, end_bytes: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(events * end_bytes);
    for event in 1..=events {
        bytes.extend_from_slice(&[7; RESULT_BYTES]);
        bytes.resize(event * end_bytes, 0);
    }
    bytes
}
