//! The cycle on the raw log: the same producers, as many consumers, the same calls and the same bytes, but events
//! come to the consumers through a queue in memory and nothing is looked up or checked.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{join_all, select};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::flow::{CONSUMERS, Flow};
use crate::measured::{Counts, Measured, Stopwatch, Times, window};
use crate::producers::Producers;
use crate::raw_log::{Delivery, RawLog, RawOptions, RawRecords};
use crate::targets::RawTarget;
use crate::workload::{EVENT_BYTES, Keys, RESULT_BYTES, SHARDS};
use crate::{Failure, seam};

/// The raw log with its consumers' queues, from round to round.
pub(super) struct RawSide {
    pub(super) log: Arc<RawLog>,
    inboxes: Vec<Arc<Inbox>>,
}

/// Durable events on their way to one consumer.
#[derive(Default)]
struct Inbox {
    waiting: Mutex<Vec<Delivery>>,
    arrived: Notify,
}

impl RawSide {
    pub(super) fn start(dir: &Path, keep: Duration) -> Result<Self, Failure> {
        let inboxes: Vec<Arc<Inbox>> = (0..CONSUMERS).map(|_| Arc::default()).collect();
        let of_log = inboxes.clone();
        let deliver = move |delivery: Delivery| {
            let inbox = &of_log[(delivery.shard % CONSUMERS) as usize];
            inbox.waiting.lock().push(delivery);
            inbox.arrived.notify_one();
        };
        let options = RawOptions { keep: Some(keep), deliver: Some(Box::new(deliver)) };
        Ok(Self { log: Arc::new(RawLog::create(dir, options)?), inboxes })
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
        let consume = |inbox: &Arc<Inbox>| {
            seam::spawn(consume(Arc::clone(&self.log), Arc::clone(inbox), flow.clone(), end_bytes))
        };
        let consumers: Vec<_> = self.inboxes.iter().map(consume).collect();
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

async fn consume(
    log: Arc<RawLog>,
    inbox: Arc<Inbox>,
    flow: Flow,
    end_bytes: usize,
) -> Result<Vec<u32>, Failure> {
    let outcome = consume_until_closed(&log, &inbox, &flow, end_bytes).await;
    flow.leave(outcome)
}

async fn consume_until_closed(
    log: &RawLog,
    inbox: &Inbox,
    flow: &Flow,
    end_bytes: usize,
) -> Result<Vec<u32>, Failure> {
    let mut stopwatch = Stopwatch::default();
    loop {
        let deliveries = std::mem::take(&mut *inbox.waiting.lock());
        if deliveries.is_empty() {
            if flow.is_closing() {
                return Ok(stopwatch.into_calls());
            }
            let (arrived, closed) = (inbox.arrived.notified().boxed(), flow.closed().boxed());
            drop(select(arrived, closed).await);
            continue;
        }
        let mut by_shard = [0; SHARDS as usize];
        for delivery in &deliveries {
            read_back(delivery);
            by_shard[delivery.shard as usize] += delivery.count as usize;
        }
        let begun = seam::now();
        let touched = by_shard.into_iter().filter(|events| *events > 0);
        let answers = touched.map(|events| append_ends(log, events, end_bytes));
        for answer in join_all(answers).await {
            flow.settle(&mut stopwatch, begun, answer?);
        }
    }
}

/// Makes the ends of so many events durable; answers how many.
async fn append_ends(log: &RawLog, events: usize, end_bytes: usize) -> Result<usize, Failure> {
    log.append(RawRecords::Ends(ends(events, end_bytes))).await?;
    Ok(events)
}

/// Takes every event out of the bytes of its frame, as a handler would get it.
fn read_back(delivery: &Delivery) {
    for at in (0..delivery.bytes.len()).step_by(EVENT_BYTES) {
        std::hint::black_box(delivery.bytes.slice(at..at + EVENT_BYTES));
    }
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
