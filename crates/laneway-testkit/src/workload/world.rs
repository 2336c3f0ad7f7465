//! What everybody in a workload shares: the store, the places, the history and the counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use laneway_core::store::{Entry, Query, ReadFrom, Rows};
use laneway_core::{
    EventId, Nonce, ProcessorId, Result, Seat, Shard, StartAt, Store, StoreError, StreamSettings,
};
use parking_lot::Mutex;

use crate::bench::{Bench, Place, read_of};
use crate::check::{History, Sometimes};

/// The shared part of a workload.
pub(crate) struct World {
    pub(crate) store: Arc<dyn Store>,
    /// Where producers append and owners work; processed events are trimmed at once.
    pub(crate) work: Place,
    /// Where emits go.
    pub(crate) target: Place,
    /// The seats on `work` that owners fight for. The first one answers the jobs.
    pub(crate) seats: Vec<Seat>,
    pub(crate) history: Mutex<History>,
    pub(crate) sometimes: Sometimes,
    ticks: AtomicU64,
}

impl World {
    /// Streams and processors on the bench's store.
    pub(crate) async fn new(bench: &Bench) -> Arc<Self> {
        let settings = StreamSettings { keep: Duration::ZERO, ..Bench::settings() };
        let work = bench.place_with(settings).await;
        let second = bench.processor(work.stream.id, StartAt::Beginning).await;
        let seats = vec![work.seat, Seat { processor: second, ..work.seat }];
        let target = bench.place().await;
        Arc::new(Self {
            store: bench.store(),
            work,
            target,
            seats,
            history: Mutex::default(),
            sometimes: Sometimes::default(),
            ticks: AtomicU64::new(1),
        })
    }

    /// The next moment of the history.
    pub(crate) fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::SeqCst)
    }

    /// A nonce, commit id or token that nobody else has.
    pub(crate) fn unique(&self) -> u128 {
        u128::from(self.tick()) << 32 | 0x5EED
    }

    pub(crate) fn nonce(&self) -> Nonce {
        Nonce(self.unique())
    }

    /// The processor that answers the jobs.
    pub(crate) fn responder(&self) -> ProcessorId {
        self.seats[0].processor
    }

    /// Repeats a call until it is answered; tells whether an answer was lost on the way.
    pub(crate) async fn insist<T, F: Future<Output = Result<T>>>(
        &self,
        call: impl Fn() -> F,
    ) -> (Result<T>, bool) {
        let mut unknown = false;
        loop {
            match call().await {
                Err(StoreError::Unknown { .. }) => {
                    self.sometimes.hit("an answer was lost");
                    unknown = true;
                }
                answer => return (answer, unknown),
            }
            tokio::task::yield_now().await;
        }
    }

    /// Reads a page and remembers its events.
    pub(crate) async fn look(&self, shard: Shard, after: EventId) -> Result<laneway_core::store::Page> {
        let page = self.store.read(read_of(shard, ReadFrom::After(after))).await?;
        let mut history = self.history.lock();
        for entry in &page.entries {
            if let Entry::Event(event) = entry {
                history.saw(shard, event.clone());
            }
        }
        Ok(page)
    }

    /// Reads everything that is left of a shard.
    pub(crate) async fn look_at_all(&self, shard: Shard) -> Result<()> {
        let Rows::Seats(info, _) = self.store.query(Query::Seats(shard)).await? else { return Ok(()) };
        let mut after = info.trimmed;
        loop {
            match self.look(shard, after).await {
                Ok(page) if page.entries.is_empty() => return Ok(()),
                Ok(page) => after = page.entries.last().map_or(after, Entry::id),
                // Somebody trimmed meanwhile: what went was read by its owner before it was passed.
                Err(StoreError::Trimmed { first, .. }) => after = EventId(first.0 - 1),
                Err(error) => return Err(error),
            }
        }
    }
}
