//! Turns: which heads start now, and what must be durable before they may.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::store::SeatStatus;
use laneway_core::{Block, Due, Event, LaneName, LaneRecord, Mode, RunFence, Steady, Terminal};
use laneway_lanes::table::ItemId;

use super::seat::{Active, ActiveLane, After, RunNo, Seat, Stop};
use super::settings::Batch;
use super::settle::End;
use crate::handler::{CancelToken, Canceller, LaneRun, Progress};
use crate::lane::{LaneTurn, Waiting, open_state};
use crate::service::Now;

/// From when on a run shows in the store.
const LONG_RUN: Duration = Duration::from_secs(1);

/// A run to be started.
#[derive(Debug)]
pub(crate) struct NewRun {
    pub(crate) number: RunNo,
    pub(crate) lanes: Vec<LaneRun>,
    /// The events of each lane, for when the answer comes.
    pub(crate) events: Vec<Vec<Arc<Waiting>>>,
    pub(crate) cancel: CancelToken,
}

impl Seat {
    /// Whether a free place would be used.
    pub(crate) fn can_start(&self, now: Now) -> bool {
        let waits = self.rate_waits.is_some_and(|until| until > now.steady);
        self.may_start() && (!self.granted.is_empty() || self.book.can_start()) && !waits
    }

    /// How many heads may start, as far as nothing else holds them back.
    pub(crate) fn ready(&self) -> usize {
        self.granted.len() + self.book.ready()
    }

    fn may_start(&self) -> bool {
        self.status == SeatStatus::Run && !self.is_draining() && !self.gathering.is_enough()
    }

    /// Starts one run, if any may start.
    pub(crate) fn start_run(&mut self, now: Now) -> Option<NewRun> {
        if !self.may_start() {
            return None;
        }
        self.rate_waits = self.rates.wait_until(now.steady);
        if self.rate_waits.is_some() {
            return None;
        }
        let mut lanes = Vec::new();
        let lanes_max = match self.settings.batch {
            Batch::Lanes { max, .. } if !self.remote => max,
            _ => 1,
        };
        if self.waits_for_lanes(now) {
            return None;
        }
        while lanes.len() < lanes_max
            && let Some(turn) = self.next_turn(now)
        {
            // One that failed before runs alone, so that it is known whether it is the one that fails.
            let alone = self.is_alone(&turn.key) || self.attempt_at(&turn) > 1;
            if alone && !lanes.is_empty() {
                self.granted.push_front(turn);
                break;
            }
            self.rates.started(&turn.key, now.steady);
            lanes.push(self.activate(turn));
            if alone {
                break;
            }
        }
        if lanes.is_empty() {
            return None;
        }
        let number = RunNo(self.next_run);
        self.next_run += 1;
        let canceller = Canceller::new();
        let cancel = canceller.token();
        let runs = lanes.iter().map(|lane| self.lane_run(lane)).collect();
        let events = lanes.iter().map(|lane| lane.events().map(Arc::clone).collect()).collect();
        self.runs.insert(number, Active { lanes, canceller, since: now, shown: false });
        Some(NewRun { number, lanes: runs, events, cancel })
    }

    fn next_turn(&mut self, now: Now) -> Option<LaneTurn> {
        // Heads that may not run yet are gathered too.
        while !self.gathering.is_enough() {
            if let Some(turn) = self.granted.pop_front() {
                return Some(turn);
            }
            let turn = self.book.start(now)?;
            if let Some(turn) = self.admit(turn, now) {
                return Some(turn);
            }
        }
        None
    }

    /// Checks a head before it runs: it may have to wait for its time, for a durable start, or not run at all.
    fn admit(&mut self, turn: LaneTurn, now: Now) -> Option<LaneTurn> {
        let (lane, event) = (turn.key.clone(), &turn.payload.event);
        if let Some(until) = self.rates.key_waits_until(&lane, now.steady) {
            self.book.put_off(&turn, until);
            return None;
        }
        // A turn that was put off does not expire in its lane.
        if event.expires_at.is_some_and(|at| at <= now.calendar) {
            let waiting = Arc::clone(&turn.payload);
            self.end(&lane, &waiting, End::new(Terminal::Expired, "not started within its ttl"));
            self.finish_lane(turn);
            return None;
        }
        if let Some(due) = event.hold_until
            && !is_due(due, now)
        {
            let record = self.record_of(&lane);
            self.block(turn, Block::Hold { due }, record);
            return None;
        }
        if self.mode == Mode::Latest
            && let Some(last) = self.last_done(&lane)
            && (last.incarnation, Some(last.generation)) == (event.incarnation, event.generation)
        {
            let waiting = Arc::clone(&turn.payload);
            self.end(&lane, &waiting, End::superseded(last.id));
            self.finish_lane(turn);
            return None;
        }
        if self.is_accused(&lane, event.id) {
            self.accuse(turn);
            return None;
        }
        if self.is_suspect(&lane, event.id) {
            self.commit_start(turn, now);
            return None;
        }
        if let Some(until) = self.batch_waits_until(&turn, now) {
            self.book.memo_mut(&lane).batch_waits = true;
            self.book.put_off(&turn, until);
            return None;
        }
        Some(turn)
    }

    /// Makes a start durable before the run, so that a crash knows whom to suspect.
    pub(super) fn commit_start(&mut self, turn: LaneTurn, now: Now) {
        let (lane, head) = (turn.key.clone(), turn.payload.event.id);
        let block = Some(Block::Running { since: now.calendar, progress: bytes::Bytes::new() });
        let record = LaneRecord { block, started: true, ..self.record_with_head(&lane, head) };
        self.put_record(&lane, Some(record));
        self.gathering.then(After::Grant { turn });
    }

    fn activate(&mut self, turn: LaneTurn) -> ActiveLane {
        if self.settings.batch != Batch::One && self.book.memo(&turn.key).is_some_and(|memo| memo.batch_waits)
        {
            self.book.memo_mut(&turn.key).batch_waits = false;
        }
        let attempt = self.attempt_at(&turn);
        let also = match self.settings.batch {
            _ if attempt > 1 => Vec::new(),
            _ if self.remote => self.batch_behind(&turn, self.offered_max - 1),
            Batch::Lane { max, .. } => self.batch_behind(&turn, max - 1),
            Batch::One | Batch::Lanes { .. } => Vec::new(),
        };
        ActiveLane { turn, also, attempt, settled: 0, progress: Progress::default(), stop: None }
    }

    /// Which attempt at its event a turn is, from 1.
    fn attempt_at(&self, turn: &LaneTurn) -> u32 {
        let record = self.book.memo(&turn.key).and_then(|memo| memo.record.as_ref());
        let own = record.filter(|record| record.head == Some(turn.payload.event.id));
        1 + own.map_or(0, |record| record.attempts)
    }

    /// Events that run with the head. One that must not start yet ends the batch before it, and so does one with a ttl:
    /// only as a head does it stop counting once it has started.
    pub(super) fn batch_behind(&self, turn: &LaneTurn, max: usize) -> Vec<(ItemId, Arc<Waiting>)> {
        let mut behind = self.book.behind(&turn.key, max);
        let whole = behind.iter().position(|(_, waiting)| {
            let event = &waiting.event;
            event.hold_until.is_some() || event.expires_at.is_some() || self.is_suspect(&turn.key, event.id)
        });
        behind.truncate(whole.unwrap_or(behind.len()));
        behind
    }

    fn lane_run(&self, lane: &ActiveLane) -> LaneRun {
        let events: Vec<Event> = lane.events().map(|waiting| waiting.event.clone()).collect();
        let fence = RunFence { term: self.fence.term, id: events[0].id, attempt: lane.attempt };
        let stored = self.book.memo(&lane.turn.key).and_then(|memo| memo.state.clone());
        let (mut state, mut last_done) = (stored.clone(), None);
        if self.mode == Mode::Latest
            && let Some(stored) = stored
        {
            let (last, bytes) = open_state(stored.bytes);
            last_done = last;
            state = bytes.map(|bytes| laneway_core::store::Versioned { version: stored.version, bytes });
        }
        LaneRun { events, attempt: lane.attempt, fence, state, last_done, progress: lane.progress.clone() }
    }

    pub(super) fn last_done(&self, lane: &LaneName) -> Option<crate::handler::LastDone> {
        let state = self.book.memo(lane)?.state.as_ref()?;
        open_state(state.bytes.clone()).0
    }

    /// Asks the run of a lane to stop. Answers whether one runs.
    pub(super) fn stop_running(&mut self, lane: &LaneName, why: Stop) -> bool {
        for active in self.runs.values_mut() {
            let Some(running) = active.lanes.iter_mut().find(|running| running.turn.key == *lane) else {
                continue;
            };
            // A cancel is not taken back by a newer event.
            if !matches!(running.stop, Some(Stop::Cancel(_))) {
                running.stop = Some(why);
            }
            active.canceller.cancel();
            return true;
        }
        false
    }

    /// Runs that have taken long are told to the store, with their progress (contract 3.21). Those told before are told
    /// again only when a commit is made anyway.
    pub(super) fn show_long_runs(&mut self, now: Now) {
        if self.remote {
            return self.write_claims(now);
        }
        let anyway = !self.gathering.is_empty();
        let mut records = Vec::new();
        for active in self.runs.values_mut() {
            if now.steady < active.since.steady.after(LONG_RUN) || (active.shown && !anyway) {
                continue;
            }
            active.shown = true;
            let since = active.since.calendar;
            records.extend(active.lanes.iter().map(|lane| {
                let block = Block::Running { since, progress: lane.progress.last() };
                (lane.turn.key.clone(), lane.turn.payload.event.id, block)
            }));
        }
        for (lane, head, block) in records {
            let record = self.record_with_head(&lane, head);
            let stays = matches!(record.block, Some(Block::Paused { .. } | Block::Diverting { .. }));
            if !stays && record.block.as_ref() != Some(&block) {
                self.put_record(&lane, Some(LaneRecord { block: Some(block), ..record }));
            }
        }
    }

    /// When the processor's rate lets the next run start.
    pub(crate) fn next_by_rate(&mut self, now: Now) -> Option<Steady> {
        self.rate_waits = self.rate_waits.filter(|at| *at > now.steady);
        self.rate_waits
    }

    /// When the next run will have taken long.
    pub(crate) fn next_long_run(&self) -> Option<Steady> {
        if self.remote {
            return self.next_claim_to_write();
        }
        // Runs are numbered as they start.
        let oldest = self.runs.values().find(|active| !active.shown);
        oldest.map(|active| active.since.steady.after(LONG_RUN))
    }

    /// Asks every run to stop and gives its events back: they had no attempt.
    pub(super) fn take_back_runs(&mut self) {
        // Whoever was asked to stop for another reason ends by that one.
        for lane in self.runs.values_mut().flat_map(|active| &mut active.lanes) {
            lane.stop = lane.stop.or(Some(Stop::GiveBack));
        }
        self.stop_all();
    }

    /// Asks every run to stop: the seat is lost, or its drain has taken too long.
    pub(crate) fn stop_all(&self) {
        self.runs.values().for_each(|active| active.canceller.cancel());
    }
}

pub(super) fn is_due(due: Due, now: Now) -> bool {
    match due {
        Due::Steady(at) => at <= now.steady,
        Due::Calendar(at) => at <= now.calendar,
    }
}
