//! From a record to a draft, and the options that all ways of sending share.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use laneway_core::event::Dedup;
use laneway_core::{Delay, DelayMode, Draft, EventId, Headers, Key, Kind, StartAfter, Timestamp};

use super::send_error::SendError;
use crate::TraceContext;
use crate::format;
use crate::record::Record;

/// The draft of a record, with nothing else asked for.
pub(crate) fn draft_of<T: Record>(record: &T) -> Result<Draft, SendError> {
    let key = record.key().map(|key| Key::copied(&key)).transpose()?;
    let mut draft = Draft::new(key, Kind::new(T::KIND)?, format::encode("the record", record)?);
    draft.generation = record.generation();
    draft.incarnation = record.incarnation();
    draft.delete = record.deleted();
    Ok(draft)
}

/// The drafts of many records; which of them is wrong is part of the error.
pub(crate) fn drafts_of<'r, T: Record>(
    records: impl IntoIterator<Item = &'r T>,
) -> Result<Vec<Draft>, SendError> {
    let checked = |record| {
        let draft = draft_of(record)?;
        draft.check()?;
        Ok(draft)
    };
    let records = records.into_iter().enumerate();
    records.map(|(index, record)| checked(record).map_err(|error: SendError| error.of(index))).collect()
}

/// A draft with options; the first thing wrong with it is told when it is sent.
#[derive(Debug)]
pub(crate) struct Options {
    draft: Result<Draft, SendError>,
    headers: Vec<(String, Vec<u8>)>,
    dedup_id: Option<Bytes>,
}

impl Options {
    pub(crate) fn new<T: Record>(record: &T) -> Self {
        Self { draft: draft_of(record), headers: Vec::new(), dedup_id: None }
    }

    fn change(&mut self, change: impl FnOnce(&mut Draft)) {
        if let Ok(draft) = &mut self.draft {
            change(draft);
        }
    }

    pub(crate) fn delay(&mut self, until: StartAfter, mode: DelayMode) {
        self.change(|draft| draft.delay = Some(Delay { until, mode }));
    }

    pub(crate) fn run_at(&mut self, at: SystemTime) {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = Timestamp(u64::try_from(since.as_micros()).unwrap_or(u64::MAX));
        self.delay(StartAfter::At(at), DelayMode::Join);
    }

    pub(crate) fn priority(&mut self, priority: u8) {
        self.change(|draft| draft.priority = priority);
    }

    pub(crate) fn ttl(&mut self, ttl: Duration) {
        self.change(|draft| draft.ttl = Some(ttl));
    }

    pub(crate) fn expect_prev(&mut self, prev: Option<EventId>) {
        self.change(|draft| draft.expect_prev = Some(prev));
    }

    pub(crate) fn dedup_id(&mut self, id: Vec<u8>) {
        self.dedup_id = Some(Bytes::from(id));
    }

    pub(crate) fn header(&mut self, name: String, value: Vec<u8>) {
        self.headers.push((name, value));
    }

    pub(crate) fn trace(&mut self, context: &TraceContext) {
        self.header("traceparent".to_owned(), context.traceparent().into());
        if let Some(state) = context.tracestate() {
            self.header("tracestate".to_owned(), state.into());
        }
    }

    pub(crate) fn into_draft(self) -> Result<Draft, SendError> {
        let mut draft = self.draft?;
        draft.headers = Headers::new(self.headers)?;
        draft.dedup = self.dedup_id.map(|id| dedup_of(id, &draft));
        draft.check()?;
        Ok(draft)
    }
}

/// What is remembered of a draft that its producer named.
pub(super) fn dedup_of(id: Bytes, draft: &Draft) -> Dedup {
    // As long as the stream says.
    Dedup { id, body: draft.fingerprint(), window: Duration::ZERO }
}

/// The options that sends and submissions share, as methods of a builder with a field `options`.
macro_rules! options {
    () => {
        /// Joins the end of its lane only after this time, which keeps its length when the wall clock jumps.
        pub fn delay(mut self, length: std::time::Duration) -> Self {
            let until = laneway_core::StartAfter::Delay(length);
            self.options.delay(until, laneway_core::DelayMode::Join);
            self
        }

        /// Joins its lane now and holds it up for so long: later events of the lane wait behind it.
        pub fn hold(mut self, length: std::time::Duration) -> Self {
            let until = laneway_core::StartAfter::Delay(length);
            self.options.delay(until, laneway_core::DelayMode::Hold);
            self
        }

        /// Joins the end of its lane at this date by the wall clock.
        pub fn run_at(mut self, at: std::time::SystemTime) -> Self {
            self.options.run_at(at);
            self
        }

        /// 0, 1 or 2: higher goes first, between lanes; inside a lane nothing overtakes. Default 0.
        pub fn priority(mut self, priority: u8) -> Self {
            self.options.priority(priority);
            self
        }

        /// Ends as expired if it is not started within this time.
        pub fn ttl(mut self, length: std::time::Duration) -> Self {
            self.options.ttl(length);
            self
        }

        /// Appends only if this is the lane's last event; `None` if the lane must have none.
        pub fn expect_prev(mut self, prev: Option<laneway_core::EventId>) -> Self {
            self.options.expect_prev(prev);
            self
        }

        /// Lets a name and a value travel with it.
        pub fn header(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
            self.options.header(name.into(), value.into());
            self
        }

        /// Sends it from this place of a trace, which its run and what that emits go on from. Default: where the caller
        /// is, see [`TraceContext::current`](crate::TraceContext::current).
        pub fn trace(mut self, context: &crate::TraceContext) -> Self {
            self.options.trace(context);
            self
        }
    };
}
pub(crate) use options;
