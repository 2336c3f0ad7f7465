//! Definitions of streams, and shards, in bytes.

use laneway_core::{
    EventId, Incarnation, Mode, ProcessorId, ProcessorInfo, ShardInfo, StreamId, StreamInfo, StreamSettings,
    Term,
};

use super::{Decoder, Encoder, Malformed, Stored};

impl Stored for StreamSettings {
    const NAME: &'static str = "settings of a stream";

    fn encode(&self, out: &mut Vec<u8>) {
        out.varint(u64::from(self.partitions));
        out.flag(self.mode == Mode::Latest);
        out.duration(self.keep);
        out.optional(self.max_pending);
        out.varint(self.dedup_max);
        out.duration(self.dead_keep);
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        Ok(Self {
            partitions: from.small()?,
            mode: if from.flag()? { Mode::Latest } else { Mode::Queue },
            keep: from.duration()?,
            max_pending: from.optional()?,
            dedup_max: from.varint()?,
            dead_keep: from.duration()?,
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
