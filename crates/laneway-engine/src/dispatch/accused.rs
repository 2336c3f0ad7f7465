//! Accused lanes: what had a committed start and no end at a crash runs one at a time from then on (contract 1.5).
//!
//! A crash accuses everything that ran. Were the accused to run together again, each further crash would count for all
//! of them, and the innocent would reach the limit with the killer. So one permit goes round among all seats of the
//! engine: an accused head waits for it *before* its start is committed, and gives it back when its end is durable.
//! Earlier would not do: the next one could bring the process down while the end of this one is still on its way.
//!
//! Heads that nobody accuses do not wait for it; one of them that runs beside the killer is accused next, once.

use std::collections::VecDeque;
use std::sync::Arc;

use laneway_core::store::SeatStatus;
use laneway_core::{EventId, LaneName};

use super::seat::Seat;
use super::settle::End;
use crate::lane::LaneTurn;
use crate::service::Now;

/// The accused heads of one seat.
#[derive(Debug, Default)]
pub(crate) struct Accused {
    /// Those that wait for the permit.
    waiting: VecDeque<LaneTurn>,
    /// The lane that has it.
    alone: Option<LaneName>,
}

impl Seat {
    /// Whether the head of a lane is accused. What a lane went through belongs to the head that went through it.
    pub(super) fn is_accused(&self, lane: &LaneName, head: EventId) -> bool {
        self.book
            .memo(lane)
            .and_then(|memo| memo.record.as_ref())
            .is_some_and(|record| record.crashes > 0 && record.head == Some(head))
    }

    /// Lets an accused head wait for its time alone.
    pub(super) fn accuse(&mut self, turn: LaneTurn) {
        self.accused.waiting.push_back(turn);
    }

    /// Whether an accused head would run if it had the permit.
    pub(crate) fn wants_alone(&self) -> bool {
        self.accused.alone.is_none() && !self.accused.waiting.is_empty() && self.goes_on()
    }

    /// The permit is here: the first accused head starts as soon as that is durable.
    pub(crate) fn run_alone(&mut self, now: Now) {
        if !self.wants_alone() {
            return;
        }
        let Some(turn) = self.accused.waiting.pop_front() else { return };
        self.accused.alone = Some(turn.key.clone());
        self.commit_start(turn, now);
    }

    /// Whether the permit is still needed. A seat that was stopped before the head ran does not keep it from others.
    pub(crate) fn keeps_alone(&mut self) -> bool {
        if !self.goes_on()
            && let Some(at) =
                self.granted.iter().position(|turn| self.accused.alone.as_ref() == Some(&turn.key))
            && let Some(turn) = self.granted.remove(at)
        {
            self.accused.waiting.push_front(turn);
            self.accused.alone = None;
        }
        self.accused.alone.is_some()
    }

    /// The run of a lane is over and its end durable.
    pub(super) fn end_alone(&mut self, lane: &LaneName) {
        if self.accused.alone.as_ref() == Some(lane) {
            self.accused.alone = None;
        }
    }

    /// Whether this lane runs alone.
    pub(super) fn is_alone(&self, lane: &LaneName) -> bool {
        self.accused.alone.as_ref() == Some(lane)
    }

    /// Takes back the turn of a head that does not run yet: it is accused, or its start was just committed.
    pub(super) fn take_unstarted(&mut self, chosen: impl Fn(&LaneTurn) -> bool) -> Option<LaneTurn> {
        let take =
            |turns: &mut VecDeque<LaneTurn>| turns.iter().position(&chosen).and_then(|at| turns.remove(at));
        take(&mut self.accused.waiting).or_else(|| take(&mut self.granted))
    }

    /// Ends such a head. Answers whether there was one.
    pub(super) fn end_unstarted(&mut self, chosen: impl Fn(&LaneTurn) -> bool, end: End) -> bool {
        let Some(turn) = self.take_unstarted(chosen) else { return false };
        let waiting = Arc::clone(&turn.payload);
        self.end(&turn.key, &waiting, end);
        self.finish_lane(turn);
        true
    }

    fn goes_on(&self) -> bool {
        self.status == SeatStatus::Run && !self.is_draining()
    }
}
