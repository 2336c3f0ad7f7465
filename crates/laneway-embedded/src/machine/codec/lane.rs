//! Lane records in bytes, with what holds the lane up.

use laneway_core::{Block, Claim, EventId, LaneName, LaneRecord, Nonce, Steady};

use super::{Decoder, Encoder, Malformed, Stored};

impl Stored for LaneName {
    const NAME: &'static str = "lane name";

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Key(key) => {
                out.u8(1);
                out.bytes(key.as_ref());
            }
            Self::Event(id) => {
                out.u8(2);
                out.varint(id.0);
            }
        }
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        match from.u8()? {
            1 => from.key().map(Self::Key),
            2 => from.id().map(Self::Event),
            _ => Err(Malformed),
        }
    }
}

impl Stored for LaneRecord {
    const NAME: &'static str = "lane record";

    fn encode(&self, out: &mut Vec<u8>) {
        self.lane.encode(out);
        match &self.block {
            None => out.u8(0),
            Some(block) => block.encode(out),
        }
        out.optional(self.head.map(|id| id.0));
        out.varint(u64::from(self.attempts));
        out.varint(u64::from(self.crashes));
        out.flag(self.started);
        out.optional(self.ahead.map(|id| id.0));
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        Ok(Self {
            lane: LaneName::decode(from)?,
            block: decode_block(from)?,
            head: from.optional()?.map(EventId),
            attempts: from.small()?,
            crashes: from.small()?,
            started: from.flag()?,
            ahead: from.optional()?.map(EventId),
        })
    }
}

impl Stored for Block {
    const NAME: &'static str = "block of a lane";

    fn encode(&self, out: &mut Vec<u8>) {
        // Zero is "no block" in a record.
        out.u8(1 + self.kind() as u8);
        match self {
            Self::Retry { due, cause } => {
                out.due(*due);
                out.bytes(cause);
            }
            Self::Hold { due } => out.due(*due),
            Self::Paused { by: text, at } | Self::Parked { cause: text, at } => {
                out.bytes(text);
                out.u64(at.0);
            }
            Self::Diverting { since } => out.varint(since.0),
            Self::Running { since, progress } => {
                out.u64(since.0);
                out.bytes(progress);
            }
            Self::Claimed(claim) => {
                out.u128(claim.nonce.0);
                out.bytes(&claim.worker);
                out.varint(claim.through.0);
                out.u64(claim.expires.0);
            }
        }
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        decode_block(from)?.ok_or(Malformed)
    }
}

fn decode_block(from: &mut Decoder) -> Result<Option<Block>, Malformed> {
    Ok(Some(match from.u8()? {
        0 => return Ok(None),
        1 => Block::Retry { due: from.due()?, cause: from.bytes()? },
        2 => Block::Hold { due: from.due()? },
        3 => Block::Paused { by: from.bytes()?, at: from.time()? },
        4 => Block::Parked { cause: from.bytes()?, at: from.time()? },
        5 => Block::Diverting { since: from.id()? },
        6 => Block::Running { since: from.time()?, progress: from.bytes()? },
        7 => Block::Claimed(Claim {
            nonce: Nonce(from.u128()?),
            worker: from.bytes()?,
            through: from.id()?,
            expires: Steady(from.u64()?),
        }),
        _ => return Err(Malformed),
    }))
}
