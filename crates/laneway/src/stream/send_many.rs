//! Many events on their way.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use bytes::Bytes;
use laneway_core::limits::EVENTS_PER_APPEND_MAX;
use laneway_core::store::ObjectWrite;
use laneway_core::{Draft, Refusal};
use laneway_engine::log::Appending;

use super::draft::{dedup_of, drafts_of};
use super::handle::Stream;
use super::receipt::Receipt;
use super::send::{Object, object};
use super::send_error::SendError;
use crate::record::Record;

/// Many events on their way, in order: `.await` it.
///
/// If one of them could never be appended, none is, and the error names it. Otherwise those of one partition go together
/// or not at all, a thousand at a time, and there is one answer each; when one is not appended, those behind its thousand
/// are not tried ([`SendError::Behind`]). With an object all of them must have its key, and be a thousand at most: then
/// everything goes in one step.
///
/// ```
/// use laneway::prelude::*;
/// use laneway::Append;
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "account")]
/// # struct Payment { account: String, cents: i64 }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let app = Laneway::open("memory:").await?;
/// let payments = app.stream::<Payment>("payments");
/// let month: Vec<Payment> =
///     (1..=2_500).map(|cents| Payment { account: format!("a{}", cents % 7), cents }).collect();
/// let receipts = payments.send_many(&month).dedup_id("2026-10").await?;
/// assert!(receipts.len() == 2_500 && receipts.iter().all(Result::is_ok));
/// // After a crash, or an answer that got lost: whatever is there already is not sent again.
/// for receipt in payments.send_many(&month).dedup_id("2026-10").await? {
///     assert_eq!(receipt?.append, Append::Duplicate);
/// }
/// # Ok(()) }
/// ```
#[must_use = "nothing is sent before it is awaited"]
#[derive(Debug)]
pub struct SendingMany<'a, T> {
    stream: &'a Stream<T>,
    drafts: Result<Vec<Draft>, SendError>,
    dedup_id: Option<Vec<u8>>,
    object: Object,
}

impl<'a, T: Record> SendingMany<'a, T> {
    pub(super) fn new<'r>(stream: &'a Stream<T>, records: impl IntoIterator<Item = &'r T>) -> Self {
        Self { stream, drafts: drafts_of(records), dedup_id: None, object: Object::default() }
    }

    object!();

    /// Names the call at its producer: the same records again are the same events as long as the stream remembers them
    /// ([`Stream::dedup_window`](crate::Stream::dedup_window)), and another one in the place of one of them is a conflict. Each event gets this, `/` and its index as its own dedup id.
    pub fn dedup_id(mut self, id: impl Into<Vec<u8>>) -> Self {
        self.dedup_id = Some(id.into());
        self
    }

    async fn send(self) -> Result<Vec<Result<Receipt, SendError>>, SendError> {
        let (mut drafts, object) = (self.drafts?, self.object.into_write()?);
        if let Some(id) = self.dedup_id {
            for (index, draft) in drafts.iter_mut().enumerate() {
                let id = [id.as_slice(), format!("/{index}").as_bytes()].concat();
                draft.dedup = Some(dedup_of(Bytes::from(id), draft));
            }
        }
        if object.is_some() && !(1..=EVENTS_PER_APPEND_MAX).contains(&drafts.len()) {
            let limit = format!("1 to {EVENTS_PER_APPEND_MAX}");
            return Err(Refusal::new("events with one object", drafts.len().to_string(), limit).into());
        }
        self.stream.define().await?;
        let producer = self.stream.shared().engine.producer();
        producer.check(self.stream.name(), &drafts).await.map_err(SendError::of_many)?;
        send_all(self.stream, drafts, object).await
    }
}

/// Appends a thousand at a time. Once one was not appended, nothing behind its thousand is tried: it would overtake.
async fn send_all<T: Record>(
    stream: &Stream<T>,
    mut drafts: Vec<Draft>,
    object: Option<ObjectWrite>,
) -> Result<Vec<Result<Receipt, SendError>>, SendError> {
    let count = drafts.len();
    let mut receipts = Vec::with_capacity(count);
    let mut all_appended = true;
    while !drafts.is_empty() && all_appended {
        let rest = drafts.split_off(drafts.len().min(EVENTS_PER_APPEND_MAX));
        let sent = match stream.append(Appending { drafts, object: object.clone() }).await {
            Ok(sent) => sent,
            Err(error) if receipts.is_empty() => return Err(SendError::of_many(error)),
            // What was appended before must be told, so this is an answer as well.
            Err(error) => vec![Err(error.into())],
        };
        all_appended = sent.iter().all(Result::is_ok);
        receipts.extend(sent);
        drafts = rest;
    }
    receipts.resize_with(count, || Err(SendError::Behind));
    Ok(receipts)
}

impl<'a, T: Record> IntoFuture for SendingMany<'a, T> {
    type Output = Result<Vec<Result<Receipt, SendError>>, SendError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
