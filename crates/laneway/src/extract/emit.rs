//! Emit: events that are sent if the run succeeds, and only then.

use std::any::{TypeId, type_name};
use std::marker::PhantomData;
use std::sync::Arc;

use laneway_engine::handler::Emission;

use super::needs::{Extract, Needs};
use super::scope::Scope;
use crate::error::{Error, Result};
use crate::record::Record;
use crate::stream::draft_of;

/// Sends records to the stream that carries them, in the same step as the outcome of the run.
///
/// They arrive exactly once and in this order per lane, soon after the run is settled. The stream is the one that the
/// app declared for `T`; none, or more than one, is a fault at the start.
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
/// #[derive(Record, Serialize, Deserialize, Debug, PartialEq)]
/// #[record(key = "account")]
/// struct Refused {
///     account: String,
/// }
///
/// async fn book(Event(payment): Event<Payment>, out: Emit<Refused>) -> Result<()> {
///     if payment.cents > 1_000 {
///         out.send(Refused { account: payment.account })?;
///     }
///     Ok(())
/// }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<()> {
/// let app = laneway::testing::App::new();
/// let payments = app.stream::<Payment>("payments");
/// let refused = app.stream::<Refused>("refused");
/// app.processor("book", &payments, book);
/// app.start().await?;
/// payments.send(&Payment { account: "a1".to_owned(), cents: 5_000 }).await?;
/// app.run_until_quiet().await;
/// assert_eq!(app.sent(&refused).await, [Refused { account: "a1".to_owned() }]);
/// # Ok(()) }
/// ```
pub struct Emit<T> {
    scope: Arc<Scope>,
    to: Arc<str>,
    records: PhantomData<fn(T)>,
}

impl<T: Record> Emit<T> {
    /// Sends a record if the run succeeds.
    pub fn send(&self, record: T) -> Result<()> {
        let draft = draft_of(&record).map_err(Error::permanent)?;
        self.scope.emit(Emission { stream: self.to.to_string(), draft });
        Ok(())
    }
}

impl<T: Record> Extract for Emit<T> {
    fn need(needs: &mut Needs) {
        needs.emits::<T>();
    }

    async fn extract(scope: &Arc<Scope>) -> Result<Self> {
        let to = scope.parts().ground.emit_to.get(&TypeId::of::<T>());
        let to = to.ok_or_else(|| Error::permanent(format!("no stream carries {}", type_name::<T>())))?;
        Ok(Self { scope: Arc::clone(scope), to: Arc::clone(to), records: PhantomData })
    }
}

impl<T> std::fmt::Debug for Emit<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Emit").field(&self.to).finish()
    }
}
