//! The heads of several lanes in one call, with an outcome each.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use laneway_engine::handler::{Failure, LaneAnswer};
use parking_lot::Mutex;
use serde::Serialize;

use super::ctx::Ctx;
use super::needs::Extract;
use super::scope::{Finished, Scope};
use crate::error::{Error, Result};
use crate::format;
use crate::record::Record;

/// The first events of several lanes, for work that is cheaper together: one statement, one request, one file.
///
/// Each lane has an outcome of its own: [`done`](Self::done), [`answer`](Self::answer) or [`fail`](Self::fail), by the
/// index of its record. Those that nothing was said of follow what the handler returns: `Ok` settles them, and its value
/// is the result of those that are jobs; with `Err` they have failed. A lane that fails waits or is given up as the
/// policy says, and the others go on.
///
/// Up to a hundred lanes of one partition come together, or as many as
/// [`Batch::lanes`](crate::Batch::lanes) says. What belongs to one lane is found by [`ctx`](Self::ctx), and as
/// [`Each`](crate::Each) of an argument: its state, what it emits, its object. Other arguments are those that belong to
/// no lane, such as [`State`](crate::State).
///
/// ```
/// use laneway::prelude::*;
/// use laneway::testing::App;
///
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "account")]
/// # struct Payment { account: String, cents: i64 }
/// async fn insert(payments: HeadBatch<Payment>) -> Result<()> {
///     // One statement for all of them; the bank says which it did not take.
///     for (index, payment) in payments.iter().enumerate() {
///         if payment.cents < 0 {
///             payments.fail(index, Error::permanent(format!("{} is overdrawn", payment.account)));
///         }
///     }
///     Ok(())
/// }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<()> {
/// let app = App::new();
/// let payments = app.stream::<Payment>("payments");
/// app.processor("insert", &payments, insert).batch(Batch::Lanes { max: 500, within: secs(1) });
/// app.start().await?;
/// for (account, cents) in [("a1", 500), ("a2", -200), ("a3", 700)] {
///     payments.send(&Payment { account: account.to_owned(), cents }).await?;
/// }
/// app.run_until_quiet().await;
/// let parked = app.operations("insert").parked().await?;
/// assert_eq!((parked.len(), parked[0].cause.as_str()), (1, "a2 is overdrawn"));
/// # Ok(()) }
/// ```
///
/// An argument that belongs to one lane is refused where the handler is used:
///
/// ```compile_fail,E0277
/// # use laneway::prelude::*;
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "account")]
/// # struct Payment { account: String }
/// # async fn main_(app: Laneway) {
/// async fn insert(_: HeadBatch<Payment>, _: LaneState<u64>) -> Result<()> { Ok(()) } // whose state?
/// app.processor("insert", &app.stream::<Payment>("payments"), insert);
/// # }
/// ```
#[derive(Debug)]
pub struct HeadBatch<T: Record> {
    records: Vec<T>,
    contexts: Vec<Ctx>,
    said: Arc<Said>,
}

/// An argument that belongs to no lane, so that a handler that takes a [`HeadBatch`] may have it too. Its
/// [`extract`](Extract::extract) sees the run of the first head.
///
/// ```
/// use laneway::prelude::*;
/// use laneway::extract::{Extract, OverLanes, Scope};
/// use std::sync::Arc;
///
/// /// How many rows one statement may have.
/// struct RowsMax(usize);
///
/// impl Extract for RowsMax {
///     async fn extract(scope: &Arc<Scope>) -> Result<Self> {
///         Ok(Self(scope.shared::<usize>().map_or(100, |max| *max)))
///     }
/// }
/// impl OverLanes for RowsMax {}
///
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "account")]
/// # struct Payment { account: String }
/// async fn insert(payments: HeadBatch<Payment>, RowsMax(max): RowsMax) -> Result<()> {
///     for rows in payments.chunks(max) {
///         // …
///         # drop(rows);
///     }
///     Ok(())
/// }
/// # fn is_handler<M>(_: impl laneway::handler::Handler<Payment, M>) {}
/// # is_handler(insert);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument beside a `HeadBatch`",
    label = "belongs to one lane",
    note = "a handler of many lanes may take `State<T>`, `Each<{Self}>` to have one for each head, or a type that \
            implements `laneway::extract::OverLanes`"
)]
pub trait OverLanes: Extract {
    /// Takes it from the runs of all heads. Default: from that of the first.
    fn extract_over(heads: &[Arc<Scope>]) -> impl Future<Output = Result<Self>> + Send {
        async move { Self::extract(&heads[0]).await }
    }
}

/// What the handler said of each lane, and the runs that gather what it did.
pub(crate) struct Said {
    outcomes: Mutex<Vec<Option<Outcome>>>,
    heads: Vec<Arc<Scope>>,
}

#[derive(Debug)]
enum Outcome {
    Done,
    Answered(Bytes),
    Failed(Error),
}

impl<T: Record> HeadBatch<T> {
    pub(crate) fn new(heads: Vec<(T, Arc<Scope>)>) -> (Self, Arc<Said>) {
        let (records, heads): (Vec<T>, Vec<Arc<Scope>>) = heads.into_iter().unzip();
        let contexts = heads.iter().map(|scope| Ctx::of(Arc::clone(scope))).collect();
        let outcomes = Mutex::new(heads.iter().map(|_| None).collect());
        let said = Arc::new(Said { outcomes, heads });
        (Self { records, contexts, said: Arc::clone(&said) }, said)
    }

    /// The run of one lane: its event, attempt and fence.
    ///
    /// # Panics
    /// When there is no such index; that counts as a failure of the whole run.
    pub fn ctx(&self, index: usize) -> &Ctx {
        &self.contexts[index]
    }

    /// Says that one of them is done, whatever becomes of the others.
    ///
    /// # Panics
    /// When there is no such index; that counts as a failure of the whole run.
    pub fn done(&self, index: usize) {
        self.said.say(index, Outcome::Done);
    }

    /// Says that one of them is done, and what its submitter gets if it is a job.
    ///
    /// # Errors
    /// When the value cannot be serialised: then nothing was said.
    ///
    /// # Panics
    /// When there is no such index; that counts as a failure of the whole run.
    pub fn answer<R: Serialize>(&self, index: usize, result: &R) -> Result<()> {
        let result = format::encode("the result", result).map_err(Error::permanent)?;
        self.said.say(index, Outcome::Answered(result));
        Ok(())
    }

    /// Says that one of them has failed, whatever becomes of the others.
    ///
    /// # Panics
    /// When there is no such index; that counts as a failure of the whole run.
    pub fn fail(&self, index: usize, error: impl Into<Error>) {
        self.said.say(index, Outcome::Failed(error.into()));
    }
}

impl<T: Record> std::ops::Deref for HeadBatch<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.records
    }
}

impl Said {
    fn say(&self, index: usize, outcome: Outcome) {
        self.outcomes.lock()[index] = Some(outcome);
    }

    /// The runs of all heads.
    pub(crate) fn heads(&self) -> &[Arc<Scope>] {
        &self.heads
    }

    /// The answers for all lanes, given what the handler returned for those it did not mention.
    pub(crate) fn into_answers(self: &Arc<Self>, returned: Result<Option<Bytes>>) -> Vec<LaneAnswer> {
        let said = std::mem::take(&mut *self.outcomes.lock());
        let others = returned.map_err(Error::into_failure);
        let answers = said.into_iter().zip(&self.heads).map(|(outcome, head)| match (outcome, &others) {
            (Some(Outcome::Done), _) => done(head, None),
            (Some(Outcome::Answered(result)), _) => done(head, Some(result)),
            (None, Ok(result)) => done(head, result.clone()),
            (Some(Outcome::Failed(error)), _) => failed(error.into_failure()),
            (None, Err(failure)) => failed(failure.clone()),
        });
        answers.collect()
    }
}

/// One head is done, with the state and the emits that its run left.
fn done(head: &Scope, result: Option<Bytes>) -> LaneAnswer {
    match head.finish(result) {
        Ok(Finished { done, state }) => LaneAnswer { done: vec![done], state, ..LaneAnswer::default() },
        Err(error) => failed(error.into_failure()),
    }
}

fn failed(failure: Failure) -> LaneAnswer {
    LaneAnswer { failure: Some(failure), ..LaneAnswer::default() }
}

impl std::fmt::Debug for Said {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Said").field(&self.outcomes).finish()
    }
}
