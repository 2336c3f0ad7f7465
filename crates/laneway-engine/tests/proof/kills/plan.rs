//! Which event is which: everything about an event follows from its producer and its number, for both sides.

use std::time::Duration;

use bytes::Bytes;
use laneway_core::event::Dedup;
use laneway_core::{Draft, Key, Kind};

pub(super) const PRODUCERS: usize = 4;
/// Lanes of one producer: a lane has one producer, so its order is that of the numbers.
const LANES_EACH: u64 = 75;
/// Appends that are never forgotten while the proof runs.
const WINDOW: Duration = Duration::from_secs(100_000);

/// Mixes a number, so that neighbours have nothing in common.
fn mix(number: u64) -> u64 {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

/// The lane of an event, by name. Every fourth event belongs to a few hot ones.
pub(super) fn lane(producer: usize, number: u64) -> String {
    let lanes = if mix(number).is_multiple_of(4) { 2 } else { LANES_EACH };
    format!("{producer}-{}", mix(number + 7_777) % lanes)
}

/// How many events the call that begins with this number appends.
pub(super) fn batch(number: u64) -> u64 {
    1 + mix(number) % 9
}

/// Whether that call submits jobs.
pub(super) fn are_jobs(number: u64) -> bool {
    mix(number + 1).is_multiple_of(3)
}

/// Whether its first attempt fails.
pub(super) fn fails_first(number: u64) -> bool {
    mix(number + 2).is_multiple_of(29)
}

/// The numbers of what it emits, in order.
pub(super) fn emits(number: u64) -> Vec<u64> {
    (0..mix(number + 3) % 3).map(|index| number * 4 + index).collect()
}

/// The event as it is sent; repeating it is harmless.
pub(super) fn draft(producer: usize, number: u64) -> Draft {
    let id = Bytes::from(format!("{producer}-{number}"));
    let dedup = Dedup { id, body: u128::from(number), window: WINDOW };
    Draft { dedup: Some(dedup), ..plain(&lane(producer, number), number) }
}

/// An event with this number in this lane.
pub(super) fn plain(lane: &str, number: u64) -> Draft {
    let key = Key::new(lane.to_owned()).expect("a short key");
    let padding = usize::try_from(mix(number) % 300).expect("small");
    Draft::new(Some(key), Kind::default(), format!("{number} {}", "x".repeat(padding)))
}

/// The number of an event.
pub(super) fn number(data: &[u8]) -> u64 {
    let text = std::str::from_utf8(data).expect("events of this proof are text");
    text.split(' ').next().and_then(|number| number.parse().ok()).expect("an event begins with its number")
}

/// The state of a lane: how many events were settled, and a sum that depends on which and in what order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) count: u64,
    sum: u64,
}

impl Sum {
    pub(super) fn with(self, number: u64) -> Self {
        let sum = self.sum.wrapping_mul(0x0100_0000_01b3) ^ mix(number);
        Self { count: self.count + 1, sum }
    }

    pub(super) fn of(numbers: &[u64]) -> Self {
        numbers.iter().fold(Self::default(), |sum, number| sum.with(*number))
    }

    pub(super) fn to_bytes(self) -> Bytes {
        Bytes::from(format!("{} {}", self.count, self.sum))
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        let text = std::str::from_utf8(bytes).expect("states of this proof are text");
        let (count, sum) = text.split_once(' ').expect("a count and a sum");
        Self { count: count.parse().expect("a count"), sum: sum.parse().expect("a sum") }
    }
}
