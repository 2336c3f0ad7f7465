//! Many events on their way.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use laneway_core::limits::EVENTS_PER_APPEND_MAX;
use laneway_core::{Draft, Refusal};
use laneway_engine::log::Appending;

use super::draft::draft_of;
use super::handle::Stream;
use super::receipt::Receipt;
use super::send::{Object, object};
use super::send_error::SendError;
use crate::record::Record;

/// Many events on their way, in order: `.await` it.
///
/// If one of them could never be appended, none is. Otherwise those of one partition go together or not at all, a
/// thousand at a time, and there is one answer each. With an object all of them must have its key, and be a thousand at
/// most: then everything goes in one step.
///
/// ```
/// use laneway::prelude::*;
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "account")]
/// # struct Payment { account: String, cents: i64 }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let app = Laneway::open("memory:").await?;
/// let payments = app.stream::<Payment>("payments");
/// let month: Vec<Payment> =
///     (1..=2_500).map(|cents| Payment { account: format!("a{}", cents % 7), cents }).collect();
/// let receipts = payments.send_many(&month).await?;
/// assert!(receipts.len() == 2_500 && receipts.iter().all(Result::is_ok));
/// # Ok(()) }
/// ```
#[must_use = "nothing is sent before it is awaited"]
#[derive(Debug)]
pub struct SendingMany<'a, T> {
    stream: &'a Stream<T>,
    drafts: Result<Vec<Draft>, SendError>,
    object: Object,
}

impl<'a, T: Record> SendingMany<'a, T> {
    pub(super) fn new<'r>(stream: &'a Stream<T>, records: impl IntoIterator<Item = &'r T>) -> Self {
        let checked = |record| {
            let draft = draft_of(record)?;
            draft.check()?;
            Ok(draft)
        };
        Self { stream, drafts: records.into_iter().map(checked).collect(), object: Object::default() }
    }

    object!();

    async fn send(self) -> Result<Vec<Result<Receipt, SendError>>, SendError> {
        let (mut drafts, object) = (self.drafts?, self.object.into_write()?);
        if object.is_some() {
            Refusal::check_max("events with one object", drafts.len(), EVENTS_PER_APPEND_MAX)?;
            return self.stream.append(Appending { drafts, object }).await;
        }
        let mut receipts = Vec::with_capacity(drafts.len());
        while !drafts.is_empty() {
            let rest = drafts.split_off(drafts.len().min(EVENTS_PER_APPEND_MAX));
            receipts.extend(self.stream.append(Appending { drafts, object: None }).await?);
            drafts = rest;
        }
        Ok(receipts)
    }
}

impl<'a, T: Record> IntoFuture for SendingMany<'a, T> {
    type Output = Result<Vec<Result<Receipt, SendError>>, SendError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
