//! Moving due times from the steady clock of one store to that of another. Calendar times stay.

use crate::clock::Steady;
use crate::event::{Due, Event};
use crate::lane::{Block, LaneRecord};
use crate::store::{DedupRow, Receipt, ScheduledRow, StoreView};

/// How much later the target's steady clock reads than the source's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shift(i128);

impl Shift {
    pub(super) fn between(from: &StoreView, to: &StoreView) -> Self {
        Self(i128::from(to.steady.0) - i128::from(from.steady.0))
    }

    /// What was due before the target's clock began is due at its beginning: at once.
    fn steady(self, moment: Steady) -> Steady {
        let moved = i128::from(moment.0) + self.0;
        Steady(u64::try_from(moved.max(0)).unwrap_or(u64::MAX))
    }

    fn due(self, due: Due) -> Due {
        match due {
            Due::Steady(moment) => Due::Steady(self.steady(moment)),
            Due::Calendar(moment) => Due::Calendar(moment),
        }
    }

    pub(super) fn event(self, event: Event) -> Event {
        Event { hold_until: event.hold_until.map(|due| self.due(due)), ..event }
    }

    pub(super) fn scheduled(self, row: ScheduledRow) -> ScheduledRow {
        ScheduledRow { due: self.due(row.due), ..row }
    }

    pub(super) fn dedup(self, row: DedupRow) -> DedupRow {
        let receipt = match row.receipt {
            Receipt::Scheduled { ticket, due, due_at, job } => {
                Receipt::Scheduled { ticket, due: self.due(due), due_at, job }
            }
            other => other,
        };
        DedupRow { receipt, ..row }
    }

    pub(super) fn lane(self, record: LaneRecord) -> LaneRecord {
        let block = record.block.map(|block| match block {
            Block::Retry { due, cause } => Block::Retry { due: self.due(due), cause },
            Block::Hold { due } => Block::Hold { due: self.due(due) },
            Block::Claimed(mut claim) => {
                claim.expires = self.steady(claim.expires);
                Block::Claimed(claim)
            }
            other => other,
        });
        LaneRecord { block, ..record }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;

    #[test]
    fn a_delay_keeps_its_rest_and_a_date_stays() {
        let later = Shift(50);
        assert_eq!(later.due(Due::Steady(Steady(10))), Due::Steady(Steady(60)));
        assert_eq!(Shift(-50).due(Due::Steady(Steady(10))), Due::Steady(Steady(0)));
        assert_eq!(later.due(Due::Steady(Steady(u64::MAX))), Due::Steady(Steady(u64::MAX)));
        assert_eq!(later.due(Due::Calendar(Timestamp(10))), Due::Calendar(Timestamp(10)));
    }
}
