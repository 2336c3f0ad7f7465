//! Job ids: UUIDs with the job's place in the free bits, so that no index is needed (contract 1.11).
//!
//! The version of the UUID tells the layout. Ids of the first 8,191 streams of a store have version 7, as they always had.
//! Its 74 free bits hold the stream (13), the partition (12), the kind of number (1) and the number (48). Ids of later
//! streams have version 8, whose layout is ours to choose: the time takes 37 bits (steps of 16 ms from 2026 on) instead
//! of 48, and the 11 bits that this frees hold the upper part of the stream's number.
//!
//! Invariant: every place and time has exactly one id, so ids compare as bits.

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

const NARROW: u128 = 0x7;
const WIDE: u128 = 0x8;
const VARIANT: u128 = 0b10 << 62;
/// Bits of a stream's number beside the partition; a wide id has the others beside the time.
const STREAM_LOW_BITS: u32 = 13;
const STREAM_LOW_MAX: u32 = (1 << STREAM_LOW_BITS) - 1;
const STREAM_HIGH_BITS: u32 = 11;
/// Steps of time in a wide id: from when on, how long one is, and how many there are (until the year 2095).
const WIDE_SINCE_MS: u64 = limits::ADOPTION_SINCE.0 / 1_000;
const WIDE_STEP_MS: u64 = 16;
const WIDE_STEPS_MAX: u64 = (1 << 37) - 1;

impl JobId {
    /// The id of a job in this place, made at this time.
    pub fn new(created: Timestamp, shard: Shard, number: JobNumber) -> Self {
        let (kind, number) = match number {
            JobNumber::Event(id) => (0u128, id.0),
            JobNumber::Schedule(number) => (1u128, number),
        };
        assert!(shard.stream.0 <= limits::STREAMS_MAX && shard.partition.0 < limits::PARTITIONS_MAX);
        assert!(number <= limits::NUMBER_MAX, "ids of a shard never reach 2^48");
        // 74 bits: 13 stream, 12 partition, 1 kind, 48 number.
        let place = (u128::from(shard.stream.0 & STREAM_LOW_MAX) << 61)
            | (u128::from(shard.partition.0) << 49)
            | (kind << 48)
            | u128::from(number);
        let (high, low) = (place >> 62, place & ((1 << 62) - 1));
        let (version, first) = match shard.stream.0 >> STREAM_LOW_BITS {
            0 => (NARROW, created.as_millis() & ((1 << 48) - 1)),
            stream => {
                let steps = created.as_millis().saturating_sub(WIDE_SINCE_MS) / WIDE_STEP_MS;
                (WIDE, (steps.min(WIDE_STEPS_MAX) << STREAM_HIGH_BITS) | u64::from(stream))
            }
        };
        Self((u128::from(first) << 80) | (version << 76) | (high << 64) | VARIANT | low)
    }

    /// The id with these 128 bits; `None` if they are not of our form.
    pub fn from_bits(bits: u128) -> Option<Self> {
        let id = Self(bits);
        let is_ours = match (bits >> 76) & 0xf {
            NARROW => true,
            // A stream whose number fits has a narrow id.
            WIDE => id.stream_high() > 0,
            _ => false,
        };
        (is_ours && (bits >> 62) & 0b11 == 0b10).then_some(id)
    }

    fn is_wide(self) -> bool {
        (self.0 >> 76) & 0xf == WIDE
    }

    /// The first 48 bits.
    fn first(self) -> u64 {
        u64::try_from(self.0 >> 80).expect("48 bits")
    }

    /// The upper part of the stream's number, in a wide id.
    fn stream_high(self) -> u32 {
        u32::try_from(self.first() & ((1 << STREAM_HIGH_BITS) - 1)).expect("11 bits")
    }

    /// When the job was made: to the millisecond, or in streams after the 8,191st to the 16 milliseconds before.
    pub fn created(self) -> Timestamp {
        let millis = if self.is_wide() {
            WIDE_SINCE_MS + (self.first() >> STREAM_HIGH_BITS) * WIDE_STEP_MS
        } else {
            self.first()
        };
        Timestamp(millis * 1_000)
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
        let low = u32::try_from(place >> 61).expect("13 bits");
        let high = if self.is_wide() { self.stream_high() } else { 0 };
        Shard {
            stream: StreamId((high << STREAM_LOW_BITS) | low),
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
        let refusal = || Refusal::new("job id", text, "a UUID of version 7 or 8, as a submission answers it");
        let dashes: Vec<usize> = text.match_indices('-').map(|(at, _)| at).collect();
        if text.len() != 36 || dashes != [8, 13, 18, 23] {
            return Err(refusal());
        }
        let bits = u128::from_str_radix(&text.replace('-', ""), 16).map_err(|_| refusal())?;
        Self::from_bits(bits).ok_or_else(refusal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Timestamp = Timestamp(1_794_700_000_123_456);

    fn place(stream: u32, partition: u32) -> Shard {
        Shard { stream: StreamId(stream), partition: Partition(partition) }
    }

    /// Written down from a version that knew only these.
    #[test]
    fn ids_of_the_first_streams_are_what_they_always_were() {
        let id = JobId::new(TIME, place(8_191, 4_095), JobNumber::Schedule(limits::NUMBER_MAX));
        assert_eq!(id.to_string(), "01a1dc74-bb7b-7fff-bfff-ffffffffffff");
        let id: JobId = "01a1dc74-bb7b-7002-8016-000000000011".parse().unwrap();
        assert_eq!(id, JobId::new(TIME, place(4, 11), JobNumber::Event(EventId(17))));
        assert_eq!(id.created(), Timestamp(1_794_700_000_123_000));
    }

    #[test]
    fn every_stream_has_ids_of_its_own() {
        for stream in [0, 1, 4, 8_190, 8_191, 8_192, 8_193, 10_000, 16_383, 16_384, limits::STREAMS_MAX] {
            for number in [JobNumber::Event(EventId(1)), JobNumber::Schedule(limits::NUMBER_MAX)] {
                let id = JobId::new(TIME, place(stream, 4_095), number);
                assert_eq!((id.shard(), id.number()), (place(stream, 4_095), number));
                assert_eq!(id.to_string().parse::<JobId>().unwrap(), id);
                assert_eq!(JobId::new(id.created(), id.shard(), id.number()), id, "made again of its parts");
                let version = if stream <= 8_191 { '7' } else { '8' };
                assert_eq!(id.to_string().chars().nth(14), Some(version), "stream {stream}");
                assert!(TIME.0 - id.created().0 < 16_000, "{id}");
            }
        }
    }

    #[test]
    fn times_that_a_wide_id_has_no_room_for_are_the_nearest_it_has() {
        let number = JobNumber::Event(EventId(1));
        for (time, created) in [(0, 1_767_225_600_000), (u64::MAX, 1_767_225_600_000 + 16 * ((1 << 37) - 1))]
        {
            let id = JobId::new(Timestamp(time), place(8_192, 0), number);
            assert_eq!(id.created(), Timestamp(created * 1_000));
            assert_eq!(id.shard(), place(8_192, 0));
        }
    }

    #[test]
    fn text_that_no_job_has_is_refused() {
        // Of another version, and of version 8 for a stream that has ids of version 7.
        for text in ["01a1dc74-bb7b-4002-8016-000000000011", "01a1dc74-b800-8002-8016-000000000011"] {
            assert!(text.parse::<JobId>().is_err(), "{text}");
        }
    }
}
