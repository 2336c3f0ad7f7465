//! Laneway runs work in order, per key.
//!
//! Every event carries a key; all events of one key form a *lane*. Inside a lane events run strictly in order, one at a
//! time, also through retries, crashes and restarts; different lanes run in parallel. Work is durable, may return a
//! result later, and may be collapsed to "newest wins".
//!
//! ```
//! use laneway::prelude::*;
//!
//! #[derive(Record, Serialize, Deserialize)]
//! #[record(key = "account")] // the lane
//! struct Payment {
//!     account: String,
//!     cents: i64,
//! }
//!
//! #[derive(Record, Serialize, Deserialize)]
//! #[record(key = "account")]
//! struct Overdrawn {
//!     account: String,
//!     by: i64,
//! }
//!
//! #[derive(Default, Serialize, Deserialize)]
//! struct Account {
//!     total: i64,
//! }
//!
//! /// Payments of one account never overlap and never swap places. State, emitted records, result and the outcome are
//! /// committed together.
//! async fn book(
//!     Event(payment): Event<Payment>,
//!     mut account: LaneState<Account>,
//!     out: Emit<Overdrawn>,
//! ) -> Result<i64> {
//!     account.total += payment.cents;
//!     if account.total < 0 {
//!         out.send(Overdrawn { account: payment.account, by: -account.total })?;
//!     }
//!     Ok(account.total)
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! let app = Laneway::open("memory:").await?; // or file:./data
//! let payments = app.stream::<Payment>("payments");
//! app.stream::<Overdrawn>("overdrawn");
//! app.processor("book", &payments, book).retry(Retry::attempts(3)).on_failure(OnFailure::Park);
//! app.start().await?;
//!
//! payments.send(&Payment { account: "a1".to_owned(), cents: -500 }).await?;
//! let job = payments.submit_as::<i64>(&Payment { account: "a1".to_owned(), cents: 200 }).await?;
//! assert_eq!(job.wait(secs(10)).await?, -300);
//! app.stop(secs(5)).await;
//! # Ok(()) }
//! ```
//!
//! # What a handler can take
//!
//! First what came: [`Event<T>`](Event), [`Job<T>`](struct@Job), several events of a lane as [`LaneBatch<T>`](LaneBatch)
//! or the heads of several lanes as [`HeadBatch<T>`](HeadBatch). Then, in any order and as needed: [`LaneState<S>`](LaneState), [`Object<O>`](Object), [`Emit<T>`](Emit), [`Ctx`], [`State<T>`](State), or a
//! type of yours ([`extract::Extract`]).
//!
//! # What its answer means
//!
//! `Ok` settles the event; the value is the result of a job. `Err` follows the policy of the processor: attempts with
//! growing waits, then [`OnFailure`]. [`Error::permanent`] gives up at once, [`Error::retry_after`] says when. A panic
//! or a timeout is a failed attempt.
//!
//! # Beside it
//!
//! [`Lanes`] is the executor alone, with no store at all. [`Resequencer`] puts events back in order at the far end of a
//! transport that does not keep it. [`testing`] runs an app in memory on a clock that tests move.

// The derives name their traits as `::laneway::…`, also when they are used in here.
extern crate self as laneway;

mod app;
mod error;
pub mod extract;
#[cfg(feature = "embedded")]
pub mod files;
mod format;
pub mod handler;
mod job;
mod operations;
pub mod record;
#[cfg(feature = "redis")]
pub mod redis;
pub mod resequencer;
mod schedule;
mod seam;
mod stream;
#[cfg(feature = "embedded")]
pub mod testing;
mod times;

/// Runs the README's programs as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

pub use laneway_core as core;
pub use laneway_engine as engine;
pub use laneway_lanes as lanes;

pub use app::{Laneway, OpenError, Processor, Retry, StartError, StoreOptions, without_user};
pub use error::{Error, Result, RetryExt};
pub use extract::{Ctx, Each, Emit, Event, HeadBatch, Job, LaneBatch, LaneState, Object, State};
pub use format::FormatError;
pub use job::{JobBatch, JobHandle, JobStatus, Progress, SubmitError, Submitting, SubmittingMany, WaitError};
pub use laneway_core::store::Reset;
pub use laneway_core::{
    Durability, EventId, JobId, Key, Mode, Partition, Ref, RunFence, Seq, StartAt, Status, Steady, Terminal,
    Timestamp,
};
/// Derives [`JobRecord`] and [`trait@Record`]: which field names the lane, what the handler answers, who answers.
///
/// ```
/// use laneway::prelude::*;
/// use laneway::testing::App;
///
/// #[derive(Job, Serialize, Deserialize)]
/// #[job(key = "account", output = "u64", processor = "statements", timeout = "30s", keep = "7d")]
/// struct MakeStatement {
///     account: String,
/// }
///
/// async fn make(Job(_): Job<MakeStatement>) -> Result<u64> { Ok(3) }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<()> {
/// let app = App::new();
/// let statements = app.stream::<MakeStatement>("statements");
/// app.processor("statements", &statements, make);
/// app.start().await?;
/// let job = statements.submit(&MakeStatement { account: "a1".to_owned() }).await?;
/// assert_eq!(job.wait(secs(10)).await?, 3);
/// # Ok(()) }
/// ```
pub use laneway_derive::Job;
/// Derives [`trait@Record`]: which field names the lane, or that none does.
///
/// ```
/// use laneway::prelude::*;
///
/// #[derive(Record, Serialize, Deserialize)]
/// #[record(key = "customer", kind = "order.paid")]
/// struct OrderPaid {
///     customer: u64,
/// }
///
/// #[derive(Record, Serialize, Deserialize)]
/// #[record(keyless)]
/// struct Visited;
///
/// assert_eq!((OrderPaid { customer: 17 }).key().as_deref(), Some(&b"17"[..]));
/// assert_eq!((OrderPaid::KIND, Visited::KIND, Visited.key()), ("order.paid", "visited", None));
/// ```
pub use laneway_derive::Record;
pub use laneway_engine::Batch;
pub use laneway_engine::cluster::NodeSettings;
pub use laneway_engine::handler::OnFailure;
pub use laneway_engine::job::{BatchId, JobError};
pub use laneway_engine::observe::{TraceContext, Tracer, continue_trace, install_tracer};
pub use laneway_engine::upkeep::schedule::{CatchUp, Overlap, Schedule, Spec};
pub use laneway_lanes::Lanes;
pub use operations::{DeadLetter, HeldLane, OperateError, Operations};
pub use record::{JobRecord, Record};
pub use resequencer::Resequencer;
pub use schedule::{ScheduleError, Schedules, Scheduling};
pub use stream::{Append, Receipt, SendError, Sending, SendingMany, Stream};
pub use times::{days, hours, mins, secs};

/// What most programs need: `use laneway::prelude::*`.
pub mod prelude {
    pub use crate::{
        Batch, Ctx, Each, Emit, Error, Event, HeadBatch, Job, JobHandle, JobRecord, LaneBatch, LaneState,
        Laneway, Mode, Object, OnFailure, Receipt, Record, Result, Retry, RetryExt, State, Stream, days,
        hours, mins, secs,
    };
    pub use serde::{Deserialize, Serialize};
}
