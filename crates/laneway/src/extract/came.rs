//! What came: the first argument of every handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
/// `Ok` settles all of them. A handler that fails in the middle first says how far it came, with
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
    done: Arc<AtomicUsize>,
}

impl<T: Record> LaneBatch<T> {
    pub(crate) fn new(records: Vec<T>, done: Arc<AtomicUsize>) -> Self {
        Self { records, done }
    }

    /// Says that the first so many events are done, whatever becomes of the others.
    pub fn done_through(&self, count: usize) {
        self.done.store(count.min(self.records.len()), Ordering::Relaxed);
    }
}

impl<T: Record> std::ops::Deref for LaneBatch<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.records
    }
}
