//! Requests and their tokens in bytes.

use laneway_core::store::{RedriveTo, RequestOp, Reset};
use laneway_core::{Bytes, EventId, LaneName, StartAt, Timestamp, TokenId};

use super::{Decoder, Encoder, Malformed, Stored};

/// A request that had no effect yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filed {
    pub(crate) token: TokenId,
    pub(crate) op: RequestOp,
}

/// What is remembered of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) number: u64,
    /// Until when; no end while the request had no effect.
    pub(crate) until: Option<Timestamp>,
    /// What the owner said; rows of before there were answers end here.
    pub(crate) answer: Bytes,
}

impl Stored for Token {
    const NAME: &'static str = "request token";

    fn encode(&self, out: &mut Vec<u8>) {
        out.varint(self.number);
        out.optional(self.until.map(|until| until.0));
        if !self.answer.is_empty() {
            out.bytes(&self.answer);
        }
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        let (number, until) = (from.varint()?, from.optional()?.map(Timestamp));
        if from.is_empty() {
            return Ok(Self { number, until, answer: Bytes::new() });
        }
        let answer = from.bytes()?;
        // No answer at all is written as nothing.
        if answer.is_empty() { Err(Malformed) } else { Ok(Self { number, until, answer }) }
    }
}

impl Stored for Filed {
    const NAME: &'static str = "request";

    fn encode(&self, out: &mut Vec<u8>) {
        out.u128(self.token.0);
        self.op.encode(out);
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        Ok(Self { token: TokenId(from.u128()?), op: RequestOp::decode(from)? })
    }
}

fn encode_lane(lane: Option<&LaneName>, out: &mut Vec<u8>) {
    out.flag(lane.is_some());
    if let Some(lane) = lane {
        lane.encode(out);
    }
}

fn decode_lane(from: &mut Decoder) -> Result<Option<LaneName>, Malformed> {
    if from.flag()? { LaneName::decode(from).map(Some) } else { Ok(None) }
}

impl Stored for RequestOp {
    const NAME: &'static str = "wish of a request";

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Cancel { id } => {
                out.u8(1);
                out.varint(id.0);
            }
            Self::Pause { lane, by } => {
                out.u8(2);
                encode_lane(lane.as_ref(), out);
                out.bytes(by);
            }
            Self::Resume { lane } => {
                out.u8(3);
                encode_lane(lane.as_ref(), out);
            }
            Self::Retry { lane, id } => {
                out.u8(4);
                lane.encode(out);
                out.varint(id.0);
            }
            Self::Skip { lane, id } => {
                out.u8(5);
                lane.encode(out);
                out.varint(id.0);
            }
            Self::Redrive { id, lane, to } => {
                out.u8(6);
                out.optional(id.map(|id| id.0));
                lane.encode(out);
                out.flag(*to == RedriveTo::Tail);
            }
            Self::Reset(reset) => {
                out.u8(7);
                reset.encode(out);
            }
            Self::Settle { claim, answer } => {
                out.u8(8);
                out.bytes(claim);
                out.bytes(answer);
            }
            Self::Extend { claim, lease } => {
                out.u8(9);
                out.bytes(claim);
                out.duration(*lease);
            }
            Self::Discard { id, lane } => {
                out.u8(10);
                out.optional(id.map(|id| id.0));
                lane.encode(out);
            }
        }
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        Ok(match from.u8()? {
            1 => Self::Cancel { id: from.id()? },
            2 => Self::Pause { lane: decode_lane(from)?, by: from.bytes()? },
            3 => Self::Resume { lane: decode_lane(from)? },
            4 => Self::Retry { lane: LaneName::decode(from)?, id: from.id()? },
            5 => Self::Skip { lane: LaneName::decode(from)?, id: from.id()? },
            6 => Self::Redrive {
                id: from.optional()?.map(EventId),
                lane: LaneName::decode(from)?,
                to: if from.flag()? { RedriveTo::Tail } else { RedriveTo::Place },
            },
            7 => Self::Reset(Reset::decode(from)?),
            8 => Self::Settle { claim: from.bytes()?, answer: from.bytes()? },
            9 => Self::Extend { claim: from.bytes()?, lease: from.duration()? },
            10 => Self::Discard { id: from.optional()?.map(EventId), lane: LaneName::decode(from)? },
            _ => return Err(Malformed),
        })
    }
}

/// Bits of the last byte of a reset; before there were two it was a flag.
const CLEAR_STATES: u8 = 1;
const QUIET: u8 = 2;

impl Stored for Reset {
    const NAME: &'static str = "reset";

    fn encode(&self, out: &mut Vec<u8>) {
        match self.start {
            StartAt::Beginning => out.u8(0),
            StartAt::End => out.u8(1),
            StartAt::Id(id) => {
                out.u8(2);
                out.varint(id.0);
            }
            StartAt::Time(time) => {
                out.u8(3);
                out.u64(time.0);
            }
        }
        out.u8(u8::from(self.clear_states) | if self.quiet { QUIET } else { 0 });
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        let start = match from.u8()? {
            0 => StartAt::Beginning,
            1 => StartAt::End,
            2 => StartAt::Id(from.id()?),
            3 => StartAt::Time(from.time()?),
            _ => return Err(Malformed),
        };
        let bits = from.u8()?;
        if bits & !(CLEAR_STATES | QUIET) != 0 {
            return Err(Malformed);
        }
        Ok(Self { start, clear_states: bits & CLEAR_STATES != 0, quiet: bits & QUIET != 0 })
    }
}
