//! What is wrong with a call whatever the state of the store: every store refuses it before it looks at anything.

use bytes::Bytes;

use super::append::{Append, ObjectWrite, Origin, Source};
use super::commit::{Commit, JobResult, LaneChange};
use super::request::{Request, RequestOp};
use super::stash::Stash;
use crate::error::Refusal;
use crate::event::Draft;
use crate::lane::Block;
use crate::limits::{
    ANSWER_BYTES_MAX, APPEND_BYTES_MAX, CAUSE_BYTES_MAX, CHUNK_BYTES_MAX, COMMIT_BYTES_MAX,
    DOCUMENT_NAME_BYTES_MAX, EMITS_PER_COMMIT_MAX, EVENTS_PER_APPEND_MAX, NOTE_BYTES_MAX, PAGE_MAX,
    RESULT_BYTES_MAX, RESULT_INLINE_BYTES_MAX, STATE_STORED_BYTES_MAX, VALUE_BYTES_MAX,
};

impl Append {
    /// Refuses what is wrong whatever the state.
    pub fn check(&self) -> Result<(), Refusal> {
        if self.drafts.is_empty() {
            return Err(Refusal::new("events", "0", format!("1 to {EVENTS_PER_APPEND_MAX}")));
        }
        Refusal::check_max("events", self.drafts.len(), EVENTS_PER_APPEND_MAX)?;
        let (mut bytes, mut last) = (0, None);
        for draft in &self.drafts {
            draft.check()?;
            bytes += draft.data.len();
            match (draft.origin_seq, &self.origin) {
                (None, None) => {}
                (Some(number), Some(_)) if last.is_none_or(|last| number > last) => last = Some(number),
                (Some(number), Some(_)) => {
                    return Err(Refusal::new(
                        "origin_seq",
                        number.to_string(),
                        "above that of the draft before",
                    ));
                }
                (None, Some(_)) => {
                    return Err(Refusal::new("origin_seq", "absent", "set when there is an origin"));
                }
                (Some(number), None) => {
                    return Err(Refusal::new("origin_seq", number.to_string(), "absent without an origin"));
                }
            }
        }
        Refusal::check_max("data bytes of the call", bytes, APPEND_BYTES_MAX)?;
        if let Some(Origin { source: Source::Named(name), .. }) = &self.origin {
            Refusal::check_max("origin bytes", name.len(), DOCUMENT_NAME_BYTES_MAX)?;
        }
        match &self.object {
            Some(object) => check_object(object, &self.drafts),
            None => Ok(()),
        }
    }
}

fn check_object(object: &ObjectWrite, drafts: &[Draft]) -> Result<(), Refusal> {
    let key = drafts[0].key.as_ref();
    if key.is_none() || drafts.iter().any(|draft| draft.key.as_ref() != key) {
        return Err(Refusal::new("object", "set", "absent unless all events have one and the same key"));
    }
    Refusal::check_max("object bytes", object.value.as_ref().map_or(0, Bytes::len), VALUE_BYTES_MAX)
}

impl Commit {
    /// Refuses more than one commit may carry.
    pub fn check_sizes(&self) -> Result<(), Refusal> {
        Refusal::check_max("emits", self.emits.len(), EMITS_PER_COMMIT_MAX)?;
        let mut total = 0;
        let mut add = |field: &'static str, size: usize, max: usize| {
            total += size;
            Refusal::check_max(field, size, max)
        };
        for ending in &self.endings {
            add("reason bytes", ending.reason.len(), CAUSE_BYTES_MAX)?;
        }
        for dead in &self.dead {
            add("cause bytes", dead.cause.len(), CAUSE_BYTES_MAX)?;
            add("dead letter bytes", dead.event.size(), COMMIT_BYTES_MAX)?;
        }
        for state in &self.states {
            add("state bytes", state.value.as_ref().map_or(0, Bytes::len), STATE_STORED_BYTES_MAX)?;
        }
        for emit in &self.emits {
            emit.draft.check()?;
            add("emit bytes", emit.draft.data.len() + emit.draft.headers.bytes().len(), COMMIT_BYTES_MAX)?;
        }
        for job in &self.jobs {
            let inline = if let JobResult::Inline(bytes) = &job.result { bytes.len() } else { 0 };
            add("job end bytes", job.error.len() + inline, COMMIT_BYTES_MAX)?;
            Refusal::check_max("error bytes", job.error.len(), CAUSE_BYTES_MAX)?;
            Refusal::check_max("result bytes", inline, RESULT_INLINE_BYTES_MAX)?;
        }
        add("note bytes", self.note.as_ref().map_or(0, Bytes::len), NOTE_BYTES_MAX)?;
        Refusal::check_max("answers", self.answers.len(), PAGE_MAX)?;
        for answered in &self.answers {
            add("answer bytes", answered.answer.len(), ANSWER_BYTES_MAX)?;
        }
        Refusal::check_max("bytes of the commit", total, COMMIT_BYTES_MAX)
    }
}

impl LaneChange {
    /// Refuses a record of another lane, or one that is too large.
    pub fn check_record(&self) -> Result<(), Refusal> {
        let Some(record) = &self.record else { return Ok(()) };
        if record.lane != self.lane {
            let limit = format!("of lane {}, which is changed", self.lane);
            return Err(Refusal::new("record", format!("lane {}", record.lane), limit));
        }
        let text = match &record.block {
            Some(Block::Retry { cause: text, .. } | Block::Parked { cause: text, .. })
            | Some(Block::Paused { by: text, .. } | Block::Running { progress: text, .. }) => text.len(),
            Some(Block::Claimed(claim)) => claim.worker.len(),
            Some(Block::Hold { .. } | Block::Diverting { .. }) | None => 0,
        };
        Refusal::check_max("bytes of a lane's block", text, CAUSE_BYTES_MAX)
    }
}

impl Request {
    /// Refuses texts over their limits.
    pub fn check(&self) -> Result<(), Refusal> {
        match &self.op {
            RequestOp::Pause { by, .. } => Refusal::check_max("by bytes", by.len(), CAUSE_BYTES_MAX),
            RequestOp::Settle { claim, answer } => {
                Refusal::check_max("claim bytes", claim.len(), CAUSE_BYTES_MAX)?;
                Refusal::check_max("answer bytes", answer.len(), RESULT_INLINE_BYTES_MAX)
            }
            RequestOp::Extend { claim, .. } => {
                Refusal::check_max("claim bytes", claim.len(), CAUSE_BYTES_MAX)
            }
            RequestOp::Cancel { .. }
            | RequestOp::Resume { .. }
            | RequestOp::Retry { .. }
            | RequestOp::Skip { .. }
            | RequestOp::Redrive { .. }
            | RequestOp::Discard { .. }
            | RequestOp::Reset(_) => Ok(()),
        }
    }
}

impl Stash {
    /// Refuses a chunk that no result can have.
    pub fn check(&self) -> Result<(), Refusal> {
        if self.bytes.is_empty() || self.bytes.len() > CHUNK_BYTES_MAX {
            let limit = format!("1 to {CHUNK_BYTES_MAX}");
            return Err(Refusal::new("chunk bytes", self.bytes.len().to_string(), limit));
        }
        let index = usize::try_from(self.index).unwrap_or(usize::MAX);
        Refusal::check_max("chunk index", index, RESULT_BYTES_MAX)
    }
}
