//! What a handler can know about its run.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::{EventId, Headers, JobId, Key, Ref, RunFence, Seq, Timestamp};
use laneway_engine::handler::{CancelToken, LastDone};

use super::needs::Extract;
use super::scope::Scope;
use crate::error::{Error, Result};
use crate::format;
use crate::job::Progress;
use crate::record::Record;

/// The run: which event, which attempt, until when, and whether it is to stop.
///
/// ```
/// use laneway::prelude::*;
///
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "account")]
/// # struct Payment { account: String, cents: i64 }
/// # struct Bank;
/// # impl Bank { async fn pay(&self, _: &str, _: i64, _: &str) -> Result<()> { Ok(()) } }
/// async fn pay(Event(payment): Event<Payment>, State(bank): State<Bank>, ctx: Ctx) -> Result<()> {
///     // The bank can refuse a repeat by the event's name: a run may happen more than once.
///     bank.pay(&payment.account, payment.cents, &ctx.reference().to_string()).await
/// }
/// ```
///
/// All that a run knows of itself:
///
/// ```
/// use laneway::prelude::*;
/// use laneway::testing::App;
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "account")]
/// # struct Payment { account: String, cents: i64 }
/// async fn audit(Event(_): Event<Payment>, ctx: Ctx) -> Result<String> {
///     // Its place in its lane: number 2, behind event 1; a consumer that keeps the last one can tell a gap.
///     let chain = format!("{:?} {} after {:?}", ctx.seq().map(|seq| seq.0), ctx.id(), ctx.prev().map(|id| id.0));
///     let lane = ctx.key().map(ToString::to_string).unwrap_or_default();
///     let by = ctx.caller().unwrap_or("nobody");
///     let language = String::from_utf8_lossy(ctx.headers().get("language").unwrap_or(b"en")).into_owned();
///     // A system that remembers the highest fence of a lane can refuse a run that comes late.
///     tracing::info!(at = ctx.time().0, fence = %ctx.fence(), job = ?ctx.job(), last = ?ctx.last_done());
///     if ctx.time_left().is_some_and(|left| left < secs(1)) {
///         return Err(Error::new("no time for it"));
///     }
///     Ok(format!("{} of {}: {lane} {chain}, by {by}, {language}", ctx.attempt(), ctx.processor()))
/// }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<()> {
/// let app = App::new();
/// let payments = app.stream::<Payment>("payments");
/// app.processor("audit", &payments, audit).timeout(secs(30));
/// app.start().await?;
/// let payment = Payment { account: "a1".to_owned(), cents: 5 };
/// payments.send(&payment).await?;
/// let job = payments.submit_as::<String>(&payment).caller("ann").header("language", "de").await?;
/// assert_eq!(job.wait(secs(10)).await?, "1 of audit: a1 Some(2) 2 after Some(1), by ann, de");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Ctx {
    scope: Arc<Scope>,
}

impl Ctx {
    pub(super) fn of(scope: Arc<Scope>) -> Self {
        Self { scope }
    }

    /// The one name of the event, `stream/partition/id`: also a good idempotency key for outside systems.
    pub fn reference(&self) -> Ref {
        let parts = self.scope.parts();
        Ref { stream: parts.ground.stream.to_string(), partition: parts.partition, id: parts.event.id }
    }

    /// The lane; nothing for an event that wanted no order.
    pub fn key(&self) -> Option<&Key> {
        self.scope.event().key.as_ref()
    }

    /// The event's position in its partition.
    pub fn id(&self) -> EventId {
        self.scope.event().id
    }

    /// The event before it in its lane.
    pub fn prev(&self) -> Option<EventId> {
        self.scope.event().prev
    }

    /// The event's number in its lane: 1, 2, 3 …
    pub fn seq(&self) -> Option<Seq> {
        self.scope.event().seq
    }

    /// When the event joined its lane.
    pub fn time(&self) -> Timestamp {
        self.scope.event().time
    }

    /// What travels with the event.
    pub fn headers(&self) -> &Headers {
        &self.scope.event().headers
    }

    /// The job, if somebody waits for the result.
    pub fn job(&self) -> Option<JobId> {
        self.scope.event().job.map(|job| job.id)
    }

    /// On whose behalf the job was submitted, if its submitter said so. Nobody but the engine can set it.
    pub fn caller(&self) -> Option<&str> {
        std::str::from_utf8(self.headers().get(laneway_engine::job::headers::CALLER)?).ok()
    }

    /// Name of the processor.
    pub fn processor(&self) -> &str {
        &self.scope.parts().ground.processor
    }

    /// Which attempt at the event, from 1.
    pub fn attempt(&self) -> u32 {
        self.scope.attempt()
    }

    /// Sorts higher, also as text, for every later run of the lane: an outside system that remembers the highest one it
    /// has seen can refuse a run that comes late.
    pub fn fence(&self) -> RunFence {
        self.scope.parts().fence
    }

    /// Where the newest wins: what was done last in this lane.
    pub fn last_done(&self) -> Option<&LastDone> {
        self.scope.parts().last_done.as_ref()
    }

    /// Where the newest wins, with [`keep_last`](crate::Processor::keep_last): the record that was done last in this
    /// lane, to compare the new one with. Nothing before the first, and nothing that was done without `keep_last`.
    ///
    /// # Errors
    /// When the bytes are no such record; it fails for good.
    pub fn last_record<T: Record>(&self) -> Result<Option<T>> {
        let data = self.last_done().and_then(|last| last.data.as_ref());
        let record = data.map(|data| format::decode("the data of the event done last", data));
        record.transpose().map_err(Error::permanent)
    }

    /// How long the run may still take; nothing without a timeout.
    pub fn time_left(&self) -> Option<Duration> {
        self.scope.time_left()
    }

    /// Tells whether, and when, the run is to stop: somebody cancelled the job, or a newer event took its place.
    pub fn cancel(&self) -> &CancelToken {
        &self.scope.parts().cancel
    }

    /// Says how far the run is, for whoever looks at the job. It shows once the run has taken a second.
    pub fn progress(&self, done: u64, total: u64, message: impl Into<String>) {
        let progress = Progress { done, total, message: message.into() };
        self.scope.parts().progress.report(progress.to_bytes());
    }
}

impl Extract for Ctx {
    async fn extract(scope: &Arc<Scope>) -> Result<Self> {
        Ok(Self::of(Arc::clone(scope)))
    }
}

impl std::fmt::Debug for Ctx {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("Ctx");
        shown.field("event", &self.reference().to_string()).field("attempt", &self.attempt());
        shown.finish_non_exhaustive()
    }
}
