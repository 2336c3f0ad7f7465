//! The lane's state: a value per processor and lane that is committed together with the outcome.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::needs::{Extract, Needs};
use super::scope::{Kept, Scope};
use crate::error::{Error, Result};
use crate::format::{self, FormatError};

/// A value of your own per lane, which only this processor writes.
///
/// A lane without one begins with `S::default()`. What the handler changed is written when it succeeds, in the same
/// step as its outcome, result and emits; a failed run changes nothing. A lane needs a key to have a state.
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
/// #[derive(Default, Serialize, Deserialize)]
/// struct Account {
///     total: i64,
/// }
///
/// async fn book(Event(payment): Event<Payment>, mut account: LaneState<Account>) -> Result<i64> {
///     account.total += payment.cents;
///     Ok(account.total)
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let app = Laneway::open("memory:").await?;
/// let payments = app.stream::<Payment>("payments");
/// app.processor("book", &payments, book);
/// app.start().await?;
/// payments.send(&Payment { account: "a1".to_owned(), cents: 500 }).await?;
/// let second = Payment { account: "a1".to_owned(), cents: -200 };
/// assert_eq!(payments.submit_as::<i64>(&second).await?.wait(secs(10)).await?, 300);
/// # app.stop(secs(5)).await;
/// # Ok(()) }
/// ```
///
/// A lane that is over leaves nothing behind:
///
/// ```
/// use laneway::prelude::*;
/// use laneway::testing::App;
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "order")]
/// # struct Scanned { order: String, is_last: bool }
/// async fn pack(Event(scanned): Event<Scanned>, mut count: LaneState<u32>) -> Result<String> {
///     let first = if count.is_new() { "a new parcel, " } else { "" };
///     *count += 1;
///     let told = format!("{first}{} in it", *count);
///     if scanned.is_last {
///         count.remove(); // the next order of this name begins with an empty parcel
///     }
///     Ok(told)
/// }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<()> {
/// # let app = App::new();
/// # let scans = app.stream::<Scanned>("scans");
/// # app.processor("pack", &scans, pack);
/// # app.start().await?;
/// let mut told = Vec::new();
/// for is_last in [false, true, false] {
///     let job = scans.submit_as::<String>(&Scanned { order: "o1".to_owned(), is_last }).await?;
///     told.push(job.wait(secs(10)).await?);
/// }
/// assert_eq!(told, ["a new parcel, 1 in it", "2 in it", "a new parcel, 1 in it"]);
/// # Ok(()) }
/// ```
pub struct LaneState<S> {
    /// `None` only while it is being removed.
    value: Option<S>,
    found: bool,
    touched: bool,
    scope: Arc<Scope>,
    encode: fn(&S) -> Result<Bytes, FormatError>,
}

impl<S> LaneState<S> {
    /// Whether the lane had no state before this run.
    pub fn is_new(&self) -> bool {
        !self.found
    }

    /// Removes the state when the run succeeds: the lane's next run begins with the default again.
    pub fn remove(mut self) {
        self.value = None;
    }
}

impl<S> Deref for LaneState<S> {
    type Target = S;

    fn deref(&self) -> &S {
        self.value.as_ref().expect("only `remove` takes it, and that ends this handle")
    }
}

impl<S> DerefMut for LaneState<S> {
    fn deref_mut(&mut self) -> &mut S {
        self.touched = true;
        self.value.as_mut().expect("only `remove` takes it, and that ends this handle")
    }
}

impl<S> Drop for LaneState<S> {
    fn drop(&mut self) {
        self.scope.give_back(match &self.value {
            None => Kept::Removed,
            Some(value) if self.touched => Kept::Changed((self.encode)(value)),
            Some(_) => Kept::Same,
        });
    }
}

impl<S: std::fmt::Debug> std::fmt::Debug for LaneState<S> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("LaneState").field(&self.value).finish()
    }
}

impl<S> Extract for LaneState<S>
where
    S: Default + Serialize + DeserializeOwned + Send,
{
    fn need(needs: &mut Needs) {
        needs.lane_state();
    }

    async fn extract(scope: &Arc<Scope>) -> Result<Self> {
        if scope.event().key.is_none() {
            return Err(Error::permanent("LaneState: the event has no key, so its lane keeps no state"));
        }
        let stored = scope.lend_state()?;
        let found = stored.is_some();
        let value = match stored {
            Some(bytes) => match format::decode("the lane's state", &bytes) {
                Ok(value) => value,
                Err(error) => {
                    scope.give_back(Kept::Same);
                    return Err(Error::permanent(error));
                }
            },
            None => S::default(),
        };
        let encode = |value: &S| format::encode("the lane's state", value);
        Ok(Self { value: Some(value), found, touched: false, scope: Arc::clone(scope), encode })
    }
}
