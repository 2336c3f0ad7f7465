//! Adoption (contract 1.4): a shard that another life of its store wrote last may have lost its end, and with it ids that
//! somebody was told. Its ids jump over whatever may be lost; those in between were never given.
//!
//! A fixed jump from what survived is not enough: a second loss can take the first adoption with it, and the second one would
//! jump to where the first did. Time is what no loss takes back. So ids jump to where the clock says, which is beyond all that
//! any life gave before, because none gives ids as fast as the clock counts them. To add a fixed jump to that would spoil it:
//! what is beyond the clock's place can be reached again. Only a shard that is there already, because the clock was wrong,
//! jumps by a fixed number.

use crate::clock::Timestamp;
use crate::ids::EventId;
use crate::limits::{ADOPTION_JUMP, ADOPTION_SINCE, CLOCK_IDS_MAX, CLOCK_IDS_PER_MILLI};

/// Ids from the first to the second were never given; ascending.
pub type Gap = (EventId, EventId);

/// The last id that counts as given after an adoption at this time.
pub fn adopted_head(head: EventId, now: Timestamp) -> EventId {
    let millis = now.as_millis().saturating_sub(ADOPTION_SINCE.as_millis());
    let by_clock = millis.saturating_mul(CLOCK_IDS_PER_MILLI).min(CLOCK_IDS_MAX);
    EventId(if head.0 < by_clock { by_clock } else { head.0 + ADOPTION_JUMP })
}

/// The next id after this one that is in no gap; it may be above the head.
pub fn next_given(gaps: &[Gap], id: EventId) -> EventId {
    let mut next = id.next();
    // Gaps are ascending, so one pass finds adjacent ones too.
    for (first, last) in gaps {
        if (*first..=*last).contains(&next) {
            next = last.next();
        }
    }
    next
}

/// This id, or the last one before it that is in no gap; 0 if none is.
pub fn last_given(gaps: &[Gap], id: EventId) -> EventId {
    let mut given = id;
    for (first, last) in gaps.iter().rev() {
        if (*first..=*last).contains(&given) {
            given = EventId(first.0 - 1);
        }
    }
    given
}

/// How many ids after `from` and up to `to` were given.
pub fn given_between(gaps: &[Gap], from: EventId, to: EventId) -> u64 {
    let all = to.0.saturating_sub(from.0);
    let within = gaps.iter().map(|(first, last)| {
        let (first, last) = (first.0.max(from.0 + 1), last.0.min(to.0));
        (last + 1).saturating_sub(first)
    });
    all - within.sum::<u64>()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::limits::NUMBER_MAX;

    fn since(time: Duration) -> Timestamp {
        ADOPTION_SINCE.after(time)
    }

    #[test]
    fn a_shard_that_is_beyond_the_clock_jumps_all_the_same() {
        for now in [Timestamp(0), ADOPTION_SINCE, since(Duration::from_secs(1))] {
            assert_eq!(adopted_head(EventId(1 << 40), now), EventId((1 << 40) + ADOPTION_JUMP));
        }
    }

    #[test]
    fn a_second_adoption_from_the_same_place_is_beyond_all_that_came_after_the_first() {
        let (first, between) = (since(Duration::from_secs(86_400)), Duration::from_millis(700));
        // As many as a shard may give in that time, and a replica that was a little further behind.
        let given = u64::try_from(between.as_millis()).unwrap() * CLOCK_IDS_PER_MILLI;
        let last = adopted_head(EventId(1_000), first).0 + given;
        assert!(adopted_head(EventId(900), first.after(between)).0 >= last);
    }

    #[test]
    fn three_lives_within_a_second_give_different_ids_whatever_they_know_of_each_other() {
        let at = |millis| since(Duration::from_hours(24) + Duration::from_millis(millis));
        let first = adopted_head(EventId(1_000), at(0));
        let after_some = EventId(first.0 + 40_000);
        let starts = [first, adopted_head(after_some, at(400)), adopted_head(after_some, at(800))];
        assert!(starts.is_sorted_by(|one, next| one.0 + 100_000 < next.0), "{starts:?}");
    }

    #[test]
    fn a_clock_that_is_far_off_leaves_ids_to_give() {
        let head = adopted_head(EventId(7), Timestamp(u64::MAX));
        assert!(head.0 < NUMBER_MAX / 8 * 7, "{head}");
    }

    #[test]
    fn ids_of_gaps_do_not_count() {
        let gaps = [(EventId(4), EventId(9)), (EventId(12), EventId(12))];
        let count = |from, to| given_between(&gaps, EventId(from), EventId(to));
        assert_eq!((count(0, 3), count(0, 9), count(3, 13), count(5, 10), count(9, 9)), (3, 3, 3, 1, 0));
        assert_eq!(count(8, 2), 0);
    }

    #[test]
    fn ids_of_gaps_are_passed_over_both_ways() {
        let gaps = [(EventId(1), EventId(2)), (EventId(5), EventId(9)), (EventId(10), EventId(12))];
        let next = |id| next_given(&gaps, EventId(id)).0;
        assert_eq!((next(0), next(3), next(4), next(6), next(12)), (3, 4, 13, 13, 13));
        let last = |id| last_given(&gaps, EventId(id)).0;
        assert_eq!((last(2), last(3), last(4), last(5), last(12), last(13)), (0, 3, 4, 4, 4, 13));
    }
}
