//! Ends of jobs in bytes. Written once per job, so they are short: one byte says how it ended and which parts
//! follow, times are kept as distances from the end.

use bytes::Bytes;
use laneway_core::store::{JobEnd, JobResult};
use laneway_core::{EventId, Nonce, Terminal, Timestamp};

use super::{Decoder, Encoder, Malformed, Stored};
use crate::machine::StoredEnd;

/// What became of a job that was scheduled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScheduledJob {
    /// It joined its lane as this event.
    Joined(EventId),
    /// It ended without. Rows of before that was kept do not say when it was accepted.
    Ended { end: StoredEnd, accepted_at: Option<Timestamp> },
}

// The low three bits are the code of the end.
const END: u8 = 0b111;
const STARTED: u8 = 1 << 3;
const KEPT_OTHERWISE: u8 = 1 << 4;
const INLINE: u8 = 1 << 5;
const STASHED: u8 = 1 << 6;
const ERROR: u8 = 1 << 7;

/// Code of an end: its place in the table of all.
pub(super) fn code(end: Terminal) -> u8 {
    end as u8
}

/// The end with this code.
pub(super) fn terminal(code: u8) -> Result<Terminal, Malformed> {
    Terminal::ALL.get(usize::from(code)).copied().ok_or(Malformed)
}

impl Stored for StoredEnd {
    const NAME: &'static str = "end of a job";

    fn encode(&self, out: &mut Vec<u8>) {
        let end = &self.end;
        let mut flags = code(end.end);
        let mut set = |present: bool, flag: u8| flags |= if present { flag } else { 0 };
        set(end.started_at.is_some(), STARTED);
        set(self.keep_until != end.finished_at.after(end.keep), KEPT_OTHERWISE);
        set(matches!(end.result, JobResult::Inline(_)), INLINE);
        set(matches!(end.result, JobResult::Stashed { .. }), STASHED);
        set(!end.error.is_empty(), ERROR);
        out.u8(flags);
        out.varint(end.id.0);
        out.varint(u64::from(end.attempts));
        out.u64(end.finished_at.0);
        out.duration(end.keep);
        if let Some(started) = end.started_at {
            out.varint(end.finished_at.0.wrapping_sub(started.0));
        }
        if flags & KEPT_OTHERWISE != 0 {
            out.u64(self.keep_until.0);
        }
        if flags & ERROR != 0 {
            out.bytes(&end.error);
        }
        match &end.result {
            JobResult::None => {}
            JobResult::Inline(result) => out.bytes(result),
            JobResult::Stashed { nonce, chunks } => {
                out.u128(nonce.0);
                out.varint(u64::from(*chunks));
            }
        }
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        let flags = from.u8()?;
        let has = |flag: u8| flags & flag != 0;
        let id = from.id()?;
        let attempts = from.small()?;
        let finished_at = from.time()?;
        let keep = from.duration()?;
        let started_at =
            if has(STARTED) { Some(Timestamp(finished_at.0.wrapping_sub(from.varint()?))) } else { None };
        let keep_until = if has(KEPT_OTHERWISE) { from.time()? } else { finished_at.after(keep) };
        let error = if has(ERROR) { from.bytes()? } else { Bytes::new() };
        let result = match (has(INLINE), has(STASHED)) {
            (false, false) => JobResult::None,
            (true, false) => JobResult::Inline(from.bytes()?),
            (false, true) => JobResult::Stashed { nonce: Nonce(from.u128()?), chunks: from.small()? },
            (true, true) => return Err(Malformed),
        };
        let end = terminal(flags & END)?;
        Ok(Self {
            end: JobEnd { id, end, error, attempts, started_at, finished_at, result, keep },
            keep_until,
        })
    }
}

impl Stored for ScheduledJob {
    const NAME: &'static str = "scheduled job";

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Joined(id) => {
                out.u8(1);
                out.varint(id.0);
            }
            Self::Ended { end, accepted_at: None } => {
                out.u8(2);
                end.encode(out);
            }
            Self::Ended { end, accepted_at: Some(accepted_at) } => {
                out.u8(3);
                out.u64(accepted_at.0);
                end.encode(out);
            }
        }
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        match from.u8()? {
            1 => from.id().map(Self::Joined),
            2 => Ok(Self::Ended { end: StoredEnd::decode(from)?, accepted_at: None }),
            3 => {
                let accepted_at = Some(from.time()?);
                Ok(Self::Ended { end: StoredEnd::decode(from)?, accepted_at })
            }
            _ => Err(Malformed),
        }
    }
}
