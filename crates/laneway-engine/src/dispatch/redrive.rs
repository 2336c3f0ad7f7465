//! Dead letters: brought back into their place or to the end of their lane, or forgotten (contract 1.17).
//!
//! In its place a dead letter comes back only while nothing that came after it is done. Anything else is refused with the
//! reason, because silently doing something else would break the order of the lane.

use laneway_core::store::{DeadLetter, Emit, RedriveTo};
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
            return self.one_by_one(wish, lane, id, Self::copy_to_tail);
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
        if let Err(why) = may_return(wish, &chosen) {
            return refused(why);
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

    /// Does something to dead letters of a lane. Those that the next commit has no room for wait for the one after, and
    /// the request with them: it is answered when there are no more. What became a dead letter only meanwhile is not
    /// meant: copies that fail again would never come to an end.
    fn one_by_one(
        &mut self,
        wish: &Wish,
        lane: &LaneName,
        id: Option<EventId>,
        act: impl Fn(&mut Self, &LaneName, &DeadLetter),
    ) -> Verdict {
        let number = wish.row.number;
        let begun = self.dead_through.get(&number).copied();
        let Some(through) = begun.or_else(|| wish.dead.last().map(|dead| dead.event.id)) else {
            return ALREADY;
        };
        let chosen = |dead: &&DeadLetter| dead.event.id <= through && id.is_none_or(|id| dead.event.id == id);
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
        let from = format!("{}/{}", self.id.shard, dead.event.id);
        let own = dead.event.headers.iter().map(|(name, value)| (name.to_owned(), value.to_vec()));
        let headers = own.chain([(REDRIVEN_FROM.to_owned(), from.into_bytes())]);
        let mut draft = Draft::new(dead.event.key.clone(), dead.event.kind.clone(), dead.event.data.clone());
        draft.headers = Headers::new(headers).unwrap_or_else(|_| dead.event.headers.clone());
        draft.generation = dead.event.generation;
        draft.incarnation = dead.event.incarnation;
        draft.delete = dead.event.delete;
        self.gathering.emit(vec![Emit { stream: self.id.shard.stream, draft }]);
        self.gathering.revive(lane, dead.event.id);
    }

    /// Forgets dead letters for good. A lane that diverts goes on diverting: only a resume ends that.
    pub(super) fn discard(&mut self, wish: &Wish, lane: &LaneName, id: Option<EventId>) -> Verdict {
        self.one_by_one(wish, lane, id, |seat, lane, dead| {
            seat.gathering.revive(lane, dead.event.id);
            seat.tally.discarded += 1;
        })
    }
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
    let last = chosen.len() == 1 && wish.last_of_lane.is_none_or(|last| Some(last) == first);
    if last { Ok(()) } else { Err(Refused::SuccessorsDone) }
}
