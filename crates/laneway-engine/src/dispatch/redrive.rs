//! Dead letters: brought back into their place or to the end of their lane, or forgotten (contract 1.17).
//!
//! In its place a dead letter comes back only while nothing that came after it is done. Anything else is refused with the
//! reason, because silently doing something else would break the order of the lane.

use laneway_core::store::{DeadLetter, Emit, RedriveTo, TailView};
use laneway_core::{Block, Draft, EventId, Headers, LaneName, LaneRecord};

use super::fetch::Wish;
use super::queue::Until;
use super::requests::{ALREADY, APPLIED, Verdict, refused, running};
use super::seat::{After, Seat};
use crate::lane::Refused;

/// Name of the header by which a copy of a dead letter tells where it comes from.
const REDRIVEN_FROM: &str = "laneway-redriven-from";

impl Seat {
    /// Brings dead letters back: a diverting lane as a whole, a single one only while it is its lane's last, or as a
    /// copy at the end.
    pub(super) fn redrive(
        &mut self,
        wish: &Wish,
        lane: &LaneName,
        id: Option<EventId>,
        to: RedriveTo,
    ) -> Verdict {
        if to == RedriveTo::Tail {
            return self.redrive_to_tail(wish, lane, id);
        }
        let chosen: Vec<&DeadLetter> =
            wish.dead.iter().filter(|dead| id.is_none_or(|id| dead.event.id == id)).collect();
        if chosen.is_empty() {
            return ALREADY;
        }
        if self.book.len_of(lane) > 0 {
            // Its lane is just about to end what is in memory.
            return Verdict::PutOff(Until::Lane(lane.clone()));
        }
        if self.ended_since_look_up.as_ref().is_some_and(|ended| ended.contains(lane)) {
            // What came after these letters may have ended, or be a letter too, and the look-up has missed it.
            return Verdict::LookUpAgain(lane.clone());
        }
        if let Err(why) = may_return(wish, &chosen) {
            return refused(why);
        }
        if chosen.iter().any(|dead| dead.event.id <= wish.trimmed) {
            // A place in the log is what it lost: its siding could only name it.
            return refused(Refused::Trimmed);
        }
        for dead in &chosen {
            self.gathering.revive(lane, dead.event.id);
            if self.is_ahead(lane, dead.event.id) {
                self.gathering.side_ahead(lane, dead.event.id);
            } else {
                self.gathering.side(lane, dead.event.id);
            }
        }
        let before = wish.lane.as_ref().map(|view| view.record.clone());
        let record = before.unwrap_or_else(|| LaneRecord::new(lane.clone()));
        let paused = matches!(record.block, Some(Block::Paused { .. }));
        let block = if paused { record.block.clone() } else { Some(running()) };
        self.records.insert(lane);
        self.gather_record(lane, Some(LaneRecord { block, ..LaneRecord::new(lane.clone()) }));
        if !paused {
            self.wanted_lanes.push_back(lane.clone());
        }
        APPLIED
    }

    /// Sends copies to the lane's end. In latest mode only of what is not older than the lane's newest: anything else would
    /// be stale, and be gone with its dead letter.
    fn redrive_to_tail(&mut self, wish: &Wish, lane: &LaneName, id: Option<EventId>) -> Verdict {
        let named = |dead: &DeadLetter| id.is_none_or(|id| dead.event.id == id);
        let meant =
            |dead: &DeadLetter| named(dead) && !wish.tail.as_ref().is_some_and(|tail| is_stale(dead, tail));
        if !self.dead_through.contains_key(&wish.row.number) {
            if wish.dead.iter().any(named) && !wish.dead.iter().any(meant) {
                return refused(Refused::Stale);
            }
            let has_room = |dead: &DeadLetter| self.headers_of_copy(dead).is_ok();
            if !wish.dead.iter().filter(|dead| meant(dead)).all(has_room) {
                return refused(Refused::HeadersFull);
            }
        }
        self.one_by_one(wish, lane, meant, Self::copy_to_tail)
    }

    /// Does something to dead letters of a lane. Those that the next commit has no room for wait for the one after, and
    /// the request with them: it is answered when there are no more. What became a dead letter only meanwhile is not
    /// meant: copies that fail again would never come to an end.
    fn one_by_one(
        &mut self,
        wish: &Wish,
        lane: &LaneName,
        meant: impl Fn(&DeadLetter) -> bool,
        act: impl Fn(&mut Self, &LaneName, &DeadLetter),
    ) -> Verdict {
        let number = wish.row.number;
        let begun = self.dead_through.get(&number).copied();
        let Some(through) = begun.or_else(|| wish.dead.last().map(|dead| dead.event.id)) else {
            return ALREADY;
        };
        let chosen = |dead: &&DeadLetter| dead.event.id <= through && meant(dead);
        let mut any = begun.is_some();
        self.changed_since_wish.insert(lane.clone());
        for dead in wish.dead.iter().filter(chosen) {
            if self.gathering.is_enough() || dead.event.id > wish.whole_through {
                self.dead_through.insert(number, through);
                // Others may have filled it, and nothing of the lane is in it.
                self.gathering.then(After::Moved { lane: lane.clone() });
                return Verdict::PutOff(Until::Lane(lane.clone()));
            }
            act(self, lane, dead);
            any = true;
        }
        self.dead_through.remove(&number);
        if any { APPLIED } else { ALREADY }
    }

    fn copy_to_tail(&mut self, lane: &LaneName, dead: &DeadLetter) {
        let mut draft = Draft::new(dead.event.key.clone(), dead.event.kind.clone(), dead.event.data.clone());
        draft.headers = self.headers_of_copy(dead).expect("refused before the first is copied");
        draft.generation = dead.event.generation;
        draft.incarnation = dead.event.incarnation;
        draft.delete = dead.event.delete;
        draft.priority = dead.event.priority;
        self.gathering.emit(vec![Emit { stream: self.id.shard.stream, draft }]);
        self.gathering.revive(lane, dead.event.id);
    }

    /// The headers of a copy: it says which event it was, and not which one that was a copy of.
    fn headers_of_copy(&self, dead: &DeadLetter) -> Result<Headers, Refused> {
        let from = format!("{}/{}", self.id.shard, dead.event.id);
        let own = dead.event.headers.iter().filter(|(name, _)| *name != REDRIVEN_FROM);
        let headers = own.chain([(REDRIVEN_FROM, from.as_bytes())]);
        Headers::new(headers).map_err(|_| Refused::HeadersFull)
    }

    /// Forgets dead letters for good. A lane that diverts goes on diverting: only a resume ends that.
    pub(super) fn discard(&mut self, wish: &Wish, lane: &LaneName, id: Option<EventId>) -> Verdict {
        let meant = |dead: &DeadLetter| id.is_none_or(|id| dead.event.id == id);
        self.one_by_one(wish, lane, meant, |seat, lane, dead| {
            seat.gathering.revive(lane, dead.event.id);
            seat.tally.discarded += 1;
        })
    }
}

/// Whether the stream would not take a copy, because its lane has something newer (latest mode).
pub(super) fn is_stale(dead: &DeadLetter, tail: &TailView) -> bool {
    let Some(newest) = tail.generation else { return false };
    let (is_its_life, own) = (tail.incarnation == dead.event.incarnation, dead.event.generation.unwrap_or(0));
    // Nothing follows a delete of the same object.
    tail.incarnation > dead.event.incarnation || (is_its_life && (newest > own || tail.deleted))
}

/// Whether these dead letters can be put back before everything that came after them.
fn may_return(wish: &Wish, chosen: &[&DeadLetter]) -> Result<(), Refused> {
    let diverting =
        wish.lane.as_ref().is_some_and(|view| matches!(view.record.block, Some(Block::Diverting { .. })));
    let first = chosen.first().map(|dead| dead.event.id);
    let earlier = wish.dead.first().map(|dead| dead.event.id) < first;
    if diverting {
        // As a whole and in order.
        return match (chosen.len() == wish.dead.len(), earlier) {
            (true, _) => Ok(()),
            (false, true) => Err(Refused::EarlierDead),
            (false, false) => Err(Refused::WholeLane),
        };
    }
    // What came after it has ended, or it would have come back with a diverting lane.
    let last = chosen.len() == 1 && wish.tail.as_ref().is_none_or(|tail| Some(tail.id) == first);
    if last { Ok(()) } else { Err(Refused::SuccessorsDone) }
}
