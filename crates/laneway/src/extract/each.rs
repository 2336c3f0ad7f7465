//! What belongs to one lane, for handlers that take the heads of many.

use std::marker::PhantomData;
use std::sync::Arc;

use super::heads::OverLanes;
use super::needs::{Extract, Needs};
use super::scope::Scope;
use crate::error::{Error, Result};

/// An argument of one lane for every head of a [`HeadBatch`](crate::HeadBatch): its [`LaneState`](crate::LaneState), its
/// [`Emit`](crate::Emit), its [`Object`](crate::Object), or a type of yours.
///
/// What is done with it counts if its head is done, in the same step, whatever becomes of the others. One that cannot be
/// had, for instance the state of an event without a key, need not fail them: tell the batch so.
///
/// ```
/// use laneway::prelude::*;
/// use laneway::testing::App;
///
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "account")]
/// # struct Payment { account: String, cents: i64 }
/// #[derive(Record, Serialize, Deserialize, Debug, PartialEq)]
/// #[record(key = "account")]
/// struct Statement { account: String, total: i64 }
///
/// async fn book(
///     payments: HeadBatch<Payment>,
///     totals: Each<LaneState<i64>>,
///     out: Each<Emit<Statement>>,
/// ) -> Result<()> {
///     // One statement to a database for all of them could go here.
///     for (index, payment) in payments.iter().enumerate() {
///         let mut total = totals.of(index).await?;
///         if *total + payment.cents < 0 {
///             payments.fail(index, Error::permanent("overdrawn")); // its state stays as it was
///             continue;
///         }
///         *total += payment.cents;
///         out.of(index).await?.send(Statement { account: payment.account.clone(), total: *total })?;
///     }
///     Ok(())
/// }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<()> {
/// let app = App::new();
/// let payments = app.stream::<Payment>("payments");
/// let statements = app.stream::<Statement>("statements");
/// app.processor("book", &payments, book);
/// app.start().await?;
/// for cents in [500, -200] {
///     payments.send(&Payment { account: "a1".to_owned(), cents }).await?;
/// }
/// app.run_until_quiet().await;
/// let totals: Vec<i64> = app.sent(&statements).await.into_iter().map(|sent| sent.total).collect();
/// assert_eq!(totals, [500, 300]);
/// # Ok(()) }
/// ```
pub struct Each<E> {
    heads: Vec<Arc<Scope>>,
    taken: PhantomData<fn() -> E>,
}

impl<E: Extract> Each<E> {
    /// That of one head.
    ///
    /// # Errors
    /// When this head cannot have it.
    pub async fn of(&self, index: usize) -> Result<E> {
        let none = || Error::permanent(format!("index is {index}, must be below {}", self.heads.len()));
        E::extract(self.heads.get(index).ok_or_else(none)?).await
    }

    fn over(heads: &[Arc<Scope>]) -> Self {
        Self { heads: heads.to_vec(), taken: PhantomData }
    }
}

impl<E: Extract> Extract for Each<E> {
    fn need(needs: &mut Needs) {
        E::need(needs);
    }

    async fn extract(scope: &Arc<Scope>) -> Result<Self> {
        Ok(Self::over(std::slice::from_ref(scope)))
    }
}

impl<E: Extract> OverLanes for Each<E> {
    async fn extract_over(heads: &[Arc<Scope>]) -> Result<Self> {
        Ok(Self::over(heads))
    }
}

impl<E> std::fmt::Debug for Each<E> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Each").field("heads", &self.heads.len()).finish_non_exhaustive()
    }
}
