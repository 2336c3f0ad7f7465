//! The typed handle of a stream.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::{Key, Mode, Refusal};
use laneway_engine::log::{AppendError, Appending};
use serde::de::DeserializeOwned;

use super::declared::{Declared, Wanted};
use super::receipt::Receipt;
use super::send::Sending;
use super::send_error::SendError;
use super::send_many::SendingMany;
use crate::app::Shared;
use crate::error::{Error, Result};
use crate::extract::Object;
use crate::job::{Submitting, SubmittingMany};
use crate::record::{JobRecord, KeyField, Record};

/// A stream of records of one type. Cheap to clone.
///
/// Settings that a program mentions are made so when the stream is first used; what it does not mention stays as it is
/// in the store. Two handles with two record types may name one stream: then its lanes hold both, in one order.
///
/// ```
/// use laneway::prelude::*;
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "account")]
/// # struct Payment { account: String, cents: i64 }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let app = Laneway::open("memory:").await?;
/// let payments = app
///     .stream::<Payment>("payments")
///     .mode(Mode::Queue) // every event runs; Mode::Latest runs the newest of each lane
///     .partitions(32)
///     .keep(days(30))
///     .keep_done(hours(6)) // results of jobs
///     .keep_dead_letters(days(90))
///     .responder("book") // of several processors, the one that answers jobs
///     .dedup_max(1_000_000)
///     .max_pending(1_000_000);
/// let payment = Payment { account: "a1".to_owned(), cents: 5 };
/// payments.send(&payment).dedup_id("p1").await?;
/// assert_eq!(payments.send(&payment).dedup_id("p1").await?.append, laneway::Append::Duplicate);
/// # Ok(()) }
/// ```
pub struct Stream<T> {
    shared: Arc<Shared>,
    declared: Arc<Declared>,
    records: PhantomData<fn(T) -> T>,
}

impl<T> Clone for Stream<T> {
    fn clone(&self) -> Self {
        let (shared, declared) = (Arc::clone(&self.shared), Arc::clone(&self.declared));
        Self { shared, declared, records: PhantomData }
    }
}

impl<T> Stream<T> {
    pub(crate) fn new(shared: Arc<Shared>, declared: Arc<Declared>) -> Self {
        Self { shared, declared, records: PhantomData }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.declared.name
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn shared_name(&self) -> Arc<str> {
        Arc::clone(&self.declared.name)
    }

    fn want(self, change: impl FnOnce(&mut Wanted)) -> Self {
        if !self.declared.want(change) {
            let fault = format!("stream {:?}: its settings were changed after its first use", self.name());
            self.shared.fault(fault);
        }
        self
    }

    /// How many partitions a new stream gets: the most that can be worked on by different nodes. Default 16.
    pub fn partitions(self, partitions: u32) -> Self {
        self.want(|wanted| wanted.partitions = Some(partitions))
    }

    /// Whether all events run, or only the newest of each lane. Default: all.
    pub fn mode(self, mode: Mode) -> Self {
        self.want(|wanted| wanted.mode = Some(mode))
    }

    /// How long events stay readable after all processors are done with them. Default 7 days.
    pub fn keep(self, length: Duration) -> Self {
        self.want(|wanted| wanted.keep = Some(length))
    }

    /// How long results of jobs can be read, unless their submitter or their record says otherwise. It counts for jobs
    /// that are submitted from then on. Default: a day.
    pub fn keep_done(self, length: Duration) -> Self {
        self.want(|wanted| wanted.keep_done = Some(length))
    }

    /// Forgets lanes that had no event for so long, once their last one is gone by [`keep`](Self::keep): for streams with ever
    /// new keys, each of which would cost a little for ever. The next event of such a lane is its first. Default: never.
    pub fn forget_lanes_after(self, length: Duration) -> Self {
        self.want(|wanted| wanted.forget_lanes_after = Some(length))
    }

    /// How long dead letters are kept. Default 30 days.
    pub fn keep_dead_letters(self, length: Duration) -> Self {
        self.want(|wanted| wanted.dead_keep = Some(length))
    }

    /// Most events that may wait, at least one per partition; beyond that, sends answer [`SendError::Full`]. Each partition
    /// gets an equal part, rounded up, and refuses what goes beyond it, so leave room for keys that are not spread evenly.
    /// Events behind a parked or paused one wait too. Default: no bound.
    pub fn max_pending(self, events: u64) -> Self {
        self.want(|wanted| wanted.max_pending = Some(events))
    }

    /// The processor that answers jobs whose submitter names none; with it a stream may have several. Default: the stream's
    /// only one.
    pub fn responder(self, processor: impl Into<String>) -> Self {
        self.want(|wanted| wanted.responder = Some(processor.into()))
    }

    /// How long a dedup id or idempotency key is remembered: the same again within that time is the same event, unless
    /// [`dedup_max`](Self::dedup_max) newer ones have come to its partition since. Default: a day.
    pub fn dedup_window(self, length: Duration) -> Self {
        self.want(|wanted| wanted.dedup_window = Some(length))
    }

    /// Most dedup ids that a partition remembers; beyond it the oldest go before their time. Default 100,000: set it to
    /// the events with ids that a partition gets within [`dedup_window`](Self::dedup_window).
    pub fn dedup_max(self, ids: u64) -> Self {
        self.want(|wanted| wanted.dedup_max = Some(ids))
    }
}

impl<T: Record> Stream<T> {
    /// Sends a record: it runs after everything that was sent before it with the same key.
    pub fn send(&self, record: &T) -> Sending<'_, T> {
        Sending::new(self, record)
    }

    /// Sends many records in one go, in order.
    pub fn send_many<'r>(&self, records: impl IntoIterator<Item = &'r T>) -> SendingMany<'_, T> {
        SendingMany::new(self, records)
    }

    /// Submits a job, whose result can be waited for.
    pub fn submit(&self, record: &T) -> Submitting<'_, T, T::Output>
    where
        T: JobRecord,
    {
        Submitting::job(self, record)
    }

    /// Submits a plain record as a job; `Out` is what its handler returns.
    pub fn submit_as<Out: DeserializeOwned>(&self, record: &T) -> Submitting<'_, T, Out> {
        Submitting::plain(self, record)
    }

    /// Submits many jobs in one go; see [`SubmittingMany`].
    pub fn submit_many<'r>(
        &self,
        records: impl IntoIterator<Item = &'r T>,
    ) -> SubmittingMany<'_, T, T::Output>
    where
        T: JobRecord,
    {
        SubmittingMany::jobs(self, records)
    }

    /// Submits many plain records as jobs; `Out` is what their handler returns.
    pub fn submit_many_as<'r, Out: DeserializeOwned>(
        &self,
        records: impl IntoIterator<Item = &'r T>,
    ) -> SubmittingMany<'_, T, Out> {
        SubmittingMany::plain(self, records)
    }

    /// The object of a lane, as producers last wrote it.
    ///
    /// ```
    /// use laneway::prelude::*;
    /// # #[derive(Record, Serialize, Deserialize)]
    /// # #[record(key = "customer")]
    /// # struct Moved { customer: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let app = Laneway::open("memory:").await?;
    /// let moves = app.stream::<Moved>("moves");
    /// let before = moves.object::<String>("ann").await?;
    /// let moved = Moved { customer: "ann".to_owned() };
    /// moves.send(&moved).object(&"Bern").expect_object_version(before.version).await?;
    /// assert_eq!(moves.object::<String>("ann").await?.value.as_deref(), Some("Bern"));
    /// # Ok(()) }
    /// ```
    pub async fn object<O: DeserializeOwned>(&self, key: impl KeyField) -> Result<Object<O>> {
        let key = key_of(&key)?;
        self.define().await?;
        let tail = self.shared.engine.looker().tail(self.name(), &key).await?;
        Object::read(tail).map_err(Error::new)
    }

    pub(crate) async fn define(&self) -> Result<(), SendError> {
        Ok(self.declared.define(&self.shared.engine).await?)
    }

    /// Appends to the stream, which has been defined before.
    pub(super) async fn append(
        &self,
        appending: Appending,
    ) -> Result<Vec<Result<Receipt, SendError>>, AppendError> {
        let sent = self.shared.engine.producer().append(self.name(), appending).await?;
        Ok(sent.into_iter().map(|sent| Receipt::of(&self.declared.name, sent)).collect())
    }
}

/// The key that a field names.
pub(crate) fn key_of(field: &impl KeyField) -> Result<Key, Refusal> {
    Key::copied(&field.key().unwrap_or_default())
}

impl<T> std::fmt::Debug for Stream<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Stream").field(&self.name()).finish()
    }
}
