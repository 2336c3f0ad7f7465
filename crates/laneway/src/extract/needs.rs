//! The trait behind the arguments of handlers, and what they need before anything runs.

use std::any::{TypeId, type_name};
use std::future::Future;
use std::sync::Arc;

use super::scope::Scope;
use crate::error::Result;
use crate::record::Record;

/// Something a handler may have as an argument.
///
/// ```
/// use laneway::prelude::*;
/// use laneway::extract::{Extract, Scope};
/// use std::sync::Arc;
///
/// /// The language in which the customer wants to be addressed.
/// struct Language(String);
///
/// impl Extract for Language {
///     async fn extract(scope: &Arc<Scope>) -> Result<Self> {
///         let named = scope.event().headers.get("language").unwrap_or(b"en");
///         Ok(Self(String::from_utf8_lossy(named).into_owned()))
///     }
/// }
///
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "customer")]
/// # struct Order { customer: String }
/// async fn greet(Event(order): Event<Order>, Language(language): Language) -> Result<()> {
///     // …
///     # drop((order, language));
///     Ok(())
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a handler",
    label = "not something a run can give",
    note = "behind the event a handler may take `LaneState<S>`, `Object<O>`, `Emit<T>`, `Ctx`, `State<T>`, or a type \
            that implements `laneway::extract::Extract`"
)]
pub trait Extract: Sized + Send {
    /// Says what must be there before anything runs, so that its absence is a fault at the start.
    fn need(_needs: &mut Needs) {}

    /// Takes it from the run. An error counts as a failed attempt.
    fn extract(scope: &Arc<Scope>) -> impl Future<Output = Result<Self>> + Send;
}

/// What the arguments of a handler need; see [`Extract::need`].
///
/// ```
/// use laneway::extract::{Extract, Needs, Scope};
/// use laneway::prelude::*;
/// use std::sync::Arc;
///
/// struct Pool;
/// /// A connection of the pool that the app shares.
/// struct Connection(Arc<Pool>);
///
/// impl Extract for Connection {
///     fn need(needs: &mut Needs) {
///         needs.shared::<Pool>();
///     }
///
///     async fn extract(scope: &Arc<Scope>) -> Result<Self> {
///         Ok(Self(scope.shared().ok_or_else(|| Error::permanent("no pool"))?))
///     }
/// }
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "account")]
/// # struct Payment { account: String, cents: i64 }
/// async fn book(Event(_): Event<Payment>, Connection(_): Connection) -> Result<()> { Ok(()) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let app = Laneway::open("memory:").await?;
/// app.processor("book", &app.stream::<Payment>("payments"), book);
/// let forgotten = app.start().await.unwrap_err();
/// assert!(forgotten.to_string().contains("Pool"), "told before anything runs");
/// app.clone().state(Pool).start().await?;
/// # app.stop(secs(5)).await;
/// # Ok(()) }
/// ```
#[derive(Debug, Default)]
pub struct Needs {
    pub(crate) shared: Vec<(TypeId, &'static str)>,
    pub(crate) emits: Vec<(TypeId, &'static str)>,
    pub(crate) lane_state: bool,
    /// It takes the heads of several lanes.
    pub(crate) over_lanes: bool,
}

impl Needs {
    /// A value handed to [`Laneway::state`](crate::Laneway::state).
    pub fn shared<T: 'static>(&mut self) {
        self.shared.push((TypeId::of::<T>(), type_name::<T>()));
    }

    /// A stream that carries this record.
    pub fn emits<T: Record>(&mut self) {
        self.emits.push((TypeId::of::<T>(), type_name::<T>()));
    }

    /// The lane's state; without this call it is not read.
    pub fn lane_state(&mut self) {
        self.lane_state = true;
    }
}
