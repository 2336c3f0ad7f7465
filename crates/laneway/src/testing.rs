//! Tests of your own handlers: an app in memory, on a clock that the test moves.
//!
//! Use it inside a tokio runtime whose time is paused (`#[tokio::test(start_paused = true)]`, with tokio's feature
//! `test-util` among your dev-dependencies): then a back-off of five minutes takes no time at all, and every run of the
//! test is the same.
//!
//! ```
//! use laneway::prelude::*;
//! use laneway::testing::App;
//!
//! #[derive(Record, Serialize, Deserialize)]
//! #[record(key = "customer")]
//! struct Ordered {
//!     customer: String,
//! }
//!
//! #[derive(Record, Serialize, Deserialize, Debug, PartialEq)]
//! #[record(key = "customer")]
//! struct Welcomed {
//!     customer: String,
//! }
//!
//! async fn welcome(Event(order): Event<Ordered>, ctx: Ctx, out: Emit<Welcomed>) -> Result<()> {
//!     if ctx.attempt() < 3 {
//!         return Err(Error::new("the mail server is away"));
//!     }
//!     out.send(Welcomed { customer: order.customer })
//! }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<()> {
//! // In a test: #[tokio::test(start_paused = true)]
//! let app = App::new();
//! let ordered = app.stream::<Ordered>("ordered");
//! let welcomed = app.stream::<Welcomed>("welcomed");
//! app.processor("welcome", &ordered, welcome);
//! app.start().await?;
//!
//! ordered.send(&Ordered { customer: "ann".to_owned() }).delay(days(2)).await?;
//! app.advance(days(1)).await;
//! assert!(app.sent(&welcomed).await.is_empty(), "it is not due yet");
//! app.run_until_quiet().await; // the delay and two back-offs pass
//! assert_eq!(app.sent(&welcomed).await, [Welcomed { customer: "ann".to_owned() }]);
//! # Ok(()) }
//! ```

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::store::{Query, Rows};
use laneway_core::{BlockKind, Event, EventId, Partition, Seat, Shard, StoreError, StreamInfo};
use laneway_engine::service::TokioClock;
use laneway_engine::{Engine, Env};

use crate::app::{Laneway, memory};
use crate::format;
use crate::record::Record;
use crate::seam;
use crate::stream::Stream;

/// Chance is the same in every run, so that back-offs are.
const SEED: u64 = 7;
/// Time that may pass before [`App::run_until_quiet`] takes what still waits for a fault of the test.
const QUIET_WITHIN: Duration = Duration::from_secs(400 * 24 * 3_600);
const LOOK_AFTER: Duration = Duration::from_millis(10);
const LOOK_AFTER_MAX: Duration = Duration::from_secs(60);
const PAGE: usize = 1_000;

/// An app in memory, on tokio's clock; see the [module](self).
///
/// ```
/// use laneway::prelude::*;
/// use laneway::testing::App;
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "account")]
/// # struct Payment { account: String, cents: i64 }
/// async fn book(Event(payment): Event<Payment>, mut total: LaneState<i64>) -> Result<i64> {
///     *total += payment.cents;
///     Ok(*total)
/// }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<()> {
/// let app = App::new();
/// let payments = app.stream::<Payment>("payments");
/// app.processor("book", &payments, book);
/// app.start().await?;
/// let later = payments.submit_as::<i64>(&Payment { account: "a1".to_owned(), cents: 5 }).delay(hours(1)).await?;
/// app.run_until_quiet().await; // an hour passes, in no time
/// assert_eq!(later.wait(secs(0)).await?, 5);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct App {
    app: Laneway,
}

impl Default for App {
    fn default() -> Self {
        Self::new()
    }
}

impl App {
    /// An app on an empty store. Must be called inside a tokio runtime, which should have its time paused.
    pub fn new() -> Self {
        let env = Env::seeded(Arc::new(TokioClock::start()), SEED);
        Self { app: Laneway::with_engine(Engine::new(memory(&env, None), env)) }
    }

    /// Shares a value with all handlers, as [`Laneway::state`] does.
    pub fn state<T: Send + Sync + 'static>(self, value: T) -> Self {
        Self { app: self.app.state(value) }
    }

    /// Lets time pass; whatever becomes due in it runs at its time.
    pub async fn advance(&self, length: Duration) {
        seam::pass(length).await;
    }

    /// Lets time pass until nothing is left to do: what was sent, delayed or emitted has ended, or its lane is parked,
    /// paused or diverting and waits for somebody.
    ///
    /// # Panics
    /// When more than a year passes before that.
    pub async fn run_until_quiet(&self) {
        let (mut passed, mut look_after) = (Duration::ZERO, LOOK_AFTER);
        while let Some(waits) = self.waiting().await.expect("a store in memory can always be read") {
            assert!(passed < QUIET_WITHIN, "the app does not come to rest: {waits}");
            seam::pass(look_after).await;
            passed += look_after;
            look_after = (look_after * 2).min(LOOK_AFTER_MAX);
        }
    }

    /// All records of this type that were sent or emitted to a stream and are still readable, by time.
    pub async fn sent<T: Record>(&self, stream: &Stream<T>) -> Vec<T> {
        stream.define().await.expect("a stream in memory can always be made");
        let events = self.events(stream.name()).await.expect("a store in memory can always be read");
        let ours = events.into_iter().filter(|event| event.kind.as_str() == T::KIND);
        ours.map(|event| format::decode("the event's data", &event.data).expect("it was sent as one"))
            .collect()
    }

    async fn events(&self, stream: &str) -> Result<Vec<Event>, StoreError> {
        let mut events = Vec::new();
        for info in self.streams().await?.into_iter().filter(|info| info.name == stream) {
            for shard in shards(&info) {
                let mut after = EventId(0);
                while let Rows::Events(page) = self.query(Query::Events(shard, after, PAGE)).await?
                    && let Some(last) = page.last()
                {
                    after = last.id;
                    events.extend(page);
                }
            }
        }
        events.sort_by_key(|event| event.time);
        Ok(events)
    }

    /// Something that is still to be done, in words.
    async fn waiting(&self) -> Result<Option<String>, StoreError> {
        for info in self.streams().await? {
            for shard in shards(&info) {
                if let Some(waits) = self.waiting_in(&info, shard).await? {
                    return Ok(Some(format!(
                        "stream {:?}, partition {}: {waits}",
                        info.name, shard.partition
                    )));
                }
            }
        }
        Ok(None)
    }

    async fn waiting_in(&self, info: &StreamInfo, shard: Shard) -> Result<Option<String>, StoreError> {
        let Rows::Counts(counts) = self.query(Query::Counts(shard)).await? else { return Ok(None) };
        if counts.scheduled > 0 {
            return Ok(Some(format!("{} events are not due", counts.scheduled)));
        }
        let Rows::Seats(about, seats) = self.query(Query::Seats(shard)).await? else { return Ok(None) };
        for seat in seats {
            let name = info.processors.iter().find(|processor| processor.id == seat.processor);
            let name = name.map_or("?", |processor| processor.name.as_str());
            let floor = seat.progress.window.floor();
            if floor < about.head {
                return Ok(Some(format!("{name} is at event {floor} of {}", about.head)));
            }
            let id = Seat { shard, processor: seat.processor };
            let rows = counts.seats.iter().find(|(processor, _)| *processor == seat.processor);
            let [records, _, emits, requests] = rows.map_or([0; 4], |(_, rows)| *rows);
            if emits + requests > 0 {
                return Ok(Some(format!("{name} has {emits} emits and {requests} requests to see to")));
            }
            if records > self.standing(id).await? {
                return Ok(Some(format!("lanes of {name} run or are tried again")));
            }
        }
        Ok(None)
    }

    /// Lanes that wait for somebody.
    async fn standing(&self, seat: Seat) -> Result<u64, StoreError> {
        use laneway_core::store::{LaneSelect, Lanes};
        let mut standing = 0;
        for kind in [BlockKind::Parked, BlockKind::Paused, BlockKind::Diverting] {
            let select = LaneSelect::Blocked { kind: Some(kind), after: None, limit: PAGE };
            let lanes =
                self.engine().stores().store.lanes(Lanes { seat, select, siding: 0, states: false }).await?;
            standing += u64::try_from(lanes.len()).unwrap_or(u64::MAX);
        }
        Ok(standing)
    }

    async fn streams(&self) -> Result<Vec<Arc<StreamInfo>>, StoreError> {
        self.engine().catalogue().streams().await
    }

    async fn query(&self, query: Query) -> Result<Rows, StoreError> {
        self.engine().stores().store.query(query).await
    }
}

fn shards(info: &StreamInfo) -> Vec<Shard> {
    (0..info.settings.partitions).map(|partition| info.shard(Partition(partition))).collect()
}

impl Deref for App {
    type Target = Laneway;

    fn deref(&self) -> &Laneway {
        &self.app
    }
}
