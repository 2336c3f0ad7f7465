//! Values that all handlers of an app share.

use std::any::type_name;
use std::sync::Arc;

use super::heads::OverLanes;
use super::needs::{Extract, Needs};
use super::scope::Scope;
use crate::error::{Error, Result};

/// A value handed to [`Laneway::state`](crate::Laneway::state): a pool, a client, a setting.
///
/// ```
/// use laneway::prelude::*;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(keyless)]
/// # struct Visit;
/// #[derive(Default)]
/// struct Counter(AtomicU64);
///
/// async fn count(Event(_): Event<Visit>, State(counter): State<Counter>) -> Result<u64> {
///     Ok(counter.0.fetch_add(1, Ordering::Relaxed) + 1)
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let app = Laneway::open("memory:").await?.state(Counter::default());
/// let visits = app.stream::<Visit>("visits");
/// app.processor("count", &visits, count);
/// app.start().await?;
/// assert_eq!(visits.submit_as::<u64>(&Visit).await?.wait(secs(10)).await?, 1);
/// # app.stop(secs(5)).await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct State<T>(pub Arc<T>);

impl<T: Send + Sync + 'static> OverLanes for State<T> {}

impl<T: Send + Sync + 'static> Extract for State<T> {
    fn need(needs: &mut Needs) {
        needs.shared::<T>();
    }

    async fn extract(scope: &Arc<Scope>) -> Result<Self> {
        let missing = || Error::permanent(format!("the app has no state {}", type_name::<T>()));
        scope.shared().map(Self).ok_or_else(missing)
    }
}
