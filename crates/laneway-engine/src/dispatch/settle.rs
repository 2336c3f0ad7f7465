//! Settle: what a run came to goes into the next commit.

use std::sync::Arc;

use super::seat::{Active, ActiveLane, After, Finished, RunNo, Seat, Stop};
use crate::commit::{Prepared, shorten};
use crate::handler::{Canceller, Decision, Failure, LastDone, OnFailure, Retry, StateChange};
use crate::lane::{LaneTurn, Waiting, open_state, seal_state};
use crate::log::Lost;
use crate::observe::{Report, report};
use crate::service::{Env, Now};
use bytes::Bytes;
use laneway_core::store::{DeadLetter, Emit, Ending, JobEnd, JobResult, SeatStatus, Versioned};
use laneway_core::{Block, Due, Event, EventId, JobMark, LaneName, LaneRecord, Mode, Terminal, Timestamp};

/// How an event ends, other than by a run that is done.
#[derive(Debug, Clone)]
pub(crate) struct End {
    pub(super) terminal: Terminal,
    pub(super) reason: String,
    pub(super) winner: Option<EventId>,
    pub(super) attempts: u32,
    pub(super) started_at: Option<Timestamp>,
}

impl End {
    pub(super) fn new(terminal: Terminal, reason: impl Into<String>) -> Self {
        let mut reason = reason.into();
        shorten(&mut reason);
        Self { terminal, reason, winner: None, attempts: 0, started_at: None }
    }

    pub(super) fn superseded(winner: EventId) -> Self {
        Self { winner: Some(winner), ..Self::new(Terminal::Superseded, format!("by event {winner}")) }
    }

    /// One that ends without a run of its own had as many attempts as the record of its lane says of it.
    pub(super) fn after(self, record: Option<&LaneRecord>, id: EventId) -> Self {
        let own = record.filter(|record| record.head == Some(id));
        Self { attempts: self.attempts.max(own.map_or(0, |record| record.attempts)), ..self }
    }

    pub(super) fn of(&self, id: EventId) -> Ending {
        Ending { id, end: self.terminal, reason: Bytes::from(self.reason.clone()), winner: self.winner }
    }
}

impl Seat {
    /// A run is over. It is gathered when there is room in the next commit.
    pub(crate) fn finished(&mut self, run: RunNo, finished: Finished) {
        finished.took.into_iter().for_each(|took| self.tally.ran(took));
        self.settling.push_back((run, finished));
    }

    /// Gathers runs that are over, as far as the next commit has room.
    pub(crate) fn settle(&mut self, env: &Env, now: Now) {
        // One that has ended otherwise stays in memory until that is durable.
        for waiting in self.book.expired(now).into_iter().filter(|waiting| !waiting.has_ended()) {
            let lane = crate::lane::name_of(&waiting.event);
            self.end(&lane, &waiting, End::new(Terminal::Expired, "not started within its ttl"));
            self.tidy_after(&lane);
        }
        while !self.gathering.is_enough()
            && let Some((number, finished)) = self.settling.pop_front()
        {
            let Some(active) = self.runs.remove(&number) else { continue };
            let stopped = active.lanes.iter().any(|lane| lane.stop.is_some());
            let mut left = Vec::new();
            for (mut lane, answer) in active.lanes.into_iter().zip(finished.answers) {
                if stopped {
                    lane.stop = lane.stop.or(Some(Stop::Beside));
                }
                if self.gathering.is_enough() {
                    left.push((lane, answer));
                } else {
                    left.extend(self.settle_lane(env, now, lane, answer, finished.started_at));
                }
            }
            if !left.is_empty() {
                // The run is over when all of it is settled.
                let (lanes, answers) = left.into_iter().unzip();
                self.runs.insert(number, Active { lanes, ..active });
                self.settling.push_front((number, Finished { answers, ..finished }));
                return;
            }
            self.requests.quieter();
        }
    }

    /// What is left of an answer goes with the commit after, as that of a run that is over.
    pub(super) fn settle_later(&mut self, lane: ActiveLane, answer: Prepared, now: Now) {
        let number = RunNo(self.next_run);
        self.next_run += 1;
        let active = Active { lanes: vec![lane], canceller: Canceller::new(), since: now, shown: false };
        self.runs.insert(number, active);
        let finished = Finished { answers: vec![answer], started_at: now.calendar, took: None };
        self.settling.push_front((number, finished));
    }

    /// Settles the answer for one lane. Answers what the next commit has no room for.
    pub(super) fn settle_lane(
        &mut self,
        env: &Env,
        now: Now,
        mut active: ActiveLane,
        mut answer: Prepared,
        started_at: Timestamp,
    ) -> Option<(ActiveLane, Prepared)> {
        self.settle_done(now, &mut active, &mut answer, started_at);
        if !answer.done.is_empty() {
            return Some((active, answer));
        }
        self.claim_settled(&active, &answer.when_durable);
        if answer.when_durable.is_wanted() {
            self.gathering.then(After::Tell(answer.when_durable));
        }
        self.settle_failed(env, now, active, answer.failure, started_at);
        None
    }

    /// What is done ends. An answer that changes the state belongs together and is small enough (`prepare`); of any other
    /// the events go one by one, as far as the next commit has room.
    fn settle_done(
        &mut self,
        now: Now,
        active: &mut ActiveLane,
        answer: &mut Prepared,
        started_at: Timestamp,
    ) {
        let whole = !matches!(answer.state, StateChange::Keep);
        let lane = active.turn.key.clone();
        let mut done = std::mem::take(&mut answer.done).into_iter();
        let (mut settled, mut last) = (active.settled, None);
        for waiting in active.events().skip(settled) {
            if last.is_some() && !whole && self.gathering.is_enough() {
                break;
            }
            let Some(result) = done.next() else { break };
            self.pass(&lane, waiting);
            self.tally.ended(Terminal::Done);
            self.tally.aged(waiting.event.time, now.calendar);
            // What it emitted before a reset has been emitted.
            if waiting.event.id > self.note.quiet_to {
                self.gathering.emit(result.emits);
            }
            let attempts = active.attempts_at(settled);
            if attempts == 1 {
                self.tally.waited(waiting.event.time, started_at);
            }
            let end = End { attempts, started_at: Some(started_at), ..End::new(Terminal::Done, "") };
            self.end_job(waiting.event.id, waiting.event.job, &end, result.result);
            settled += 1;
            last = Some(waiting);
        }
        if let Some(last) = last {
            let state = std::mem::replace(&mut answer.state, StateChange::Keep);
            self.write_state(&lane, &last.event, state);
        }
        active.settled = settled;
        answer.done = done.collect();
    }

    /// What comes of the event after those that are done.
    fn settle_failed(
        &mut self,
        env: &Env,
        now: Now,
        active: ActiveLane,
        failure: Option<Failure>,
        started_at: Timestamp,
    ) {
        let (lane, done) = (active.turn.key.clone(), active.settled);
        let attempts = active.attempts_at(done);
        let Some(failing) = active.events().nth(done).map(Arc::clone) else {
            return self.finish_lane(active.turn);
        };
        let silent = || Failure {
            error: "the handler answered neither done nor failed".to_owned(),
            retry: Retry::ByPolicy,
        };
        if matches!(active.stop, None | Some(Stop::Beside))
            && let Some(winner) = self.newer_than(&lane, failing.event.id)
        {
            // It counts as pending again, and of what is pending only the newest runs (contract 1.14).
            let end = End { attempts, started_at: Some(started_at), ..End::superseded(winner) };
            self.end(&lane, &failing, end);
            return self.finish_lane(active.turn);
        }
        let failure = match (active.stop, failure) {
            // It was stopped for the sake of one that runs with it: no attempt of its own.
            (Some(Stop::Cancel(id)), _) if id != failing.event.id => {
                return self.cancel_behind(active.turn, id, done > 0, started_at, now);
            }
            (Some(Stop::Beside | Stop::GiveBack), _) if done == 0 => {
                return self.give_back(&active.turn, now);
            }
            (Some(Stop::Beside | Stop::GiveBack), _) => return self.finish_lane(active.turn),
            (Some(stop), _) => {
                let end = match stop {
                    Stop::Supersede(winner) => End::superseded(winner),
                    Stop::Cancel(_) | Stop::Beside | Stop::GiveBack => {
                        End::new(Terminal::Cancelled, "cancelled while running")
                    }
                };
                self.end(&lane, &failing, End { attempts, started_at: Some(started_at), ..end });
                return self.finish_lane(active.turn);
            }
            // It said nothing about the rest: those events wait on.
            (None, None) if done > 0 => return self.finish_lane(active.turn),
            (None, Some(Failure { retry: Retry::NotRun, .. })) if done == 0 => {
                return self.give_back(&active.turn, now);
            }
            (None, failure) => failure.unwrap_or_else(silent),
        };
        let failed = Failed { failing, attempts, failure, started_at };
        self.fail(env, now, active.turn, failed);
    }

    /// One of a batch was cancelled: it ends before the others run again.
    fn cancel_behind(
        &mut self,
        turn: LaneTurn,
        id: EventId,
        some_done: bool,
        started_at: Timestamp,
        now: Now,
    ) {
        let lane = turn.key.clone();
        if let Some(waiting) = self.book.remove(&lane, id).filter(|waiting| !waiting.has_ended()) {
            let end = End::new(Terminal::Cancelled, "cancelled while running");
            self.end(&lane, &waiting, End { attempts: 1, started_at: Some(started_at), ..end });
        }
        if some_done {
            return self.finish_lane(turn);
        }
        self.end_alone(&lane);
        self.book.give_back(&turn, now);
        self.gathering.then(After::Moved { lane });
    }

    /// The run did not take place: its event is the head again.
    fn give_back(&mut self, turn: &LaneTurn, now: Now) {
        self.end_alone(&turn.key);
        self.book.give_back(turn, now);
        self.requests.moved(&turn.key);
    }

    pub(super) fn fail(&mut self, env: &Env, now: Now, turn: LaneTurn, failed: Failed) {
        let lane = turn.key.clone();
        let Failed { failing, attempts, mut failure, started_at } = failed;
        shorten(&mut failure.error);
        if attempts == 1 {
            self.tally.waited(failing.event.time, started_at);
        }
        let cause = Bytes::from(failure.error.clone());
        let record =
            LaneRecord { attempts, started: false, ..self.record_with_head(&lane, failing.event.id) };
        let end = End {
            attempts,
            started_at: Some(started_at),
            ..End::new(Terminal::Failed, failure.error.clone())
        };
        let policy = self.settings.policy.for_event(&failing.event.headers);
        let decision = policy.decide(attempts, &failure, env.chance());
        match decision {
            Decision::RetryAfter(wait) => {
                self.tally.retried += 1;
                let due = Due::Steady(now.steady.after(wait));
                self.block(turn, Block::Retry { due, cause }, record);
            }
            Decision::GiveUp(OnFailure::Park) => {
                self.tell_parked(&lane, failing.event.id, &failure.error, attempts);
                self.block(turn, Block::Parked { cause, at: now.calendar }, record);
            }
            Decision::GiveUp(OnFailure::Halt) => {
                self.change_status(SeatStatus::Halted, None);
                self.tell_parked(&lane, failing.event.id, &failure.error, attempts);
                self.block(turn, Block::Parked { cause, at: now.calendar }, record);
            }
            Decision::GiveUp(OnFailure::Drop) => {
                let dropped = End::new(Terminal::Failed, format!("dropped: {}", end.reason));
                let end = End { reason: dropped.reason, ..end };
                self.end(&lane, &failing, end);
                self.finish_lane(turn);
            }
            Decision::GiveUp(OnFailure::DeadLetter) => {
                self.bury(&lane, &failing, end);
                self.finish_lane(turn);
            }
            Decision::GiveUp(OnFailure::DeadLetterLane) => {
                let since = failing.event.id;
                self.bury(&lane, &failing, end);
                let behind = self.book.behind(&lane, usize::MAX);
                for (_, waiting) in behind.iter().filter(|(_, waiting)| !waiting.has_ended()) {
                    if self.gathering.is_enough() {
                        // The rest joins its siding and follows from there.
                        self.book.memo_mut(&lane).more = true;
                        break;
                    }
                    self.bury(&lane, waiting, diverted(since));
                }
                let record = LaneRecord { head: None, attempts: 0, ..record };
                self.block(turn, Block::Diverting { since }, record);
            }
        }
    }

    /// The lane's run is over and its events ended: it may go on once that is durable.
    pub(super) fn finish_lane(&mut self, turn: LaneTurn) {
        self.tidy_record(&turn.key);
        if self.may_run_ahead(&turn.key) {
            self.book.run_ahead(&turn);
            self.gathering.then(After::CaughtUp { lane: turn.key });
        } else {
            self.gathering.then(After::Finish { turn });
        }
    }

    /// Whether a lane may go on before its last end is durable (contract 1.15).
    fn may_run_ahead(&self, lane: &LaneName) -> bool {
        let memo = self.book.memo(lane);
        let plain = memo.is_none_or(|memo| memo.record.is_none() && memo.sided == 0 && !memo.more);
        plain && memo.map_or(0, |memo| memo.ahead) < self.settings.run_ahead
    }

    /// A lane without anything in its siding, and whose head begins anew, is plain again.
    fn tidy_record(&mut self, lane: &LaneName) {
        let Some(memo) = self.book.memo(lane) else { return };
        let Some(record) = memo.record.clone() else { return };
        let siding_is_empty = memo.sided == 0 && !memo.more;
        // A pause outlasts what waits.
        let stays = matches!(record.block, Some(Block::Paused { .. } | Block::Diverting { .. }));
        let next = LaneRecord { head: None, attempts: 0, crashes: 0, started: false, ..record };
        self.put_record(lane, (stays || !siding_is_empty).then_some(next));
    }

    /// Holds a lane up in the store: everything of it in memory joins its siding, and it leaves memory.
    pub(super) fn block(&mut self, turn: LaneTurn, block: Block, record: LaneRecord) {
        let lane = turn.key.clone();
        // A pause that came while it ran outlasts the run.
        let paused =
            self.book.memo(&lane).and_then(|memo| memo.record.as_ref()).and_then(|record| {
                record.block.clone().filter(|block| matches!(block, Block::Paused { .. }))
            });
        let block = paused.unwrap_or(block);
        if let Some(due) = block.due() {
            self.next_due = Some(self.next_due.map_or(due, |known| known.min(due)));
        }
        let record = LaneRecord { block: Some(block), ..record };
        let all = std::iter::once(Arc::clone(&turn.payload));
        let all = all.chain(self.book.behind(&lane, usize::MAX).into_iter().map(|(_, waiting)| waiting));
        for waiting in all.filter(|waiting| !waiting.has_ended()).collect::<Vec<_>>() {
            if waiting.side() {
                self.gathering.side(&lane, waiting.event.id);
            }
        }
        self.put_record(&lane, Some(record));
        self.gathering.then(After::Block { turn });
    }

    /// An event in memory ends.
    pub(super) fn end(&mut self, lane: &LaneName, waiting: &Arc<Waiting>, end: End) {
        let record = self.book.memo(lane).and_then(|memo| memo.record.as_ref());
        let end = end.after(record, waiting.event.id);
        self.pass(lane, waiting);
        self.tally.ended(end.terminal);
        if end.terminal == Terminal::Failed
            && let Some(job) = self.our_job(waiting.event.job)
        {
            self.tell(Report::JobFailed { event: &waiting.event, job: job.id, cause: &end.reason });
        }
        self.gathering.ending(end.of(waiting.event.id));
        self.end_job(waiting.event.id, waiting.event.job, &end, JobResult::None);
    }

    fn pass(&mut self, lane: &LaneName, waiting: &Arc<Waiting>) {
        waiting.end();
        if !waiting.is_sided() {
            self.gathering.pass(waiting.event.id);
            return;
        }
        self.gathering.unside(lane, waiting.event.id);
        let memo = self.book.memo_mut(lane);
        memo.sided = memo.sided.saturating_sub(1);
        let record = memo.record.clone();
        self.gather_record(lane, record);
    }

    /// A failed event is kept aside.
    fn bury(&mut self, lane: &LaneName, waiting: &Arc<Waiting>, end: End) {
        self.tally.dead += 1;
        self.gathering.dead(dead_letter(&waiting.event, &end));
        self.end(lane, waiting, end);
    }

    /// An event of a diverting lane that was not in memory goes to the dead letters.
    pub(super) fn divert(&mut self, event: &Event, since: EventId) {
        self.gathering.pass(event.id);
        self.divert_passed(event, since);
    }

    /// The same for one that was in a siding.
    pub(super) fn divert_passed(&mut self, event: &Event, since: EventId) {
        let end = diverted(since);
        self.tally.dead += 1;
        self.gathering.dead(dead_letter(event, &end));
        self.end_passed(event.id, event.job, end);
    }

    pub(super) fn tell_parked(&mut self, lane: &LaneName, head: EventId, cause: &str, attempts: u32) {
        self.tally.parked += 1;
        let key = if let LaneName::Key(key) = lane { Some(key) } else { None };
        self.tell(Report::LaneParked { head, key, cause, attempts });
    }

    /// An emit that its stream will never take. A report of a report would be one too many.
    pub(super) fn tell_lost(&mut self, lost: &Lost) {
        tracing::error!(seat = %self.id, stream = %lost.stream, why = lost.why, "an emit was refused and is dropped");
        if self.names.reports_to != Some(lost.stream) {
            self.tell(Report::EmitRefused { lost });
        }
    }

    /// Reports on the system stream, in the commit in which it happens.
    fn tell(&mut self, what: Report<'_>) {
        let Some(stream) = self.names.reports_to else { return };
        let draft = report(what, &self.names.processor, &self.names.stream, self.id.shard);
        self.gathering.emit(vec![Emit { stream, draft }]);
    }

    fn our_job(&self, job: Option<JobMark>) -> Option<JobMark> {
        job.filter(|job| job.responder == self.id.processor)
    }

    pub(super) fn end_job(&mut self, id: EventId, job: Option<JobMark>, end: &End, result: JobResult) {
        let Some(mark) = self.our_job(job) else { return };
        self.tally.job_ended(end.terminal);
        self.gathering.job(JobEnd {
            id,
            end: end.terminal,
            error: Bytes::from(end.reason.clone()),
            attempts: end.attempts,
            started_at: end.started_at,
            finished_at: Timestamp(0),
            result,
            keep: mark.keep,
        });
    }

    /// The lane's state after its event was done.
    fn write_state(&mut self, lane: &LaneName, last: &Event, change: StateChange) {
        let LaneName::Key(key) = lane else { return };
        let stored = self.book.memo(lane).and_then(|memo| memo.state.clone());
        let version = stored.as_ref().map_or(0, |stored| stored.version) + 1;
        let bytes = match (self.mode, change) {
            (Mode::Queue, StateChange::Keep) => return,
            (Mode::Queue, StateChange::Set(bytes)) => Some(bytes),
            (Mode::Queue, StateChange::Remove) => None,
            (Mode::Latest, change) => {
                let before = stored.and_then(|stored| open_state(stored.bytes).1);
                let state = match change {
                    StateChange::Keep => before,
                    StateChange::Set(bytes) => Some(bytes),
                    StateChange::Remove => None,
                };
                let done = LastDone {
                    id: last.id,
                    incarnation: last.incarnation,
                    generation: last.generation.unwrap_or(0),
                    data: self.settings.keep_last.then(|| last.data.clone()),
                };
                Some(seal_state(&done, state.as_ref()))
            }
        };
        let state = bytes.clone().map(|bytes| Versioned { version, bytes });
        self.gathering.state(key, bytes);
        self.book.memo_mut(lane).state = state.clone();
        self.gathering.then(After::States(vec![(key.clone(), state)]));
    }
}

/// An event whose run failed.
pub(super) struct Failed {
    pub(super) failing: Arc<Waiting>,
    pub(super) attempts: u32,
    pub(super) failure: Failure,
    pub(super) started_at: Timestamp,
}

fn diverted(since: EventId) -> End {
    End::new(Terminal::Failed, format!("its lane diverts since event {since}"))
}

fn dead_letter(event: &Event, end: &End) -> DeadLetter {
    let cause = Bytes::from(end.reason.clone());
    DeadLetter { event: event.clone(), cause, attempts: end.attempts, at: Timestamp(0) }
}
