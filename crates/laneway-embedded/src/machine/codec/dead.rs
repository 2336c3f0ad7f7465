//! Ends other than `done`, and dead letters, in bytes.

use laneway_core::EventId;
use laneway_core::store::{DeadLetter, Ending};

use super::job::{code, terminal};
use super::{Decoder, Encoder, Malformed, Stored, event};

impl Stored for Ending {
    const NAME: &'static str = "ending";

    fn encode(&self, out: &mut Vec<u8>) {
        out.varint(self.id.0);
        out.u8(code(self.end));
        out.bytes(&self.reason);
        out.optional(self.winner.map(|id| id.0));
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        let id = from.id()?;
        let end = terminal(from.u8()?)?;
        Ok(Self { id, end, reason: from.bytes()?, winner: from.optional()?.map(EventId) })
    }
}

impl Stored for DeadLetter {
    const NAME: &'static str = "dead letter";

    fn encode(&self, out: &mut Vec<u8>) {
        out.u64(self.at.0);
        out.varint(u64::from(self.attempts));
        out.bytes(&self.cause);
        event::encode(&self.event, out);
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        let at = from.time()?;
        let attempts = from.small()?;
        let cause = from.bytes()?;
        Ok(Self { event: event::decode(from)?, cause, attempts, at })
    }
}
