//! Requests: what everyone but the owner can ask of a seat. The owner applies them, one after the other, each in a
//! commit; the outcome decided there is the only one (contract 1.7).
//!
//! A request that finds nothing to do any more is applied all the same: asking twice is harmless.

use bytes::Bytes;
use laneway_core::limits::WINDOW_IDS;
use laneway_core::store::{Emit, Entry, JobResult, LaneView, RedriveTo, RequestOp, Reset, SeatStatus};
use laneway_core::{Block, Draft, EventId, Headers, JobMark, LaneName, LaneRecord, Terminal};

use super::fetch::{Wish, plain};
use super::seat::{After, Seat, Stage, Stop};
use super::settle::End;
use crate::lane::name_of;
use crate::service::Now;

/// Name of the header by which a copy of a dead letter tells where it comes from.
const REDRIVEN_FROM: &str = "laneway-redriven-from";

impl Seat {
    /// The number after which the next request is to be fetched; nothing while there is none, or while the last one
    /// waits for a run to end.
    pub(crate) fn wants_request(&self) -> Option<u64> {
        let wants = self.requests.filed > self.requests.applied && !self.requests.waits;
        wants.then_some(self.requests.applied)
    }

    /// The look-up of a request is on its way: records that change from now on are newer, and so are those whose change
    /// is not durable yet.
    pub(crate) fn wish_sent(&mut self) {
        let mut changed = std::mem::take(&mut self.changed_since_wish);
        changed.retain(|lane| self.is_changing(lane));
        self.changed_since_wish = changed;
    }

    /// There was no request after all.
    pub(crate) fn no_request(&mut self) {
        self.requests.filed = self.requests.applied;
    }

    /// Applies a request.
    pub(crate) fn grant(&mut self, wish: Wish, now: Now) {
        let number = wish.row.number;
        // What it was looked up for may be changing at this moment: it is looked up again afterwards, and not before.
        let lane = wish.lane.as_ref().map(|view| &view.record.lane);
        let changing = lane.is_some_and(|lane| self.is_changing(lane));
        let changed = lane.is_some_and(|lane| self.changed_since_wish.contains(lane));
        if number <= self.requests.applied || changing || changed {
            self.requests.waits |= changing;
            return;
        }
        let applied = match wish.row.op.clone() {
            RequestOp::Cancel { id } => self.cancel(&wish, id),
            RequestOp::Pause { lane: None, .. } => self.set_status(SeatStatus::Paused),
            RequestOp::Resume { lane: None } => self.resume_all(&wish),
            RequestOp::Pause { lane: Some(lane), by } => self.pause(&wish, &lane, by, now),
            RequestOp::Resume { lane: Some(lane) } => self.resume(&wish, &lane),
            RequestOp::Retry { lane, id } => self.retry(&wish, &lane, id),
            RequestOp::Skip { lane, id } => self.skip(&wish, &lane, id),
            RequestOp::Redrive { id, lane, to } => self.redrive(&wish, &lane, id, to),
            RequestOp::Reset(reset) => self.reset(reset),
            // Claims of remote workers are settled by the seat that gave them.
            RequestOp::Settle { .. } | RequestOp::Extend { .. } => true,
        };
        if applied {
            self.requests.applied = number;
            self.gathering.requests_applied(number);
        } else {
            self.requests.waits = true;
        }
    }

    pub(super) fn is_changing(&self, lane: &LaneName) -> bool {
        self.gathering.touches(lane)
            || self.in_flight.as_ref().is_some_and(|in_flight| in_flight.lanes.contains(lane))
    }

    fn set_status(&mut self, status: SeatStatus) -> bool {
        self.status = status;
        self.gathering.status(status);
        true
    }

    /// After a halt the lanes that stood with it run again too.
    fn resume_all(&mut self, wish: &Wish) -> bool {
        if self.status == SeatStatus::Halted {
            self.wanted_lanes.extend(wish.parked.iter().cloned());
        }
        self.set_status(SeatStatus::Run)
    }

    fn cancel(&mut self, wish: &Wish, id: EventId) -> bool {
        let Some(entry) = &wish.event else { return true };
        let (lane, job) = match entry {
            Entry::Event(event) => (name_of(event), event.job),
            Entry::Superseded { key, job, .. } => (LaneName::Key(key.clone()), *job),
        };
        let end = End::new(Terminal::Cancelled, "cancelled on request");
        if self.end_unstarted(|turn| turn.payload.event.id == id, end.clone()) {
            return true;
        }
        if let Some(running) = self.book.running_of(&lane)
            && (running.event.id == id || self.runs_with(&lane, id))
        {
            // It may still be on its way to its start, or have ended and not be durable: then there is nothing to stop.
            self.stop_running(&lane, Stop::Cancel);
            return false;
        }
        if let Some(waiting) = self.book.remove(&lane, id) {
            self.end(&lane, &waiting, end);
            self.tidy_after(&lane);
            return true;
        }
        if let (true, Some(view)) = (wish.sided, &wish.lane) {
            self.end_sided(view, id, job, end);
            return true;
        }
        if id > self.read_to && !self.passed_before.contains(id) && !self.sided_unread.contains(&id) {
            if id.0 > self.floor.0 + WINDOW_IDS {
                // Too far ahead to be passed: when the window has come nearer.
                return false;
            }
            self.sided_unread.insert(id);
            self.end_unread(id, job, end);
        }
        true
    }

    /// Looks again at the request that waits: something has ended, or the window has moved.
    pub(super) fn reconsider_request(&mut self) {
        self.requests.waits = false;
    }

    /// Whether an event runs with its lane's head, in a batch.
    fn runs_with(&self, lane: &LaneName, id: EventId) -> bool {
        let lanes = self.runs.values().flat_map(|active| &active.lanes);
        let mut events = lanes.filter(|active| active.turn.key == *lane).flat_map(|active| active.events());
        events.any(|waiting| waiting.event.id == id)
    }

    /// A waiting event left a lane in memory: the lane may be plain now.
    pub(super) fn tidy_after(&mut self, lane: &LaneName) {
        let Some(memo) = self.book.memo(lane) else { return };
        let plain = memo.sided == 0 && !memo.more && self.book.len_of(lane) == 0;
        if plain && memo.record.as_ref().is_some_and(|record| !stays(record)) {
            self.put_record(lane, None);
            self.book.forget(lane);
        }
    }

    /// An event in the siding of a lane that waits in the store ends; if it was the head, the lane goes on.
    fn end_sided(&mut self, view: &LaneView, id: EventId, job: Option<JobMark>, end: End) {
        let lane = view.record.lane.clone();
        self.gathering.unside(&lane, id);
        self.gathering.ending(end.of(id));
        self.end_job(id, job, &end, JobResult::None);
        let was_head = view.siding.first() == Some(&id);
        let is_last = view.siding.len() == 1;
        let mut record = view.record.clone();
        if was_head {
            record = LaneRecord { head: None, attempts: 0, crashes: 0, started: false, ..record };
        }
        if is_last && !stays(&record) {
            self.put_record(&lane, None);
            self.book.forget(&lane);
            return;
        }
        self.gather_record(&lane, Some(record.clone()));
        if was_head && !stays(&record) {
            self.wanted_lanes.push_back(lane);
        }
    }

    fn pause(&mut self, wish: &Wish, lane: &LaneName, by: Bytes, now: Now) -> bool {
        let paused = Block::Paused { by, at: now.calendar };
        if self.book.len_of(lane) == 0 {
            let record = wish.lane.clone().unwrap_or_else(|| plain(lane.clone())).record;
            self.put_record(lane, Some(LaneRecord { block: Some(paused), ..record }));
            self.book.forget(lane);
            return true;
        }
        if let Some(turn) = self.take_unstarted(|turn| turn.key == *lane) {
            let record = LaneRecord { started: false, ..self.record_of(lane) };
            self.block(turn, paused, record);
            return true;
        }
        let record = LaneRecord { block: Some(paused), ..self.record_of(lane) };
        for waiting in self.book.evict(lane) {
            if waiting.side() {
                self.gathering.side(lane, waiting.event.id);
            }
        }
        self.put_record(lane, Some(record));
        let memo = self.book.memo_mut(lane);
        (memo.more, memo.sided) = (true, memo.sided.min(1));
        if self.book.len_of(lane) == 0 {
            self.book.forget(lane);
        }
        true
    }

    fn resume(&mut self, wish: &Wish, lane: &LaneName) -> bool {
        if self.book.len_of(lane) > 0 {
            // It still runs: what was put aside follows when that is settled.
            let record = LaneRecord { block: None, ..self.record_of(lane) };
            let running = Block::Running { since: laneway_core::Timestamp(0), progress: Bytes::new() };
            self.put_record(lane, Some(LaneRecord { block: Some(running), ..record }));
            return true;
        }
        let Some(view) = &wish.lane else { return true };
        let record = LaneRecord { attempts: 0, crashes: 0, started: false, ..view.record.clone() };
        self.let_go(view, record);
        true
    }

    fn retry(&mut self, wish: &Wish, lane: &LaneName, id: EventId) -> bool {
        let Some(view) = &wish.lane else { return true };
        if self.book.len_of(lane) > 0 || view.siding.first() != Some(&id) {
            return true;
        }
        let mut record = view.record.clone();
        if matches!(record.block, Some(Block::Parked { .. })) {
            // Somebody looked at it: it gets all its attempts again.
            (record.attempts, record.crashes) = (0, 0);
        }
        self.let_go(view, record);
        true
    }

    /// Lifts what holds a lane up in the store.
    fn let_go(&mut self, view: &LaneView, record: LaneRecord) {
        let lane = view.record.lane.clone();
        if view.record.block.is_none() {
            return;
        }
        if view.siding.is_empty() {
            self.put_record(&lane, None);
            self.book.forget(&lane);
            return;
        }
        let running = Block::Running { since: laneway_core::Timestamp(0), progress: Bytes::new() };
        self.gather_record(&lane, Some(LaneRecord { block: Some(running), ..record }));
        self.wanted_lanes.push_back(lane);
    }

    fn skip(&mut self, wish: &Wish, lane: &LaneName, id: EventId) -> bool {
        let end = End::new(Terminal::Skipped, "skipped on request");
        if self.end_unstarted(|turn| turn.key == *lane && turn.payload.event.id == id, end.clone()) {
            return true;
        }
        if self.book.len_of(lane) > 0 {
            if self.book.running_of(lane).is_none()
                && self.book.first_of(lane) == Some(id)
                && let Some(waiting) = self.book.remove(lane, id)
            {
                self.end(lane, &waiting, end);
                self.tidy_after(lane);
            }
            return true;
        }
        let Some(view) = &wish.lane else { return true };
        if view.siding.first() == Some(&id) {
            let found = wish.siding.entries.iter().find(|entry| entry.id() == id);
            let job = found.and_then(|entry| match entry {
                Entry::Event(event) => event.job,
                Entry::Superseded { job, .. } => *job,
            });
            // Whatever held the head up is gone with it, except a pause.
            let mut view = view.clone();
            if !matches!(view.record.block, Some(Block::Paused { .. })) {
                view.record.block =
                    Some(Block::Running { since: laneway_core::Timestamp(0), progress: Bytes::new() });
            }
            self.end_sided(&view, id, job, end);
        }
        true
    }

    /// Brings dead letters back: a diverting lane as a whole, a single one only while it is its lane's last, or as a
    /// copy at the end.
    fn redrive(&mut self, wish: &Wish, lane: &LaneName, id: Option<EventId>, to: RedriveTo) -> bool {
        let chosen = wish.dead.iter().filter(|dead| id.is_none_or(|id| dead.event.id == id));
        if to == RedriveTo::Tail {
            for dead in chosen {
                let from = format!("{}/{}", self.id.shard, dead.event.id);
                let own = dead.event.headers.iter().map(|(name, value)| (name.to_owned(), value.to_vec()));
                let headers = own.chain([(REDRIVEN_FROM.to_owned(), from.into_bytes())]);
                let mut draft =
                    Draft::new(dead.event.key.clone(), dead.event.kind.clone(), dead.event.data.clone());
                draft.headers = Headers::new(headers).unwrap_or_else(|_| dead.event.headers.clone());
                draft.generation = dead.event.generation;
                draft.incarnation = dead.event.incarnation;
                draft.delete = dead.event.delete;
                self.gathering.emit(vec![Emit { stream: self.id.shard.stream, draft }]);
                self.gathering.revive(dead.event.id);
            }
            return true;
        }
        let Some(view) = &wish.lane else { return true };
        let diverting = matches!(view.record.block, Some(Block::Diverting { .. }));
        let may =
            if diverting { id.is_none() } else { wish.is_last_of_lane(id) && self.book.len_of(lane) == 0 };
        if !may {
            return true;
        }
        let revived: Vec<EventId> = chosen.map(|dead| dead.event.id).collect();
        if revived.is_empty() {
            return true;
        }
        for id in &revived {
            self.gathering.revive(*id);
            self.gathering.side(lane, *id);
        }
        let record = LaneRecord {
            block: Some(Block::Running { since: laneway_core::Timestamp(0), progress: Bytes::new() }),
            ..LaneRecord::new(lane.clone())
        };
        self.records.insert(lane);
        self.gather_record(lane, Some(record));
        self.wanted_lanes.push_back(lane.clone());
        true
    }

    /// Begins anew: once nothing runs any more, in one commit.
    fn reset(&mut self, reset: Reset) -> bool {
        self.stage = Stage::Resetting;
        if !self.runs.is_empty() || !self.settling.is_empty() {
            self.stop_all();
            return false;
        }
        self.gathering.reset(reset);
        self.gathering.then(After::Reset);
        true
    }
}

/// Whether a record stays when nothing waits in its lane any more.
fn stays(record: &LaneRecord) -> bool {
    matches!(record.block, Some(Block::Paused { .. } | Block::Diverting { .. }))
}
