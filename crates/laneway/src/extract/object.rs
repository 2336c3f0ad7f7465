//! The object of the event's lane, which producers write and handlers read.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::needs::Extract;
use super::scope::Scope;
use crate::error::{Error, Result};
use crate::format;

/// The object of the lane: a value that producers write together with their events.
///
/// It is read when the run begins, so it is at least as new as the event and may be newer.
///
/// ```
/// use laneway::prelude::*;
///
/// #[derive(Record, Serialize, Deserialize)]
/// #[record(key = "customer")]
/// struct Moved {
///     customer: String,
/// }
///
/// #[derive(Serialize, Deserialize)]
/// struct Customer {
///     city: String,
/// }
///
/// async fn reprint(Event(_): Event<Moved>, customer: Object<Customer>) -> Result<String> {
///     Ok(customer.value.map_or("nowhere".to_owned(), |customer| customer.city))
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let app = Laneway::open("memory:").await?;
/// let moves = app.stream::<Moved>("moves");
/// app.processor("reprint", &moves, reprint);
/// app.start().await?;
/// let moved = Moved { customer: "ann".to_owned() };
/// // The customer and the event change together, or not at all.
/// moves.send(&moved).object(&Customer { city: "Bern".to_owned() }).expect_object_version(0).await?;
/// assert_eq!(moves.submit_as::<String>(&moved).await?.wait(secs(10)).await?, "Bern");
/// # app.stop(secs(5)).await;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Object<O> {
    /// The value, if there is one.
    pub value: Option<O>,
    /// How often it was written; 0 if never.
    pub version: u64,
}

impl<O: DeserializeOwned> Object<O> {
    pub(crate) fn read(tail: Option<laneway_core::store::TailView>) -> Result<Self, format::FormatError> {
        let Some(stored) = tail.and_then(|tail| tail.object) else {
            return Ok(Self { value: None, version: 0 });
        };
        let value = format::decode("the lane's object", &stored.bytes)?;
        Ok(Self { value: Some(value), version: stored.version })
    }
}

impl<O: DeserializeOwned + Send> Extract for Object<O> {
    async fn extract(scope: &Arc<Scope>) -> Result<Self> {
        let parts = scope.parts();
        let Some(key) = &parts.event.key else {
            return Err(Error::permanent("Object: the event has no key, so its lane has no object"));
        };
        let tail = parts.ground.engine.looker().tail(&parts.ground.stream, key).await?;
        Self::read(tail).map_err(Error::permanent)
    }
}
