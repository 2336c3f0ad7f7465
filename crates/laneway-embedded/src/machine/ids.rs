//! Arithmetic on the ids of a shard, which has gaps where it was adopted. Pure.

use laneway_core::limits::WINDOW_IDS;
use laneway_core::{EventId, ShardInfo, Window};

/// Whether this id was never given, although it is not above the head.
pub(super) fn in_gap(info: &ShardInfo, id: EventId) -> bool {
    info.gaps.iter().any(|(first, last)| (*first..=*last).contains(&id))
}

/// The highest id that a seat may mark now. Ids that were never given take no room in the window, or an
/// adopted shard could not go on while one event from before is open.
pub(super) fn ceiling(info: &ShardInfo, window: &Window) -> EventId {
    let floor = window.floor().0;
    let mut ceiling = floor + WINDOW_IDS;
    for (first, last) in &info.gaps {
        if last.0 > floor && first.0 <= ceiling {
            ceiling += last.0 - first.0.max(floor + 1) + 1;
        }
    }
    EventId(ceiling)
}

#[cfg(test)]
mod tests {
    use laneway_core::{Incarnation, Term, Timestamp};

    use super::*;

    fn shard(head: u64, gaps: &[(u64, u64)]) -> ShardInfo {
        ShardInfo {
            incarnation: Incarnation(1),
            adoptions: 0,
            layout: 1,
            sealed: false,
            first_id: EventId(1),
            first_term: Term(0),
            head: EventId(head),
            scheduled: 0,
            trimmed: EventId(0),
            time: Timestamp(0),
            gaps: gaps.iter().map(|(first, last)| (EventId(*first), EventId(*last))).collect(),
        }
    }

    #[test]
    fn ids_that_were_never_given_are_known() {
        let info = shard(30, &[(5, 9), (10, 12), (20, 30)]);
        assert!(in_gap(&info, EventId(9)) && !in_gap(&info, EventId(13)));
    }

    #[test]
    fn a_gap_takes_no_room_in_the_window() {
        let info = shard(2_000_000, &[(11, 1_000_010)]);
        assert_eq!(ceiling(&info, &Window::at(EventId(10))), EventId(1_000_010 + WINDOW_IDS));
        assert_eq!(ceiling(&info, &Window::at(EventId(5))), EventId(1_000_005 + WINDOW_IDS));
        assert_eq!(ceiling(&info, &Window::at(EventId(1_000_010))), EventId(1_000_010 + WINDOW_IDS));
        assert_eq!(ceiling(&shard(5, &[]), &Window::at(EventId(3))), EventId(3 + WINDOW_IDS));
    }
}
