//! Job ids: UUIDv7 in form, with the job's place in the free bits, so that no index is needed (contract 1.11).

use std::fmt;
use std::str::FromStr;

use crate::clock::Timestamp;
use crate::error::Refusal;
use crate::ids::{EventId, Partition, Shard, StreamId};
use crate::limits;

/// Number of a job inside its shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobNumber {
    /// It joined its lane at once: the id of its event.
    Event(EventId),
    /// It was delayed: the number of its schedule entry.
    Schedule(u64),
}

/// A job's name. Anyone can tell from it where the job lives; it is no secret.
///
/// ```
/// use laneway_core::{EventId, JobId, JobNumber, Partition, Shard, StreamId, Timestamp};
/// let shard = Shard { stream: StreamId(4), partition: Partition(11) };
/// let id = JobId::new(Timestamp(1_794_700_000_000_000), shard, JobNumber::Event(EventId(17)));
/// assert_eq!((id.shard(), id.number()), (shard, JobNumber::Event(EventId(17))));
/// assert_eq!(id.to_string().parse::<JobId>().unwrap(), id);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(u128);

const VERSION: u128 = 0x7 << 76;
const VARIANT: u128 = 0b10 << 62;

impl JobId {
    /// The id of a job in this place, made at this time.
    pub fn new(created: Timestamp, shard: Shard, number: JobNumber) -> Self {
        let (kind, number) = match number {
            JobNumber::Event(id) => (0u128, id.0),
            JobNumber::Schedule(number) => (1u128, number),
        };
        assert!(shard.stream.0 <= limits::STREAMS_MAX && shard.partition.0 < limits::PARTITIONS_MAX);
        assert!(number <= limits::NUMBER_MAX, "ids of a shard never reach 2^48");
        // 74 free bits: 13 stream, 12 partition, 1 kind, 48 number.
        let place = (u128::from(shard.stream.0) << 61)
            | (u128::from(shard.partition.0) << 49)
            | (kind << 48)
            | u128::from(number);
        let (high, low) = (place >> 62, place & ((1 << 62) - 1));
        let millis = u128::from(created.as_millis() & ((1 << 48) - 1));
        Self((millis << 80) | VERSION | (high << 64) | VARIANT | low)
    }

    /// The id with these 128 bits; `None` if they are not of our form.
    pub fn from_bits(bits: u128) -> Option<Self> {
        ((bits >> 76) & 0xf == 0x7 && (bits >> 62) & 0b11 == 0b10).then_some(Self(bits))
    }

    /// All 128 bits.
    pub fn bits(self) -> u128 {
        self.0
    }

    fn place(self) -> u128 {
        (((self.0 >> 64) & 0xfff) << 62) | (self.0 & ((1 << 62) - 1))
    }

    /// Where the job lives.
    pub fn shard(self) -> Shard {
        let place = self.place();
        Shard {
            stream: StreamId(u32::try_from(place >> 61).expect("13 bits")),
            partition: Partition(u32::try_from((place >> 49) & 0xfff).expect("12 bits")),
        }
    }

    /// Which job of its shard.
    pub fn number(self) -> JobNumber {
        let place = self.place();
        let number = u64::try_from(place & ((1 << 48) - 1)).expect("48 bits");
        if (place >> 48) & 1 == 0 { JobNumber::Event(EventId(number)) } else { JobNumber::Schedule(number) }
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = format!("{:032x}", self.0);
        write!(f, "{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }
}

impl FromStr for JobId {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refusal = || Refusal::new("job id", text, "a UUID of version 7");
        let dashes: Vec<usize> = text.match_indices('-').map(|(at, _)| at).collect();
        if text.len() != 36 || dashes != [8, 13, 18, 23] {
            return Err(refusal());
        }
        let bits = u128::from_str_radix(&text.replace('-', ""), 16).map_err(|_| refusal())?;
        Self::from_bits(bits).ok_or_else(refusal)
    }
}
