//! What is remembered of a dedup id, in bytes.

use laneway_core::store::Receipt;
use laneway_core::{EventId, JobId, Seq, Timestamp};

use super::{Decoder, Encoder, Malformed, Stored};

/// The first append under a dedup id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remembered {
    /// What it was answered: `New` or `Scheduled`.
    pub(crate) receipt: Receipt,
    pub(crate) body: u128,
    pub(crate) until: Timestamp,
    /// The event, once there is one.
    pub(crate) event: Option<EventId>,
}

fn encode_job(job: Option<JobId>, out: &mut Vec<u8>) {
    out.flag(job.is_some());
    if let Some(job) = job {
        out.u128(job.bits());
    }
}

fn decode_job(from: &mut Decoder) -> Result<Option<JobId>, Malformed> {
    if from.flag()? { JobId::from_bits(from.u128()?).ok_or(Malformed).map(Some) } else { Ok(None) }
}

impl Stored for Receipt {
    const NAME: &'static str = "receipt";

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::New { id, prev, seq, job } => {
                out.u8(1);
                out.varint(id.0);
                out.optional(prev.map(|id| id.0));
                out.optional(seq.map(|seq| seq.0));
                encode_job(*job, out);
            }
            Self::Scheduled { ticket, due, due_at, job } => {
                out.u8(2);
                out.varint(*ticket);
                out.due(*due);
                out.u64(due_at.0);
                encode_job(*job, out);
            }
            Self::Duplicate { .. } | Self::Stale { .. } => {
                unreachable!("only what took a place is remembered")
            }
        }
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        match from.u8()? {
            1 => Ok(Self::New {
                id: from.id()?,
                prev: from.optional()?.map(EventId),
                seq: from.optional()?.map(Seq),
                job: decode_job(from)?,
            }),
            2 => Ok(Self::Scheduled {
                ticket: from.varint()?,
                due: from.due()?,
                due_at: from.time()?,
                job: decode_job(from)?,
            }),
            _ => Err(Malformed),
        }
    }
}

impl Stored for Remembered {
    const NAME: &'static str = "dedup row";

    fn encode(&self, out: &mut Vec<u8>) {
        out.u64(self.until.0);
        out.u128(self.body);
        out.optional(self.event.map(|id| id.0));
        self.receipt.encode(out);
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        let until = from.time()?;
        let body = from.u128()?;
        let event = from.optional()?.map(EventId);
        Ok(Self { receipt: Receipt::decode(from)?, body, until, event })
    }
}
