//! Which functions are handlers.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use laneway_engine::Batch;
use laneway_engine::handler::LaneAnswer;
use serde::Serialize;

use super::adapter::{LaneCall, each, side_by_side, together, whole};
use crate::error::Error;
use crate::extract::{Event, Extract, HeadBatch, Job, LaneBatch, Needs, OneByOne, OverLanes};
use crate::record::{JobRecord, Record};
use crate::seam;

/// An async function that runs events of a stream of `T`.
///
/// Its first argument is what came: [`Event<T>`](Event), [`Job<T>`](Job), [`LaneBatch<T>`](LaneBatch) or
/// [`HeadBatch<T>`](HeadBatch). Up to eight arguments of types that implement [`Extract`] may follow. It returns a `Result`: `Ok` settles the event, and its
/// value is the result of a job; `Err` follows the processor's policy. `Arguments` is told by the compiler.
///
/// ```
/// use laneway::prelude::*;
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "account")]
/// # struct Payment { account: String, cents: i64 }
/// # #[derive(Default, Serialize, Deserialize)]
/// # struct Account { total: i64 }
///
/// async fn book(Event(payment): Event<Payment>, mut account: LaneState<Account>, ctx: Ctx) -> Result<i64> {
///     tracing::info!(event = %ctx.reference(), attempt = ctx.attempt(), "booked");
///     account.total += payment.cents;
///     Ok(account.total)
/// }
/// # use laneway::handler::Handler;
/// # fn is_handler<M>(_: impl Handler<Payment, M>) {}
/// # is_handler(book);
/// ```
///
/// A function that is no handler is refused where it is used:
///
/// ```compile_fail,E0277
/// # use laneway::prelude::*;
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "account")]
/// # struct Payment { account: String, cents: i64 }
/// # async fn main_(app: Laneway) {
/// async fn book(payment: Payment) {} // neither `Event<Payment>` nor a `Result`
/// app.processor("book", &app.stream::<Payment>("payments"), book);
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "this is no handler for a stream of `{T}`",
    label = "not a handler for `{T}`",
    note = "a handler is `async fn(Event<{T}>, …) -> Result<R, E>`, where `R: Serialize` and `E` turns into `laneway::Error`",
    note = "instead of `Event<{T}>` it may take `Job<{T}>` (then it returns the job's output), `LaneBatch<{T}>` or \
            `HeadBatch<{T}>` (then it takes nothing that belongs to one lane)",
    note = "behind that: `LaneState<S>`, `Object<O>`, `Emit<T>`, `Ctx`, `State<T>` or your own `Extract`, at most eight",
    note = "its future must be `Send`: hold no lock guard, `Rc` or `RefCell` borrow over an await"
)]
pub trait Handler<T, Arguments>: Clone + Send + Sync + 'static {
    /// What one call takes, unless its processor says otherwise.
    #[doc(hidden)]
    const BATCH: Batch = Batch::One;

    /// What its arguments need.
    #[doc(hidden)]
    fn need(needs: &mut Needs);

    /// Runs the events of lanes; one answer each, in order.
    #[doc(hidden)]
    fn run(self, calls: Vec<LaneCall>) -> impl Future<Output = Vec<LaneAnswer>> + Send;
}

/// Events of one call, for a handler that takes several, unless its processor says otherwise.
const BATCH_MAX: usize = 100;

/// The answer of a job's handler within the time that the job allows.
async fn in_time<T: JobRecord, A: Future>(running: A) -> Result<A::Output, Error> {
    let Some(timeout) = T::TIMEOUT else { return Ok(running.await) };
    let late = || Error::new(format!("timed out after {timeout:?}"));
    seam::within(timeout, running).await.ok_or_else(late)
}

macro_rules! functions {
    ($($argument:ident),*) => {
        impl<F, A, T, R, E, $($argument,)*> Handler<T, (Event<T>, $($argument,)*)> for F
        where
            F: Fn(Event<T>, $($argument,)*) -> A + Clone + Send + Sync + 'static,
            A: Future<Output = Result<R, E>> + Send,
            T: Record,
            R: Serialize + Send,
            E: Into<Error>,
            $($argument: Extract,)*
        {
            fn need(_needs: &mut Needs) {
                $($argument::need(_needs);)*
            }

            async fn run(self, calls: Vec<LaneCall>) -> Vec<LaneAnswer> {
                let handler = &self;
                side_by_side(calls, |call| each(call, move |scope| {
                    let handler = handler.clone();
                    async move {
                        let record = scope.record()?;
                        let running = handler(Event(record), $($argument::extract(&scope).await?,)*);
                        let answer = running.await.map_err(Into::into)?;
                        scope.result(&answer)
                    }
                }))
                .await
            }
        }

        impl<F, A, T, E, $($argument,)*> Handler<T, (Job<T>, $($argument,)*)> for F
        where
            F: Fn(Job<T>, $($argument,)*) -> A + Clone + Send + Sync + 'static,
            A: Future<Output = Result<T::Output, E>> + Send,
            T: JobRecord,
            E: Into<Error>,
            $($argument: Extract,)*
        {
            fn need(_needs: &mut Needs) {
                $($argument::need(_needs);)*
            }

            async fn run(self, calls: Vec<LaneCall>) -> Vec<LaneAnswer> {
                let handler = &self;
                side_by_side(calls, |call| each(call, move |scope| {
                    let handler = handler.clone();
                    async move {
                        let record = scope.record()?;
                        let running = handler(Job(record), $($argument::extract(&scope).await?,)*);
                        let answer = in_time::<T, _>(running).await?.map_err(Into::into)?;
                        scope.result(&answer)
                    }
                }))
                .await
            }
        }

        impl<F, A, T, R, E, $($argument,)*> Handler<T, (LaneBatch<T>, $($argument,)*)> for F
        where
            F: Fn(LaneBatch<T>, $($argument,)*) -> A + Clone + Send + Sync + 'static,
            A: Future<Output = Result<R, E>> + Send,
            T: Record,
            R: Serialize + Send,
            E: Into<Error>,
            $($argument: Extract,)*
        {
            const BATCH: Batch = Batch::Lane { max: BATCH_MAX, within: Duration::ZERO };

            fn need(_needs: &mut Needs) {
                $($argument::need(_needs);)*
            }

            async fn run(self, calls: Vec<LaneCall>) -> Vec<LaneAnswer> {
                let handler = &self;
                side_by_side(calls, |call| async move {
                    let said = Arc::new(OneByOne::default());
                    whole(call, &said, |scope, records| {
                        let (handler, batch) = (handler.clone(), LaneBatch::new(records, Arc::clone(&said)));
                        async move {
                            let running = handler(batch, $($argument::extract(&scope).await?,)*);
                            let answer = running.await.map_err(Into::into)?;
                            scope.result_of_any(&answer)
                        }
                    })
                    .await
                })
                .await
            }
        }

        impl<F, A, T, R, E, $($argument,)*> Handler<T, (HeadBatch<T>, $($argument,)*)> for F
        where
            F: Fn(HeadBatch<T>, $($argument,)*) -> A + Clone + Send + Sync + 'static,
            A: Future<Output = Result<R, E>> + Send,
            T: Record,
            R: Serialize + Send,
            E: Into<Error>,
            $($argument: OverLanes,)*
        {
            const BATCH: Batch = Batch::Lanes { max: BATCH_MAX, within: Duration::ZERO };

            fn need(needs: &mut Needs) {
                needs.over_lanes = true;
                $($argument::need(needs);)*
            }

            async fn run(self, calls: Vec<LaneCall>) -> Vec<LaneAnswer> {
                together(calls, |said, batch| async move {
                    let heads = said.heads();
                    let running = self(batch, $($argument::extract_over(heads).await?,)*);
                    let answer = running.await.map_err(Into::into)?;
                    heads[0].result_of_any(&answer)
                })
                .await
            }
        }
    };
}

functions!();
functions!(A1);
functions!(A1, A2);
functions!(A1, A2, A3);
functions!(A1, A2, A3, A4);
functions!(A1, A2, A3, A4, A5);
functions!(A1, A2, A3, A4, A5, A6);
functions!(A1, A2, A3, A4, A5, A6, A7);
functions!(A1, A2, A3, A4, A5, A6, A7, A8);
