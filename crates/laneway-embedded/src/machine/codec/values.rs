//! Small rows: numbers, versioned values, the highest number of a source, chunks.

use bytes::Bytes;
use laneway_core::{EventId, Key, Term, Timestamp};

use super::{Decoder, Encoder, Malformed, Stored};

/// One number: a counter, the life of a job's end, an event's priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbered(pub(crate) u64);

/// A value with the number of its changes: object, state, document. A removed one keeps the number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) version: u64,
    pub(crate) bytes: Option<Bytes>,
}

/// What was seen of a numbered source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) term: Term,
    /// The highest number.
    pub(crate) number: u64,
}

/// What is known of the age of lanes, and how far they were looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IdleLanes {
    /// When the ids of the shard had come how far, ascending.
    pub(crate) marks: Vec<(Timestamp, EventId)>,
    /// All lanes up to this id were looked at.
    pub(crate) swept: EventId,
    /// They are being looked at up to this id; goes on behind this key.
    pub(crate) sweep: Option<(EventId, Option<Key>)>,
}

/// One chunk of a stashed result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Until when, unless a living end of a job names it.
    pub(crate) until: Timestamp,
    pub(crate) bytes: Bytes,
}

impl Stored for Numbered {
    const NAME: &'static str = "number";

    fn encode(&self, out: &mut Vec<u8>) {
        out.varint(self.0);
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        from.varint().map(Self)
    }
}

impl Stored for Value {
    const NAME: &'static str = "versioned value";

    fn encode(&self, out: &mut Vec<u8>) {
        out.varint(self.version);
        out.flag(self.bytes.is_some());
        if let Some(bytes) = &self.bytes {
            out.bytes(bytes);
        }
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        let version = from.varint()?;
        let bytes = if from.flag()? { Some(from.bytes()?) } else { None };
        Ok(Self { version, bytes })
    }
}

impl Stored for Seen {
    const NAME: &'static str = "source";

    fn encode(&self, out: &mut Vec<u8>) {
        out.varint(self.term.0);
        out.varint(self.number);
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        Ok(Self { term: Term(from.varint()?), number: from.varint()? })
    }
}

impl Stored for IdleLanes {
    const NAME: &'static str = "ages of lanes";

    fn encode(&self, out: &mut Vec<u8>) {
        out.varint(self.marks.len() as u64);
        for (time, id) in &self.marks {
            out.u64(time.0);
            out.varint(id.0);
        }
        out.varint(self.swept.0);
        let (through, after) = self.sweep.clone().unwrap_or_default();
        out.varint(through.0);
        out.flag(after.is_some());
        if let Some(after) = after {
            out.bytes(after.as_ref());
        }
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        let marks = (0..from.len()?).map(|_| Ok((from.time()?, from.id()?))).collect::<Result<_, _>>()?;
        let (swept, through) = (from.id()?, from.id()?);
        let after = if from.flag()? { Some(from.key()?) } else { None };
        Ok(Self { marks, swept, sweep: (through.0 > 0).then_some((through, after)) })
    }
}

impl Stored for Chunk {
    const NAME: &'static str = "chunk of a result";

    fn encode(&self, out: &mut Vec<u8>) {
        out.u64(self.until.0);
        out.bytes(&self.bytes);
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        Ok(Self { until: from.time()?, bytes: from.bytes()? })
    }
}
