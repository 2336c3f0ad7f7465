//! Moments of the steady clock as dates: the same moment is the same date, whenever it is asked for.
//!
//! The obvious way, reading both clocks for every date, tells one moment as many: between the two readings time passes, and
//! each is cut to whole microseconds. So how far the clocks are apart is kept until the wall clock was really set.

use laneway::{Steady, Timestamp};
use parking_lot::Mutex;

use crate::seam;

/// How far a date may be off before the wall clock counts as set, in microseconds.
const SLACK_US: u64 = 10_000;

/// Microseconds that the wall clock is ahead of the steady one.
#[derive(Debug, Clone, Copy)]
struct Apart {
    ahead: i64,
    /// How far the truth may be from it: as long as the reading took.
    doubt: u64,
}

/// The date of a moment, also of one that has passed.
pub(super) fn date(at: Steady) -> Timestamp {
    static KEPT: Mutex<Option<i64>> = Mutex::new(None);
    let read = read();
    let mut kept = KEPT.lock();
    let ahead = still(*kept, read);
    *kept = Some(ahead);
    Timestamp(at.0.saturating_add_signed(ahead))
}

fn read() -> Apart {
    let (before, wall, after) = (seam::steady(), seam::now(), seam::steady());
    Apart {
        ahead: wall.0.cast_signed().saturating_sub_unsigned(before.0),
        doubt: after.0.saturating_sub(before.0),
    }
}

/// What was kept, unless the clocks are surely further apart.
fn still(kept: Option<i64>, read: Apart) -> i64 {
    let slack = SLACK_US.saturating_add(read.doubt);
    kept.filter(|kept| kept.abs_diff(read.ahead) <= slack).unwrap_or(read.ahead)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_as_far_apart_as_before_until_one_was_set() {
        let apart = |ahead, doubt| Apart { ahead, doubt };
        assert_eq!(still(None, apart(7, 0)), 7);
        assert_eq!(still(Some(1_000_000), apart(1_000_001, 0)), 1_000_000);
        // A reading that took long says little.
        assert_eq!(still(Some(1_000_000), apart(1_500_000, 500_000)), 1_000_000);
        assert_eq!(still(Some(1_000_000), apart(1_500_000, 3)), 1_500_000);
        assert_eq!(still(Some(1_000_000), apart(-1_000_000, 3)), -1_000_000);
    }

    #[test]
    fn a_moment_has_one_date() {
        let (at, again) = (Steady(seam::steady().0 + 30_000_000), 1_000);
        let first = date(at);
        assert!((0..again).all(|_| date(at) == first));
    }
}
