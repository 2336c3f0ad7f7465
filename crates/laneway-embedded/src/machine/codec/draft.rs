//! Drafts in bytes: those in the schedule and those in the outbox.

use laneway_core::event::Dedup;
use laneway_core::store::Emit;
use laneway_core::{
    Delay, DelayMode, Draft, Due, EventId, Headers, JobDraft, Kind, ProcessorId, StartAfter, StreamId,
    Timestamp,
};

use super::{Decoder, Encoder, Malformed, Stored};

/// A draft in the schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) due: Due,
    pub(crate) accepted_at: Timestamp,
    pub(crate) draft: Draft,
}

const KEY: u64 = 1;
const GENERATION: u64 = 1 << 1;
const INCARNATION: u64 = 1 << 2;
const DELETE: u64 = 1 << 3;
const DELAY: u64 = 1 << 4;
const PRIORITY: u64 = 1 << 5;
const TTL: u64 = 1 << 6;
const DEDUP: u64 = 1 << 7;
const EXPECT_PREV: u64 = 1 << 8;
const ORIGIN_SEQ: u64 = 1 << 9;
const JOB: u64 = 1 << 10;
const KNOWN: u64 = (1 << 11) - 1;

fn flags(draft: &Draft) -> u64 {
    let parts = [
        (draft.key.is_some(), KEY),
        (draft.generation.is_some(), GENERATION),
        (draft.incarnation != 0, INCARNATION),
        (draft.delete, DELETE),
        (draft.delay.is_some(), DELAY),
        (draft.priority != 0, PRIORITY),
        (draft.ttl.is_some(), TTL),
        (draft.dedup.is_some(), DEDUP),
        (draft.expect_prev.is_some(), EXPECT_PREV),
        (draft.origin_seq.is_some(), ORIGIN_SEQ),
        (draft.job.is_some(), JOB),
    ];
    parts.iter().filter(|(present, _)| *present).map(|(_, flag)| flag).sum()
}

impl Stored for Draft {
    const NAME: &'static str = "draft";

    fn encode(&self, out: &mut Vec<u8>) {
        out.varint(flags(self));
        if let Some(key) = &self.key {
            out.bytes(key.as_ref());
        }
        out.bytes(self.kind.bytes());
        out.bytes(self.headers.bytes());
        out.bytes(&self.data);
        if let Some(generation) = self.generation {
            out.varint(generation);
        }
        if self.incarnation != 0 {
            out.varint(self.incarnation);
        }
        if let Some(delay) = self.delay {
            encode_delay(delay, out);
        }
        if self.priority != 0 {
            out.u8(self.priority);
        }
        if let Some(ttl) = self.ttl {
            out.duration(ttl);
        }
        if let Some(dedup) = &self.dedup {
            out.bytes(&dedup.id);
            out.u128(dedup.body);
            out.duration(dedup.window);
        }
        if let Some(prev) = self.expect_prev {
            out.optional(prev.map(|id| id.0));
        }
        if let Some(number) = self.origin_seq {
            out.varint(number);
        }
        if let Some(job) = self.job {
            out.varint(u64::from(job.responder.0));
            out.duration(job.keep);
        }
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        let flags = from.varint()?;
        if flags & !KNOWN != 0 {
            return Err(Malformed);
        }
        let has = |flag: u64| flags & flag != 0;
        let key = if has(KEY) { Some(from.key()?) } else { None };
        let kind = Kind::from_bytes(from.bytes()?).ok_or(Malformed)?;
        let headers = Headers::from_bytes(from.bytes()?).ok_or(Malformed)?;
        let mut draft = Self::new(key, kind, from.bytes()?);
        draft.headers = headers;
        draft.generation = if has(GENERATION) { Some(from.varint()?) } else { None };
        draft.incarnation = if has(INCARNATION) { from.varint()? } else { 0 };
        draft.delete = has(DELETE);
        draft.delay = if has(DELAY) { Some(decode_delay(from)?) } else { None };
        draft.priority = if has(PRIORITY) { from.u8()? } else { 0 };
        draft.ttl = if has(TTL) { Some(from.duration()?) } else { None };
        if has(DEDUP) {
            draft.dedup = Some(Dedup { id: from.bytes()?, body: from.u128()?, window: from.duration()? });
        }
        draft.expect_prev = if has(EXPECT_PREV) { Some(from.optional()?.map(EventId)) } else { None };
        draft.origin_seq = if has(ORIGIN_SEQ) { Some(from.varint()?) } else { None };
        if has(JOB) {
            draft.job = Some(JobDraft { responder: ProcessorId(from.small()?), keep: from.duration()? });
        }
        Ok(draft)
    }
}

fn encode_delay(delay: Delay, out: &mut Vec<u8>) {
    out.flag(delay.mode == DelayMode::Hold);
    match delay.until {
        StartAfter::Delay(length) => {
            out.u8(0);
            out.duration(length);
        }
        StartAfter::At(time) => {
            out.u8(1);
            out.u64(time.0);
        }
    }
}

fn decode_delay(from: &mut Decoder) -> Result<Delay, Malformed> {
    let mode = if from.flag()? { DelayMode::Hold } else { DelayMode::Join };
    let until = match from.u8()? {
        0 => StartAfter::Delay(from.duration()?),
        1 => StartAfter::At(from.time()?),
        _ => return Err(Malformed),
    };
    Ok(Delay { until, mode })
}

impl Stored for Waiting {
    const NAME: &'static str = "scheduled draft";

    fn encode(&self, out: &mut Vec<u8>) {
        out.due(self.due);
        out.u64(self.accepted_at.0);
        self.draft.encode(out);
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        Ok(Self { due: from.due()?, accepted_at: from.time()?, draft: Draft::decode(from)? })
    }
}

/// An emit on its way, with the life of the processor and of the shard that it was emitted in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outgoing {
    pub(crate) incarnation: u32,
    pub(crate) adoptions: u32,
    pub(crate) emit: Emit,
}

impl Stored for Outgoing {
    const NAME: &'static str = "outbox row";

    fn encode(&self, out: &mut Vec<u8>) {
        // One number, so that rows from before adoptions were noted read as those of a shard without any.
        out.varint((u64::from(self.adoptions) << 32) | u64::from(self.incarnation));
        self.emit.encode(out);
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        let lives = from.varint()?;
        let (incarnation, adoptions) = (lives as u32, (lives >> 32) as u32);
        Ok(Self { incarnation, adoptions, emit: Emit::decode(from)? })
    }
}

impl Stored for Emit {
    const NAME: &'static str = "emit";

    fn encode(&self, out: &mut Vec<u8>) {
        out.varint(u64::from(self.stream.0));
        self.draft.encode(out);
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        Ok(Self { stream: StreamId(from.small()?), draft: Draft::decode(from)? })
    }
}
