//! Requests: what everyone but the owner can ask of a seat. The owner decides each of them once, in a commit, and what it
//! decided is kept with the request's token (contract 1.7).
//!
//! A request that finds nothing to do any more says so: asking twice is harmless. One that has to wait steps aside
//! (`queue`), so that it holds up no other.

use std::collections::BTreeSet;

use bytes::Bytes;
use laneway_core::limits::WINDOW_IDS;
use laneway_core::store::{Entry, JobResult, LaneView, RequestOp, Reset, SeatStatus};
use laneway_core::{Block, EventId, JobMark, LaneName, LaneRecord, Terminal, Timestamp};

use super::fetch::{PARKED_MAX, Wish, plain};
use super::note::Paused;
use super::queue::Until;
use super::seat::{After, Seat, Stage, Stop};
use super::settle::End;
use crate::lane::{Answer, Refused, name_of};
use crate::service::{Env, Now};

/// What becomes of a request that was looked at.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It has its effect in the next commit.
    Answer(Answer),
    /// It is looked at again then.
    PutOff(Until),
    /// What was looked up for it is older than this lane: it is looked up again as soon as the lane stands.
    LookUpAgain(LaneName),
    /// The commit that carries its effect answers it.
    Follows,
}

pub(super) const APPLIED: Verdict = Verdict::Answer(Answer::Applied);
pub(super) const ALREADY: Verdict = Verdict::Answer(Answer::Already);

pub(super) fn refused(why: Refused) -> Verdict {
    Verdict::Answer(Answer::Refused(why))
}

impl Seat {
    /// The number after which the next requests are to be fetched, and how many.
    pub(crate) fn wants_requests(&self) -> Option<(u64, usize)> {
        if self.gathering.is_enough() {
            return None;
        }
        self.requests.wanted().map(|after| (after, self.requests.page_len()))
    }

    /// The look-up of requests is on its way: records that change from now on are newer, and so are those whose change
    /// is not durable yet.
    pub(crate) fn wish_sent(&mut self) {
        let mut changed = std::mem::take(&mut self.changed_since_wish);
        changed.retain(|lane| self.is_changing(lane));
        self.changed_since_wish = changed;
        self.ended_since_look_up = Some(BTreeSet::new());
        self.requests.sent();
    }

    /// Decides requests that were looked up together, as far as the next commit has room for their effects. The rest is
    /// looked up again.
    pub(crate) fn grant_all(&mut self, env: &Env, requests: Vec<Wish>, now: Now) {
        if requests.is_empty() {
            self.requests.nothing_found();
        }
        for (place, request) in requests.into_iter().enumerate() {
            let may_go_on = || !self.gathering.is_enough() && self.requests.may_go_on(request.fetched_after);
            if place > 0 && !may_go_on() {
                break;
            }
            self.grant(env, request, now);
        }
        self.ended_since_look_up = None;
    }

    /// Decides a request.
    pub(crate) fn grant(&mut self, env: &Env, wish: Wish, now: Now) {
        let number = wish.row.number;
        if !self.requests.found(number) {
            return;
        }
        if self.requests.is_early(number, wish.fetched_after) {
            let op = &wish.row.op;
            let decide = matches!(op, RequestOp::Pause { lane: None, .. } | RequestOp::Resume { lane: None });
            self.requests.met_early(number, decide);
            if !decide {
                return;
            }
        }
        let lane = wish.lane.as_ref().map(|view| &view.record.lane);
        if let Some(lane) = lane.filter(|lane| !self.knows(&wish) && self.is_newer_than_wish(lane)) {
            return self.look_up_again(number, lane.clone());
        }
        wish.lane.iter().for_each(|view| self.note_ahead(view));
        let verdict = match wish.row.op.clone() {
            RequestOp::Cancel { id } => self.cancel(&wish, id),
            RequestOp::Pause { lane: None, by } => self.pause_all(by, now),
            RequestOp::Resume { lane: None } => self.resume_all(&wish),
            RequestOp::Pause { lane: Some(lane), by } => self.pause(&wish, &lane, by, now),
            RequestOp::Resume { lane: Some(lane) } => self.resume(&wish, &lane),
            RequestOp::Retry { lane, id } => self.retry(&wish, &lane, id),
            RequestOp::Skip { lane, id } => self.skip(&wish, &lane, id),
            RequestOp::Redrive { id, lane, to } => self.redrive(&wish, &lane, id, to),
            RequestOp::Discard { id, lane } => self.discard(&wish, &lane, id),
            RequestOp::Reset(reset) => self.reset(reset),
            RequestOp::Settle { .. } => self.settle_claim(env, wish, now),
            RequestOp::Extend { lease, .. } => self.extend_claim(&wish, lease, now),
        };
        match verdict {
            Verdict::Answer(answer) => self.answer(number, answer),
            Verdict::PutOff(until) => self.requests.put_off(number, until),
            Verdict::LookUpAgain(lane) => self.look_up_again(number, lane),
            Verdict::Follows => self.requests.put_off(number, Until::Answer),
        }
    }

    /// Whether a lane has changed since the requests under way were looked up, or is just changing.
    fn is_newer_than_wish(&self, lane: &LaneName) -> bool {
        self.is_changing(lane) || self.changed_since_wish.contains(lane)
    }

    /// What a request was looked up for has changed: it is looked up again once that is durable, and at once if it is. A lane
    /// that stands already moves no more by itself, least of all in a seat that is halted: nothing else would call the request.
    fn look_up_again(&mut self, number: u64, lane: LaneName) {
        let stands = !self.is_changing(&lane);
        self.requests.put_off(number, Until::Lane(lane.clone()));
        if stands {
            self.requests.moved(&lane);
        }
    }

    /// Whether memory alone decides a request, so that a lane that changes with every commit does not put it off for ever.
    fn knows(&self, wish: &Wish) -> bool {
        match (&wish.row.op, &wish.event) {
            (RequestOp::Pause { lane: Some(lane), .. }, _) => {
                self.book.len_of(lane) > 0 && !self.is_turning(lane)
            }
            (RequestOp::Cancel { id }, Some(Entry::Event(event))) => {
                let lane = name_of(event);
                let runs = self.book.running_of(&lane).is_some_and(|running| running.event.id == *id);
                runs || self.book.find(&lane, *id).is_some()
            }
            _ => false,
        }
    }

    /// Whether a commit that is not durable yet lets the head of a lane start, or the lane leave memory.
    fn is_turning(&self, lane: &LaneName) -> bool {
        let turns = |after: &After| matches!(after, After::Grant { turn } | After::Block { turn } if turn.key == *lane);
        let in_flight = self.in_flight.iter().flat_map(|in_flight| &in_flight.after);
        in_flight.chain(self.gathering.afterwards()).any(turns)
    }

    /// A request has its effect in the next commit.
    pub(super) fn answer(&mut self, number: u64, answer: Answer) {
        self.gathering.answer(number, answer.to_bytes());
        self.requests.answered(number);
    }

    pub(super) fn is_changing(&self, lane: &LaneName) -> bool {
        self.gathering.touches(lane)
            || self.in_flight.as_ref().is_some_and(|in_flight| in_flight.lanes.contains(lane))
    }

    fn set_status(&mut self, status: SeatStatus, paused: Option<Paused>) -> Verdict {
        if self.status == status {
            return ALREADY;
        }
        self.change_status(status, paused);
        APPLIED
    }

    /// Runs, halts or pauses the processor here; who paused it is kept as long as it is paused.
    pub(super) fn change_status(&mut self, status: SeatStatus, paused: Option<Paused>) {
        self.status = status;
        self.gathering.status(status);
        if self.note.paused != paused {
            self.note.paused = paused;
            self.gathering.note(self.note.encode());
        }
    }

    /// A halted processor stands still already. Were it paused, whoever resumes it would not know of the lanes that stand with
    /// the halt.
    fn pause_all(&mut self, by: Bytes, now: Now) -> Verdict {
        if self.status == SeatStatus::Halted {
            return ALREADY;
        }
        self.set_status(SeatStatus::Paused, Some(Paused { by, at: now.calendar }))
    }

    /// After a halt the lanes that stood with it run again too: all of them, before the processor does.
    fn resume_all(&mut self, wish: &Wish) -> Verdict {
        if self.status == SeatStatus::Halted {
            // One that is not among the parked may have been parked since.
            if let Some(lane) = self.changed_since_wish.first() {
                return Verdict::LookUpAgain(lane.clone());
            }
            for record in wish.parked.iter().cloned() {
                self.run_again(LaneRecord { attempts: 0, crashes: 0, started: false, ..record });
            }
            if let Some(last) = wish.parked.get(PARKED_MAX - 1) {
                // There may be more: they are looked for once these are not parked any more.
                return Verdict::PutOff(Until::Lane(last.lane.clone()));
            }
        }
        self.set_status(SeatStatus::Run, None)
    }

    /// A lane that was held up in the store comes back into memory.
    fn run_again(&mut self, record: LaneRecord) {
        let lane = record.lane.clone();
        self.gather_record(&lane, Some(LaneRecord { block: Some(running()), ..record }));
        self.wanted_lanes.push_back(lane);
    }

    fn cancel(&mut self, wish: &Wish, id: EventId) -> Verdict {
        let Some(entry) = &wish.event else { return ALREADY };
        let (lane, job) = match entry {
            Entry::Event(event) => (name_of(event), event.job),
            Entry::Superseded { key, job, .. } => (LaneName::Key(key.clone()), *job),
        };
        let end = End::new(Terminal::Cancelled, "cancelled on request");
        if self.end_unstarted(|turn| turn.payload.event.id == id, end.clone()) {
            return APPLIED;
        }
        if let Some(running) = self.book.running_of(&lane)
            && (running.event.id == id || self.runs_with(&lane, id))
        {
            // It may still be on its way to its start, or have ended and not be durable: then there is nothing to stop.
            self.stop_running(&lane, Stop::Cancel(id));
            return Verdict::PutOff(Until::Lane(lane));
        }
        if self.book.find(&lane, id).is_some_and(|waiting| waiting.has_ended()) {
            // It ran with the head of its lane, and that is not durable yet.
            return Verdict::PutOff(Until::Lane(lane));
        }
        if let Some(waiting) = self.book.remove(&lane, id) {
            self.end(&lane, &waiting, end);
            self.tidy_after(&lane);
            return APPLIED;
        }
        if let (true, Some(view)) = (wish.sided, &wish.lane) {
            self.end_sided(view, id, job, end);
            return APPLIED;
        }
        let is_unread = id > self.read_to && !self.is_ahead(&lane, id);
        if is_unread && !self.passed_before.contains(id) && !self.sided_unread.contains(&id) {
            if id.0 > self.floor.0 + WINDOW_IDS {
                // Too far ahead to be passed: when the window has come nearer.
                return Verdict::PutOff(Until::Window(id));
            }
            self.sided_unread.insert(id);
            self.end_unread(id, job, end);
            return APPLIED;
        }
        // It has ended: by this very request, or before it.
        if wish.ended == Some(Terminal::Cancelled) { APPLIED } else { ALREADY }
    }

    /// Whether an event of a lane has ended, as far as this owner knows and the lane's view tells.
    pub(super) fn has_ended(&self, lane: &LaneName, id: EventId, view: Option<&LaneView>) -> bool {
        let runs = self.book.running_of(lane).is_some_and(|running| running.event.id == id);
        let sided = view.is_some_and(|view| view.siding.contains(&id));
        let read = id <= self.read_to || self.is_ahead(lane, id) || self.passed_before.contains(id);
        (read || self.sided_unread.contains(&id)) && !runs && !sided && self.book.find(lane, id).is_none()
    }

    /// Whether an event runs with its lane's head, in a batch.
    fn runs_with(&self, lane: &LaneName, id: EventId) -> bool {
        let lanes = self.runs.values().flat_map(|active| &active.lanes);
        let mut events = lanes.filter(|active| active.turn.key == *lane).flat_map(|active| active.events());
        events.any(|waiting| waiting.event.id == id)
    }

    /// A waiting event left a lane in memory: the lane may be plain now.
    pub(super) fn tidy_after(&mut self, lane: &LaneName) {
        self.want_more(lane);
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
        let end = end.after(Some(&view.record), id);
        self.gathering.unside(&lane, id);
        self.gathering.ending(end.of(id));
        self.end_job(id, job, &end, JobResult::None);
        if self.book.len_of(&lane) > 0 {
            // It waited behind those in memory, which go on as they were.
            let record = self.record_of(&lane);
            return self.gather_record(&lane, Some(record));
        }
        let mut record = view.record.clone();
        // A worker that has it loses the whole batch: what it answers would be about other events.
        let claimed = matches!(&record.block, Some(Block::Claimed(claim)) if id <= claim.through);
        let goes_on = view.siding.first() == Some(&id) || claimed;
        let is_last = view.siding.len() == 1;
        if goes_on {
            record = LaneRecord { head: None, attempts: 0, crashes: 0, started: false, ..record };
        }
        if claimed {
            record.block = Some(running());
        }
        if is_last && !stays(&record) {
            self.put_record(&lane, None);
            self.book.forget(&lane);
            return;
        }
        self.gather_record(&lane, Some(record.clone()));
        if goes_on && !stays(&record) {
            self.wanted_lanes.push_back(lane);
        }
    }

    fn pause(&mut self, wish: &Wish, lane: &LaneName, by: Bytes, now: Now) -> Verdict {
        let paused = Block::Paused { by, at: now.calendar };
        if self.book.len_of(lane) == 0 {
            let record = wish.lane.clone().unwrap_or_else(|| plain(lane.clone())).record;
            if matches!(record.block, Some(Block::Paused { .. })) {
                return ALREADY;
            }
            self.put_record(lane, Some(LaneRecord { block: Some(paused), ..record }));
            self.book.forget(lane);
            return APPLIED;
        }
        if let Some(turn) = self.take_unstarted(|turn| turn.key == *lane) {
            let record = LaneRecord { started: false, ..self.record_of(lane) };
            self.block(turn, paused, record);
            return APPLIED;
        }
        let record = LaneRecord { block: Some(paused), ..self.record_of(lane) };
        self.side_in_memory(lane);
        self.book.evict(lane);
        self.put_record(lane, Some(record));
        let memo = self.book.memo_mut(lane);
        (memo.more, memo.sided) = (true, memo.sided.min(1));
        if self.book.len_of(lane) == 0 {
            self.book.forget(lane);
        }
        APPLIED
    }

    fn resume(&mut self, wish: &Wish, lane: &LaneName) -> Verdict {
        if self.book.len_of(lane) > 0 {
            let record = self.record_of(lane);
            if !matches!(record.block, Some(Block::Paused { .. })) {
                return ALREADY;
            }
            // It still runs: what was put aside follows when that is settled.
            self.put_record(lane, Some(LaneRecord { block: Some(running()), ..record }));
            return APPLIED;
        }
        let Some(view) = &wish.lane else { return ALREADY };
        let record = LaneRecord { attempts: 0, crashes: 0, started: false, ..view.record.clone() };
        self.let_go(view, record)
    }

    fn retry(&mut self, wish: &Wish, lane: &LaneName, id: EventId) -> Verdict {
        let Some(view) = &wish.lane else { return ALREADY };
        if self.book.len_of(lane) > 0 || view.siding.first() != Some(&id) {
            return ALREADY;
        }
        let mut record = view.record.clone();
        if matches!(record.block, Some(Block::Parked { .. })) {
            // Somebody looked at it: it gets all its attempts again.
            (record.attempts, record.crashes) = (0, 0);
        }
        self.let_go(view, record)
    }

    /// Lifts what holds a lane up in the store. What a worker has is not held up.
    fn let_go(&mut self, view: &LaneView, record: LaneRecord) -> Verdict {
        let lane = view.record.lane.clone();
        if matches!(view.record.block, None | Some(Block::Claimed(_))) {
            return ALREADY;
        }
        if view.siding.is_empty() {
            self.put_record(&lane, None);
            self.book.forget(&lane);
            return APPLIED;
        }
        self.run_again(record);
        APPLIED
    }

    fn skip(&mut self, wish: &Wish, lane: &LaneName, id: EventId) -> Verdict {
        let end = End::new(Terminal::Skipped, "skipped on request");
        if self.end_unstarted(|turn| turn.key == *lane && turn.payload.event.id == id, end.clone()) {
            return APPLIED;
        }
        if let Some(running) = self.book.running_of(lane) {
            let is_head = running.event.id == id && !running.has_ended();
            return if is_head { refused(Refused::Running) } else { ALREADY };
        }
        if self.book.len_of(lane) > 0 {
            if self.book.first_of(lane) == Some(id)
                && let Some(waiting) = self.book.remove(lane, id)
            {
                self.end(lane, &waiting, end);
                self.tidy_after(lane);
                return APPLIED;
            }
            return ALREADY;
        }
        let Some(view) = wish.lane.as_ref().filter(|view| view.siding.first() == Some(&id)) else {
            return ALREADY;
        };
        if matches!(view.record.block, Some(Block::Claimed(_))) {
            return refused(Refused::Running);
        }
        let found = wish.siding.events.entries.iter().find(|entry| entry.id() == id);
        let job = found.and_then(|entry| match entry {
            Entry::Event(event) => event.job,
            Entry::Superseded { job, .. } => *job,
        });
        // Whatever held the head up is gone with it, except a pause.
        let mut view = view.clone();
        if !matches!(view.record.block, Some(Block::Paused { .. })) {
            view.record.block = Some(running());
        }
        self.end_sided(&view, id, job, end);
        APPLIED
    }

    /// Begins anew: once nothing runs any more, in one commit.
    fn reset(&mut self, reset: Reset) -> Verdict {
        self.stage = Stage::Resetting;
        if !self.runs.is_empty() || !self.settling.is_empty() {
            self.take_back_runs();
            return Verdict::PutOff(Until::Quiet);
        }
        // What was quiet in a life before was emitted in one before that.
        let quiet_to = if reset.quiet { self.note.quiet_to.max(self.floor) } else { EventId(0) };
        if self.note.quiet_to != quiet_to {
            self.note.quiet_to = quiet_to;
            self.gathering.note(self.note.encode());
        }
        self.gathering.reset(reset);
        self.gathering.then(After::Reset);
        APPLIED
    }
}

/// The block of a lane that comes back into memory.
pub(super) fn running() -> Block {
    Block::Running { since: Timestamp(0), progress: Bytes::new() }
}

/// Whether a record stays when nothing waits in its lane any more.
fn stays(record: &LaneRecord) -> bool {
    matches!(record.block, Some(Block::Paused { .. } | Block::Diverting { .. }))
}
