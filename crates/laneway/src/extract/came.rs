//! What came: the first argument of every handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use laneway_engine::handler::Done;
use parking_lot::Mutex;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::format;
use crate::record::{JobRecord, Record};

/// An event, as the record it carries.
///
/// ```
/// use laneway::prelude::*;
///
/// #[derive(Record, Serialize, Deserialize)]
/// #[record(key = "account")]
/// struct Payment {
///     account: String,
///     cents: i64,
/// }
///
/// /// Payments of one account never overlap and never swap places.
/// async fn book(Event(payment): Event<Payment>) -> Result<()> {
///     if payment.cents == 0 {
///         return Err(Error::permanent("a payment of nothing"));
///     }
///     Ok(())
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let app = Laneway::open("memory:").await?;
/// let payments = app.stream::<Payment>("payments");
/// app.processor("book", &payments, book);
/// app.start().await?;
/// payments.send(&Payment { account: "a1".to_owned(), cents: 500 }).await?;
/// # app.stop(secs(5)).await;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event<T: Record>(pub T);

/// A job: an event whose handler must answer with [`JobRecord::Output`], which the compiler checks.
///
/// ```
/// use laneway::prelude::*;
///
/// #[derive(Job, Serialize, Deserialize)]
/// #[job(key = "account", output = "u64")]
/// struct CountLines {
///     account: String,
///     text: String,
/// }
///
/// async fn count(Job(job): Job<CountLines>) -> Result<u64> {
///     Ok(job.text.lines().count() as u64)
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let app = Laneway::open("memory:").await?;
/// let counts = app.stream::<CountLines>("counts");
/// app.processor("count", &counts, count);
/// app.start().await?;
/// let job = counts.submit(&CountLines { account: "a1".to_owned(), text: "one\ntwo".to_owned() }).await?;
/// assert_eq!(job.wait(secs(10)).await?, 2);
/// # app.stop(secs(5)).await;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job<T: JobRecord>(pub T);

/// Several events of one lane, in order, for work that is cheaper together.
///
/// `Ok` settles all of them, and its value is the result of those that are jobs, unless [`answer`](Self::answer) gave them one
/// of their own. A handler that fails in the middle first says how far it came, with
/// [`done_through`](Self::done_through): those are settled and the next one has failed. With
/// [`LaneState`](super::LaneState) among the arguments a batch is done as a whole or not at all, since nobody could
/// tell which part of the state belongs to which event.
///
/// ```
/// use laneway::prelude::*;
///
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "account")]
/// # struct Payment { account: String, cents: i64 }
/// # async fn write(rows: &[Payment]) -> Result<()> {
/// #     if rows.iter().any(|row| row.cents == 0) { Err(Error::permanent("a payment of nothing")) } else { Ok(()) }
/// # }
/// async fn insert(batch: LaneBatch<Payment>) -> Result<()> {
///     let mut written = 0;
///     for rows in batch.chunks(2) {
///         write(rows).await?; // one statement for several
///         written += rows.len();
///         batch.done_through(written); // these never run again, whatever becomes of the next
///     }
///     Ok(())
/// }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<()> {
/// let app = laneway::testing::App::new();
/// let payments = app.stream::<Payment>("payments");
/// payments.send_many(&[3, 5, 0, 7].map(|cents| Payment { account: "a1".to_owned(), cents })).await?;
/// app.processor("insert", &payments, insert).batch(Batch::lane(500));
/// app.start().await?;
/// app.run_until_quiet().await;
/// let parked = app.operations("insert").parked().await?;
/// assert_eq!(parked[0].cause, "a payment of nothing");
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct LaneBatch<T: Record> {
    records: Vec<T>,
    said: Arc<OneByOne>,
}

/// What a handler says of the events of a lane batch, one by one.
#[derive(Debug, Default)]
pub(crate) struct OneByOne {
    done: AtomicUsize,
    results: Mutex<Vec<Option<Bytes>>>,
}

impl OneByOne {
    /// So many are done, whatever becomes of the others.
    pub(crate) fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// The first so many as done, each with its own result, or with this one.
    pub(crate) fn take_done(&self, count: usize, others: Option<&Bytes>) -> Vec<Done> {
        let mut results = std::mem::take(&mut *self.results.lock());
        results.resize(count, None);
        let each = |own: Option<Bytes>| Done { result: own.or_else(|| others.cloned()), emits: Vec::new() };
        results.into_iter().map(each).collect()
    }
}

impl<T: Record> LaneBatch<T> {
    pub(crate) fn new(records: Vec<T>, said: Arc<OneByOne>) -> Self {
        Self { records, said }
    }

    /// Says that the first so many events are done, whatever becomes of the others.
    pub fn done_through(&self, count: usize) {
        self.said.done.store(count.min(self.records.len()), Ordering::Relaxed);
    }

    /// Says what the submitter of one of them gets if it is a job. It counts once the event is done: by
    /// [`done_through`](Self::done_through), or because the handler returns `Ok`, whose value is the result of the others.
    ///
    /// ```
    /// use laneway::prelude::*;
    ///
    /// # #[derive(Record, Serialize, Deserialize)]
    /// # #[record(key = "account")]
    /// # struct Payment { account: String, cents: i64 }
    /// async fn book(batch: LaneBatch<Payment>, mut balance: LaneState<i64>) -> Result<()> {
    ///     for (index, payment) in batch.iter().enumerate() {
    ///         *balance += payment.cents;
    ///         batch.answer(index, &*balance)?; // the balance after this one
    ///     }
    ///     Ok(())
    /// }
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<()> {
    /// let app = laneway::testing::App::new();
    /// let payments = app.stream::<Payment>("payments");
    /// app.processor("book", &payments, book);
    /// app.start().await?;
    /// let first = payments.submit_as::<i64>(&Payment { account: "a1".to_owned(), cents: 5 }).await?;
    /// let second = payments.submit_as::<i64>(&Payment { account: "a1".to_owned(), cents: 7 }).await?;
    /// assert_eq!((first.wait(secs(10)).await?, second.wait(secs(10)).await?), (5, 12));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// When the value cannot be serialised: then nothing was said.
    ///
    /// # Panics
    /// When there is no such index; that counts as a failure of the whole run.
    pub fn answer<R: Serialize>(&self, index: usize, result: &R) -> Result<()> {
        assert!(index < self.records.len(), "index is {index}, must be below {}", self.records.len());
        let result = format::encode("the result", result).map_err(Error::permanent)?;
        let mut results = self.said.results.lock();
        if results.len() <= index {
            results.resize(index + 1, None);
        }
        results[index] = Some(result);
        Ok(())
    }
}

impl<T: Record> std::ops::Deref for LaneBatch<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.records
    }
}
