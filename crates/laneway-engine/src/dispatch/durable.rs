//! What follows once a commit is durable: lanes go on, or leave memory.

use laneway_core::limits::WINDOW_IDS;
use laneway_core::store::{Commit, Committed};
use laneway_core::{Block, CommitId, EventId, LaneName, LaneRecord};

use super::intake::gives_way;
use super::requests::running;
use super::seat::{After, InFlight, Seat, Stage};
use crate::commit::Taken;
use crate::lane::LaneTurn;
use crate::log::Forwarded;
use crate::service::Now;

impl Seat {
    /// The next commit, if there is anything to settle and none is on its way.
    pub(crate) fn next_commit(&mut self, id: impl FnOnce() -> CommitId, now: Now) -> Option<Commit> {
        if self.in_flight.is_some() {
            return None;
        }
        self.let_floor_rise(now);
        self.show_long_runs(now);
        if let Some(number) = self.requests.applied_now() {
            self.gathering.requests_applied(number);
        }
        if self.forwarded > self.forwarded_durable && !self.gathering.is_empty() {
            self.note_forwarded();
        }
        if self.gathering.is_empty() {
            return None;
        }
        if self.stage == Stage::Leaving {
            // Something came after the commit that said so: the last one counts.
            self.gathering.clean();
        }
        let may_wait = self.nobody_waits();
        let Taken { commit, changed, after } = self.gathering.take(self.id, self.fence, id());
        let commit = Commit { may_wait, ..commit };
        self.dead_count.sent(&commit);
        if !commit.dead.is_empty() {
            self.dead_lanes.lock().sent(&commit);
        }
        self.in_flight = Some(InFlight { after, lanes: changed, next_due: self.next_due.take() });
        Some(commit)
    }

    /// Whether nothing waits for the next commit: it only passes events, and they are the last that the seat has.
    fn nobody_waits(&self) -> bool {
        let ends = self.gathering.afterwards();
        self.gathering.only_passes()
            && ends.iter().all(|after| matches!(after, After::Finish { .. }))
            && ends.len() == self.book.len()
            && self.has_no_other_work()
    }

    /// Emits up to a number have reached their shard, but for those that never will: they are reported in the commit that
    /// takes them out of the outbox.
    pub(crate) fn emits_forwarded(&mut self, forwarded: Forwarded) {
        self.forwarded = self.forwarded.max(forwarded.through);
        self.note_forwarded();
        for lost in forwarded.lost {
            self.tell_lost(&lost);
        }
    }

    fn note_forwarded(&mut self) {
        self.gathering.forwarded(self.forwarded);
        self.forwarded_durable = self.forwarded;
    }

    /// The commit on its way is durable.
    pub(crate) fn committed(&mut self, answer: Committed, now: Now) {
        self.fence = answer.fence;
        self.floor = answer.floor;
        if self.read_to < self.floor {
            // What was parked or cancelled before it was read is behind the floor now.
            self.read_to = self.floor;
            self.sided_unread = self.sided_unread.split_off(&self.floor.next());
        }
        self.emitted = answer.emitted;
        self.requests.filed(answer.request_no);
        self.dead_count.durable();
        self.dead_lanes.lock().durable();
        let Some(in_flight) = self.in_flight.take() else { return };
        self.next_due_durable = in_flight.next_due;
        in_flight.lanes.iter().for_each(|lane| self.requests.moved(lane));
        if let Some(ended) = &mut self.ended_since_look_up {
            ended.extend(in_flight.lanes.iter().cloned());
            ended.extend(in_flight.after.iter().filter_map(After::ended_lane).cloned());
        }
        self.urgent.committed(in_flight.lanes.iter());
        if let Some(changed) = &mut self.committed_while_loading {
            changed.extend(in_flight.lanes);
        }
        for after in in_flight.after {
            match after {
                After::Finish { turn } => {
                    self.end_alone(&turn.key);
                    self.book.finish(&turn);
                    self.book.is_runnable(&turn.key, now);
                    self.want_more(&turn.key);
                    self.requests.moved(&turn.key);
                }
                After::Ahead { lane, events } => self.join_ahead(lane, events, now),
                After::Moved { lane } => self.requests.moved(&lane),
                After::CaughtUp { lane } => {
                    self.end_alone(&lane);
                    self.book.caught_up(&lane);
                    self.requests.moved(&lane);
                }
                After::Block { turn } => {
                    self.end_alone(&turn.key);
                    self.leave_memory(&turn, now);
                    self.requests.moved(&turn.key);
                }
                After::Grant { turn } => {
                    self.requests.moved(&turn.key);
                    self.granted.push_back(turn);
                }
                After::Tell(signal) => signal.tell(),
                After::States(states) => self.fresh_states.extend(states),
                After::Reset => self.stage = Stage::BeganAnew,
            }
        }
        self.requests.reached(EventId(self.floor.0 + WINDOW_IDS));
        self.requests.quieter();
        self.floor_rose();
    }

    /// A lane that has come to the end of what is in memory of its siding gets more of it.
    pub(super) fn want_more(&mut self, lane: &LaneName) {
        let Some(memo) = self.book.memo(lane).filter(|_| self.book.len_of(lane) == 0) else { return };
        let block = memo.record.as_ref().and_then(|record| record.block.as_ref());
        if matches!(block, Some(Block::Paused { .. })) {
            self.book.forget(lane);
        } else if memo.more {
            self.wanted_lanes.push_back(lane.clone());
        }
    }

    /// A lane that is held up in the store leaves memory. What came since its commit was gathered follows it.
    fn leave_memory(&mut self, turn: &LaneTurn, now: Now) {
        let lane = &turn.key;
        let block = self.record_of(lane).block;
        if matches!(block, Some(Block::Diverting { .. }))
            && self.book.memo(lane).is_some_and(|memo| memo.more)
        {
            self.wanted_lanes.push_back(lane.clone());
        }
        let newer = self.newer_than(lane, turn.payload.event.id);
        let late = self.book.evict(lane);
        self.book.finish(turn);
        for waiting in late.into_iter().filter(|waiting| !waiting.has_ended()) {
            match block {
                Some(Block::Diverting { since }) if !self.gathering.is_enough() => {
                    self.divert(&waiting.event, since);
                }
                _ => {
                    if waiting.side() {
                        self.side_one(lane, waiting.event.id, now);
                    }
                    if matches!(block, Some(Block::Diverting { .. })) && !self.wanted_lanes.contains(lane) {
                        self.wanted_lanes.push_back(lane.clone());
                    }
                }
            }
        }
        if newer.is_some() && block.as_ref().is_some_and(gives_way) {
            // A newer event came while this was made durable: it frees the lane as if it had come after.
            self.put_record(lane, Some(LaneRecord { block: Some(running()), ..self.record_of(lane) }));
            self.wanted_lanes.push_back(lane.clone());
        }
        self.book.forget(lane);
    }
}
