//! Definitions of streams, and shards, in bytes.

use std::time::Duration;

use laneway_core::{
    EventId, Incarnation, Mode, ProcessorId, ProcessorInfo, ShardInfo, StreamId, StreamInfo, StreamSettings,
    Term,
};

use super::{Decoder, Encoder, Malformed, Stored};

/// How long ends of jobs are kept where the bytes say nothing: what it was before it could be said.
const KEEP_DONE: Duration = Duration::from_secs(24 * 60 * 60);

/// How long dedup ids are remembered where the bytes say nothing.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Bits of the byte behind the partitions of a stream.
const LATEST: u8 = 1;
/// Ends of jobs are not kept for a day: their length comes last. Without it the bytes are those of before it was known.
const KEEPS_DONE: u8 = 2;
/// A processor answers its jobs: its name comes behind that.
const RESPONDER: u8 = 4;
/// Idle lanes are forgotten: after how long comes behind everything else.
const FORGETS: u8 = 8;
/// Dedup ids are remembered for another time than a day: it comes behind everything else.
const DEDUP_WINDOW: u8 = 16;

impl Stored for StreamSettings {
    const NAME: &'static str = "settings of a stream";

    fn encode(&self, out: &mut Vec<u8>) {
        let keeps_done = self.keep_done != KEEP_DONE;
        out.varint(u64::from(self.partitions));
        let latest = if self.mode == Mode::Latest { LATEST } else { 0 };
        let responder = if self.responder.is_some() { RESPONDER } else { 0 };
        let forgets = if self.forget_lanes_after.is_some() { FORGETS } else { 0 };
        let window = if self.dedup_window == DAY { 0 } else { DEDUP_WINDOW };
        out.u8(latest | responder | forgets | window | if keeps_done { KEEPS_DONE } else { 0 });
        out.duration(self.keep);
        out.optional(self.max_pending);
        out.varint(self.dedup_max);
        out.duration(self.dead_keep);
        if keeps_done {
            out.duration(self.keep_done);
        }
        if let Some(responder) = &self.responder {
            out.bytes(responder.as_bytes());
        }
        if let Some(length) = self.forget_lanes_after {
            out.duration(length);
        }
        if self.dedup_window != DAY {
            out.duration(self.dedup_window);
        }
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        let (partitions, bits) = (from.small()?, from.u8()?);
        if bits & !(LATEST | KEEPS_DONE | RESPONDER | FORGETS | DEDUP_WINDOW) != 0 {
            return Err(Malformed);
        }
        Ok(Self {
            partitions,
            mode: if bits & LATEST != 0 { Mode::Latest } else { Mode::Queue },
            keep: from.duration()?,
            max_pending: from.optional()?,
            dedup_max: from.varint()?,
            dead_keep: from.duration()?,
            keep_done: if bits & KEEPS_DONE != 0 { from.duration()? } else { KEEP_DONE },
            responder: if bits & RESPONDER != 0 { Some(from.text()?) } else { None },
            forget_lanes_after: if bits & FORGETS != 0 { Some(from.duration()?) } else { None },
            dedup_window: if bits & DEDUP_WINDOW != 0 { from.duration()? } else { DAY },
        })
    }
}

impl Stored for ProcessorInfo {
    const NAME: &'static str = "processor";

    fn encode(&self, out: &mut Vec<u8>) {
        out.varint(u64::from(self.id.0));
        out.bytes(self.name.as_bytes());
        out.bytes(&self.settings);
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        Ok(Self { id: ProcessorId(from.small()?), name: from.text()?, settings: from.bytes()? })
    }
}

impl Stored for StreamInfo {
    const NAME: &'static str = "stream";

    fn encode(&self, out: &mut Vec<u8>) {
        out.varint(u64::from(self.id.0));
        out.bytes(self.name.as_bytes());
        out.varint(self.version);
        self.settings.encode(out);
        out.varint(u64::from(self.layout));
        out.varint(self.processors.len() as u64);
        self.processors.iter().for_each(|processor| processor.encode(out));
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        Ok(Self {
            id: StreamId(from.small()?),
            name: from.text()?,
            version: from.varint()?,
            settings: StreamSettings::decode(from)?,
            layout: from.small()?,
            processors: (0..from.len()?).map(|_| ProcessorInfo::decode(from)).collect::<Result<_, _>>()?,
        })
    }
}

impl Stored for ShardInfo {
    const NAME: &'static str = "shard";

    fn encode(&self, out: &mut Vec<u8>) {
        out.u128(self.incarnation.0);
        out.varint(u64::from(self.adoptions));
        out.varint(u64::from(self.layout));
        out.flag(self.sealed);
        out.varint(self.first_id.0);
        out.varint(self.first_term.0);
        out.varint(self.head.0);
        out.varint(self.scheduled);
        out.varint(self.trimmed.0);
        out.u64(self.time.0);
        out.varint(self.gaps.len() as u64);
        for (first, last) in &self.gaps {
            out.varint(first.0);
            out.varint(last.0);
        }
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        Ok(Self {
            incarnation: Incarnation(from.u128()?),
            adoptions: from.small()?,
            layout: from.small()?,
            sealed: from.flag()?,
            first_id: from.id()?,
            first_term: Term(from.varint()?),
            head: from.id()?,
            scheduled: from.varint()?,
            trimmed: from.id()?,
            time: from.time()?,
            gaps: (0..from.len()?)
                .map(|_| Ok::<(EventId, EventId), Malformed>((from.id()?, from.id()?)))
                .collect::<Result<_, _>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As they were written before there was `keep_done`.
    const BEFORE: [u8; 20] = [
        1, 3, 1, 0x80, 0x80, 0xc1, 0xa7, 0x80, 0xd2, 9, 1, 0x64, 0xa0, 0x8d, 6, 0x80, 0xc8, 0xaf, 0xa0, 0x25,
    ];

    #[test]
    fn settings_from_before_keep_done_are_read_and_written_as_they_were() {
        let before = StreamSettings {
            partitions: 3,
            mode: Mode::Latest,
            keep: Duration::from_secs(42_400_000),
            max_pending: Some(100),
            dedup_max: 100_000,
            dead_keep: Duration::from_secs(10_000),
            keep_done: Duration::from_secs(86_400),
            responder: None,
            forget_lanes_after: None,
            dedup_window: DAY,
        };
        assert_eq!(before.to_row(), BEFORE);
        assert_eq!(StreamSettings::from_row(BEFORE.to_vec().into()).unwrap(), before);
        let other = StreamSettings { keep_done: Duration::from_secs(60), ..before.clone() };
        assert_eq!(StreamSettings::from_row(other.to_row().into()).unwrap(), other);
        let answered = StreamSettings { responder: Some("charge".to_owned()), ..before };
        let forgets =
            StreamSettings { forget_lanes_after: Some(Duration::from_secs(60)), ..answered.clone() };
        let window = StreamSettings { dedup_window: Duration::from_secs(60), ..forgets.clone() };
        for settings in [answered, forgets, window] {
            assert_eq!(StreamSettings::from_row(settings.to_row().into()).unwrap(), settings);
        }
        let mut unknown = BEFORE;
        unknown[2] = 32;
        assert!(StreamSettings::from_row(unknown.to_vec().into()).is_err(), "a bit that nobody knows");
    }
}
