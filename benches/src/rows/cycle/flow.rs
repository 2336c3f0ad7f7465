//! What producers and consumers of a round share, and how a round ends with nothing left unsettled.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, watch};

use crate::measured::Stopwatch;
use crate::producers::Round;
use crate::workload::SHARDS;
use crate::{Failure, seam};

/// Events appended and not settled, at most.
const IN_FLIGHT: usize = 20_000;
/// Events per call of a producer.
const PER_CALL: usize = 10;
/// Tasks that read and commit; each owns an equal part of the shards.
pub(super) const CONSUMERS: u32 = 4;
/// How often it is looked whether everything is settled, and how long that may take.
const LOOK_EVERY: Duration = Duration::from_millis(2);
const SETTLE_WITHIN: Duration = Duration::from_secs(30);

/// The shards of one consumer.
pub(super) fn shards_of(consumer: u32) -> impl Iterator<Item = u32> {
    (0..SHARDS).filter(move |shard| shard % CONSUMERS == consumer)
}

/// One round of the cycle.
#[derive(Clone)]
pub(super) struct Flow {
    pub(super) round: Round,
    room: Arc<Semaphore>,
    /// Events settled and durable.
    pub(super) settled: Arc<AtomicU64>,
    closing: watch::Sender<bool>,
}

impl Flow {
    pub(super) fn new() -> Self {
        let room = Arc::new(Semaphore::new(IN_FLIGHT));
        let round = Round::new(PER_CALL, Some(Arc::clone(&room)));
        Self { round, room, settled: Arc::default(), closing: watch::Sender::new(false) }
    }

    /// Notes a commit that settled so many events, and lets as many new ones in.
    pub(super) fn settle(&self, stopwatch: &mut Stopwatch, begun: Instant, events: usize) {
        stopwatch.note(&self.round.phase, begun, &self.settled, events);
        self.room.add_permits(events);
    }

    /// Counts events that were run, and lets as many new ones in.
    pub(super) fn count(&self, events: usize) {
        self.settled.fetch_add(events as u64, Ordering::Relaxed);
        self.room.add_permits(events);
    }

    /// Whether consumers are to end when they find nothing.
    pub(super) fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }

    /// Waits until consumers are to end.
    pub(super) async fn closed(&self) {
        let mut closing = self.closing.subscribe();
        // The sender lives in this flow, so there is no other end to wait for.
        let _closed = closing.wait_for(|closing| *closing).await;
    }

    /// A consumer ends: if it failed, producers must not wait for room for ever.
    pub(super) fn leave<T>(&self, outcome: Result<T, Failure>) -> Result<T, Failure> {
        if outcome.is_err() {
            self.room.close();
            self.closing.send_replace(true);
        }
        outcome
    }

    /// Lets the consumers settle what was appended, then ends them.
    pub(super) async fn close(&self) -> Result<(), Failure> {
        let start = seam::now();
        let appended = self.round.appended.load(Ordering::Relaxed);
        let settled = || self.settled.load(Ordering::Relaxed);
        while settled() < appended && !self.room.is_closed() {
            if seam::now().duration_since(start) > SETTLE_WITHIN {
                self.closing.send_replace(true);
                let settled = settled();
                return Err(
                    format!("{settled} of {appended} events were settled within {SETTLE_WITHIN:?}").into()
                );
            }
            seam::pause(LOOK_EVERY).await;
        }
        self.closing.send_replace(true);
        Ok(())
    }
}
