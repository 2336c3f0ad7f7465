//! One event on its way.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use laneway_core::Refusal;
use laneway_core::store::ObjectWrite;
use laneway_engine::log::Appending;
use serde::Serialize;

use super::draft::{Options, options};
use super::handle::Stream;
use super::receipt::Receipt;
use super::send_error::SendError;
use crate::format;
use crate::record::Record;

/// An event on its way: options first, then `.await`.
///
/// ```
/// use laneway::prelude::*;
/// use laneway::Append;
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "customer")]
/// # struct Reminder { customer: String }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let app = Laneway::open("memory:").await?;
/// let reminders = app.stream::<Reminder>("reminders");
/// let reminder = Reminder { customer: "ann".to_owned() };
///
/// let later = reminders.send(&reminder).delay(days(1)).priority(2).dedup_id("invoice-17").await?;
/// assert!(matches!(later.append, Append::Scheduled { .. }));
/// // A second try, after an answer that got lost, changes nothing.
/// let again = reminders.send(&reminder).delay(days(1)).dedup_id("invoice-17").await?;
/// assert_eq!(again.append, Append::Duplicate);
/// # Ok(()) }
/// ```
///
/// Time, headers and the object of the lane:
///
/// ```
/// use laneway::prelude::*;
/// use laneway::testing::App;
/// use std::time::{Duration, UNIX_EPOCH};
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "customer")]
/// # struct Reminder { customer: String }
/// # async fn mail(Event(_): Event<Reminder>) -> Result<()> { Ok(()) }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<()> {
/// # let app = App::new();
/// # let reminders = app.stream::<Reminder>("reminders");
/// # let reminder = Reminder { customer: "ann".to_owned() };
/// // At a date of the wall clock; a delay keeps its length instead.
/// let new_year = UNIX_EPOCH + Duration::from_secs(2_082_758_400);
/// reminders.send(&reminder).run_at(new_year).await?;
/// // Joins its lane now, and what comes behind it waits these ten minutes too.
/// reminders.send(&reminder).hold(mins(10)).await?;
/// // Of no use after an hour; handlers read the header with `Ctx::headers`.
/// reminders.send(&reminder).ttl(hours(1)).header("language", "de").await?;
/// // Its run, and what that emits, belong to the trace of the caller.
/// let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// if let Some(trace) = laneway::TraceContext::parse(text, None) {
///     reminders.send(&reminder).trace(&trace).await?;
/// }
/// // What is known of the customer goes along, and goes away with the last event.
/// reminders.send(&reminder).object(&"ann@example.org").await?;
/// reminders.send(&reminder).remove_object().expect_object_version(1).await?;
/// assert_eq!(reminders.object::<String>("ann").await?.value, None);
/// # Ok(()) }
/// ```
#[must_use = "nothing is sent before it is awaited"]
#[derive(Debug)]
pub struct Sending<'a, T> {
    stream: &'a Stream<T>,
    options: Options,
    object: Object,
}

/// A change of the lane's object that goes along.
#[derive(Debug, Default)]
pub(super) struct Object {
    expect: Option<u64>,
    value: Option<Result<Option<bytes::Bytes>, format::FormatError>>,
}

impl Object {
    pub(super) fn set<O: Serialize>(&mut self, object: &O) {
        self.value = Some(format::encode("the object", object).map(Some));
    }

    pub(super) fn remove(&mut self) {
        self.value = Some(Ok(None));
    }

    pub(super) fn expect(&mut self, version: u64) {
        self.expect = Some(version);
    }

    pub(super) fn into_write(self) -> Result<Option<ObjectWrite>, SendError> {
        let Some(value) = self.value else {
            let limit = "absent unless an object is written or removed along";
            let unwanted = |version: u64| Refusal::new("expect_object_version", version.to_string(), limit);
            return self.expect.map(unwanted).map_or(Ok(None), |refusal| Err(refusal.into()));
        };
        Ok(Some(ObjectWrite { expect: self.expect, value: value? }))
    }
}

/// Methods of a builder with a field `object`.
macro_rules! object {
    () => {
        /// Writes the object of the lane in the same step.
        pub fn object<O: serde::Serialize>(mut self, object: &O) -> Self {
            self.object.set(object);
            self
        }

        /// Removes the object of the lane in the same step.
        pub fn remove_object(mut self) -> Self {
            self.object.remove();
            self
        }

        /// Writes or removes the object only if it has this version; 0 if there must be none.
        pub fn expect_object_version(mut self, version: u64) -> Self {
            self.object.expect(version);
            self
        }
    };
}
pub(super) use object;

impl<'a, T: Record> Sending<'a, T> {
    pub(super) fn new(stream: &'a Stream<T>, record: &T) -> Self {
        Self { stream, options: Options::new(record), object: Object::default() }
    }

    options!();
    object!();

    /// Names it at its producer: the same again is the same event as long as the stream remembers it
    /// ([`Stream::dedup_window`](crate::Stream::dedup_window)). Another body is a conflict.
    pub fn dedup_id(mut self, id: impl Into<Vec<u8>>) -> Self {
        self.options.dedup_id(id.into());
        self
    }

    async fn send(self) -> Result<Receipt, SendError> {
        let (draft, object) = (self.options.into_draft()?, self.object.into_write()?);
        self.stream.define().await?;
        let sent = self.stream.append(Appending { drafts: vec![draft], object }).await?;
        sent.into_iter().next().expect("one answer per draft")
    }
}

impl<'a, T: Record> IntoFuture for Sending<'a, T> {
    type Output = Result<Receipt, SendError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
