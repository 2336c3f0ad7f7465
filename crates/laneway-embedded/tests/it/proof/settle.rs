//! The commits of an actor: passes, ends, sidings, states, dead letters, emits, requests, resets.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{
    Commit, DeadLetter, Emit, Ending, Entry, JobEnd, JobResult, LaneChange, LaneSelect, LaneView, Lanes,
    Read, ReadFrom, Reset, SeatStatus, SeatView, StateWrite,
};
use laneway_core::{
    Block, CommitId, Due, Event, EventId, JobMark, LaneName, LaneRecord, Nonce, Passed, Result, Seat,
    StartAt, Steady, Terminal, Timestamp,
};

use super::actor::{Sort, Step, Turn, told};

/// The name under which a result of this event is stashed.
pub(super) fn stash_nonce(id: EventId) -> Nonce {
    Nonce(u128::from(id.0) << 8 | 1)
}

/// Commits something, after taking the seat if nobody has it.
pub(super) async fn commit(turn: &mut Turn<'_>, unusual: bool) -> Result<Step> {
    let (seat, info, view) = turn.seat().await?;
    if view.progress.fence.term.0 == 0 {
        return Ok(turn.take(seat, &view).await);
    }
    let floor = view.progress.window.floor();
    let from = ReadFrom::After(floor.max(info.trimmed));
    let read = Read {
        shard: seat.shard,
        from,
        limit: 24,
        bytes: 1 << 20,
        processor: Some(seat.processor),
        states: true,
    };
    let page = turn.store.read(read).await?;
    let select = LaneSelect::Blocked { kind: None, after: None, limit: 8 };
    let lanes = turn.store.lanes(Lanes { seat, select, siding: 50, states: true }).await?;
    let id = CommitId(u128::from(turn.number));
    let mut draft =
        Settling { turn, seat, commit: Commit::new(seat, view.progress.fence, id), lanes: BTreeMap::new() };
    let open = page.entries.into_iter().filter(|entry| !view.progress.window.contains(entry.id()));
    let open: Vec<Entry> = open.collect();
    draft.free(&lanes);
    open.into_iter().for_each(|entry| draft.settle(entry));
    draft.extras(&view, unusual);
    let commit = draft.done();
    Ok(told(Sort::Commit, turn.store.commit(commit).await))
}

struct Settling<'a, 'b> {
    turn: &'a mut Turn<'b>,
    seat: Seat,
    commit: Commit,
    lanes: BTreeMap<LaneName, LaneChange>,
}

impl Settling<'_, '_> {
    /// Empties some sidings.
    fn free(&mut self, lanes: &[LaneView]) {
        for view in lanes {
            let lane = view.record.lane.clone();
            let mut change = LaneChange {
                lane: lane.clone(),
                record: None,
                side: Vec::new(),
                unside: view.siding.clone(),
            };
            if self.turn.rng.bool() {
                change.unside.truncate(1);
                change.record =
                    Some(LaneRecord { attempts: view.record.attempts + 1, ..view.record.clone() });
            }
            self.lanes.insert(lane, change);
        }
    }

    fn settle(&mut self, entry: Entry) {
        match entry {
            Entry::Superseded { id, winner, job, .. } => {
                self.end(id, job, Terminal::Superseded, Some(winner));
                self.commit.passed.insert(id);
            }
            Entry::Event(event) => match self.turn.rng.u8(0..8) {
                0 | 1 => {}
                2 => self.fail(event),
                3 => self.side(&event),
                _ => {
                    self.commit.passed.insert(event.id);
                    self.finish(event.id, event.job, Terminal::Done);
                }
            },
        }
    }

    fn end(&mut self, id: EventId, job: Option<JobMark>, end: Terminal, winner: Option<EventId>) {
        let reason = Bytes::from_static(b"because");
        self.commit.endings.push(Ending { id, end, reason, winner });
        self.finish(id, job, end);
    }

    fn finish(&mut self, id: EventId, job: Option<JobMark>, end: Terminal) {
        let Some(job) = job.filter(|job| job.responder == self.seat.processor) else { return };
        let result = match self.turn.rng.u8(0..10) {
            0 => JobResult::None,
            1 => JobResult::Stashed { nonce: stash_nonce(id), chunks: 1 },
            _ => JobResult::Inline(self.turn.bytes()),
        };
        let error = Bytes::from_static(b"");
        let finished_at = Timestamp(0);
        self.commit.jobs.push(JobEnd {
            id,
            end,
            error,
            attempts: 1,
            started_at: None,
            finished_at,
            result,
            keep: job.keep,
        });
    }

    fn fail(&mut self, event: Event) {
        self.commit.passed.insert(event.id);
        self.end(event.id, event.job, Terminal::Failed, None);
        let cause = Bytes::from_static(b"it failed");
        self.commit.dead.push(DeadLetter { event, cause, attempts: 3, at: Timestamp(0) });
    }

    /// Moves an event to the siding of its lane.
    fn side(&mut self, event: &Event) {
        let lane = event.key.clone().map_or(LaneName::Event(event.id), LaneName::Key);
        if self.lanes.contains_key(&lane) {
            return;
        }
        self.commit.passed.insert(event.id);
        let block = match self.turn.rng.u8(0..3) {
            0 => Block::Retry {
                due: Due::Steady(Steady(self.turn.number * 1_000)),
                cause: Bytes::from_static(b"again"),
            },
            1 => Block::Paused { by: Bytes::from_static(b"me"), at: Timestamp(1) },
            _ => Block::Parked { cause: Bytes::from_static(b"gave up"), at: Timestamp(2) },
        };
        let record = LaneRecord {
            block: Some(block),
            head: Some(event.id),
            attempts: 2,
            ..LaneRecord::new(lane.clone())
        };
        let change =
            LaneChange { lane: lane.clone(), record: Some(record), side: vec![event.id], unside: Vec::new() };
        self.lanes.insert(lane, change);
    }

    fn extras(&mut self, view: &SeatView, unusual: bool) {
        for _ in 0..self.turn.rng.usize(0..4) {
            let value = (self.turn.rng.u8(0..5) > 0).then(|| self.turn.bytes());
            let key = self.turn.key();
            self.commit.states.push(StateWrite { key, value });
        }
        for index in 0..self.turn.rng.usize(0..3) {
            let stream = self.turn.territory.latest.shard.stream;
            self.commit.emits.push(Emit { stream, draft: self.turn.draft(100 + index) });
        }
        let progress = &view.progress;
        let between = |rng: &mut fastrand::Rng, from: u64, to: u64| rng.bool().then(|| rng.u64(from..=to));
        self.commit.forwarded = between(&mut self.turn.rng, progress.forwarded, progress.emitted);
        self.commit.requests_applied =
            between(&mut self.turn.rng, progress.requests_applied, view.request_no);
        self.commit.clean = self.turn.rng.u8(0..6) == 0;
        if unusual {
            self.commit.revived = self.commit.dead.iter().map(|dead| EventId(dead.event.id.0 - 1)).collect();
            self.commit.status =
                Some(if self.turn.rng.bool() { SeatStatus::Paused } else { SeatStatus::Run });
            let start = StartAt::Id(EventId(progress.window.floor().0.saturating_sub(20).max(1)));
            let reset = Reset { start, clear_states: self.turn.rng.bool(), quiet: false };
            // Not where jobs are answered: how long a forgotten end still counts is each store's own affair.
            let answers_jobs = self.seat.processor == self.turn.territory.work.processors[0];
            self.commit.reset = (self.turn.rng.bool() && !answers_jobs).then_some(reset);
        }
    }

    fn done(mut self) -> Commit {
        self.commit.lanes = std::mem::take(&mut self.lanes).into_values().collect();
        if self.commit.passed == Passed::default() && self.commit.states.is_empty() {
            let key = self.turn.key();
            let value = Some(Bytes::from(Duration::from_secs(self.turn.number).as_secs().to_string()));
            self.commit.states.push(StateWrite { key, value });
        }
        self.commit
    }
}
