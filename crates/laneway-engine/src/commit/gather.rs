//! The next commit of a seat, as far as it is known.
//!
//! One commit is in flight per seat; everything that happens meanwhile is gathered here and goes with the next one. With
//! each piece comes what the engine does once it is durable.
//!
//! Invariant: what is gathered never goes beyond what the store takes in one commit, or the seat would be lost by it, and
//! by the same commit again after that. So bytes are counted as stores count them, every piece is small (`prepare`), and
//! whoever gathers many pieces stops when it is enough.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use laneway_core::limits::{COMMIT_BYTES_MAX, EMITS_PER_COMMIT_MAX};
use laneway_core::store::{
    Answered, Commit, DeadLetter, Emit, Ending, JobEnd, JobResult, LaneChange, Reset, SeatStatus, StateWrite,
};
use laneway_core::{CommitId, EventId, Fence, Key, LaneName, LaneRecord, Passed, Seat};

use crate::lane::name_of;

/// Bytes after which nothing more is gathered. The rest of what a commit may carry is for what cannot be put off any more:
/// the piece that went beyond, and a page that was being read.
const BYTES_ENOUGH: usize = COMMIT_BYTES_MAX / 3;
/// Events after which nothing more is gathered, so that one commit does not keep the store for long.
const EVENTS_ENOUGH: usize = 4_096;
/// Lanes after which nothing more is gathered: a lane that is only marked as running ends no event.
const LANES_ENOUGH: usize = 1_024;
/// Answers to requests after which nothing more is gathered.
const ANSWERS_ENOUGH: usize = 4_096;
/// Emits after which nothing more is gathered. One event may emit half of what a commit takes, and reports come on top.
const EMITS_ENOUGH: usize = EMITS_PER_COMMIT_MAX * 3 / 10;

/// What goes into the next commit. `A` is what to do afterwards.
#[derive(Debug)]
pub(crate) struct Gathering<A> {
    passed: Passed,
    endings: Vec<Ending>,
    lanes: BTreeMap<LaneName, LaneChange>,
    states: BTreeMap<Key, Option<Bytes>>,
    dead: Vec<DeadLetter>,
    revived: Vec<EventId>,
    /// Lanes whose dead letters change.
    reviving: BTreeSet<LaneName>,
    emits: Vec<Emit>,
    forwarded: Option<u64>,
    requests_applied: Option<u64>,
    answers: Vec<Answered>,
    jobs: Vec<JobEnd>,
    status: Option<SeatStatus>,
    note: Option<Bytes>,
    clean: bool,
    reset: Option<Reset>,
    after: Vec<A>,
    events: usize,
    bytes: usize,
}

impl<A> Default for Gathering<A> {
    fn default() -> Self {
        Self {
            passed: Passed::default(),
            endings: Vec::new(),
            lanes: BTreeMap::new(),
            states: BTreeMap::new(),
            dead: Vec::new(),
            revived: Vec::new(),
            reviving: BTreeSet::new(),
            emits: Vec::new(),
            forwarded: None,
            requests_applied: None,
            answers: Vec::new(),
            jobs: Vec::new(),
            status: None,
            note: None,
            clean: false,
            reset: None,
            after: Vec::new(),
            events: 0,
            bytes: 0,
        }
    }
}

impl<A> Gathering<A> {
    pub(crate) fn is_empty(&self) -> bool {
        self.events == 0
            && self.lanes.is_empty()
            && self.after.is_empty()
            && self.forwarded.is_none()
            && self.requests_applied.is_none()
            && self.answers.is_empty()
            && self.status.is_none()
            && self.note.is_none()
            && !self.clean
            && self.reset.is_none()
    }

    /// Whether all it holds is events of plain lanes that are done: no end, row or answer that somebody may wait for.
    pub(crate) fn only_passes(&self) -> bool {
        self.lanes.is_empty()
            && self.endings.is_empty()
            && self.states.is_empty()
            && self.dead.is_empty()
            && self.revived.is_empty()
            && self.emits.is_empty()
            && self.jobs.is_empty()
            && self.forwarded.is_none()
            && self.requests_applied.is_none()
            && self.answers.is_empty()
            && self.status.is_none()
            && self.note.is_none()
            && !self.clean
            && self.reset.is_none()
    }

    /// Whether the rest should wait for the commit after.
    pub(crate) fn is_enough(&self) -> bool {
        self.bytes >= BYTES_ENOUGH
            || self.events >= EVENTS_ENOUGH
            || self.lanes.len() >= LANES_ENOUGH
            || self.emits.len() >= EMITS_ENOUGH
            || self.answers.len() >= ANSWERS_ENOUGH
    }

    pub(crate) fn touches(&self, lane: &LaneName) -> bool {
        self.lanes.contains_key(lane) || self.reviving.contains(lane)
    }

    /// Whether the lane keeps a record with this commit.
    pub(crate) fn has_record(&self, lane: &LaneName) -> bool {
        self.lanes.get(lane).is_some_and(|change| change.record.is_some())
    }

    /// The event no longer holds the floor back, because it has ended.
    pub(crate) fn pass(&mut self, id: EventId) {
        self.passed.insert(id);
        self.events += 1;
    }

    /// An event in the siding of a lane has ended.
    pub(crate) fn unside(&mut self, lane: &LaneName, id: EventId) {
        self.events += 1;
        let change = self.lane(lane);
        // It joined the siding in this very commit: then it never does.
        if let Some(at) = change.side.iter().position(|sided| *sided == id) {
            change.side.remove(at);
        } else {
            change.unside.push(id);
        }
    }

    /// An event no longer holds the floor back, because it waits in the siding of its lane.
    pub(crate) fn side(&mut self, lane: &LaneName, id: EventId) {
        self.passed.insert(id);
        self.events += 1;
        self.lane(lane).side.push(id);
    }

    /// The same for one that is not passed yet, because its lane is run ahead of the window.
    pub(crate) fn side_ahead(&mut self, lane: &LaneName, id: EventId) {
        self.events += 1;
        self.lane(lane).side.push(id);
    }

    /// An event that was moved out of a siding for good goes back into it.
    pub(crate) fn record(&mut self, lane: &LaneName, record: Option<LaneRecord>) {
        self.lane(lane).record = record;
    }

    /// The change of a lane; a lane that is not mentioned with [`record`](Self::record) becomes plain.
    fn lane(&mut self, lane: &LaneName) -> &mut LaneChange {
        if !self.lanes.contains_key(lane) {
            let change =
                LaneChange { lane: lane.clone(), record: None, side: Vec::new(), unside: Vec::new() };
            self.lanes.insert(lane.clone(), change);
        }
        self.lanes.get_mut(lane).expect("it was just put there")
    }

    pub(crate) fn ending(&mut self, ending: Ending) {
        self.bytes += ending.reason.len();
        self.endings.push(ending);
    }

    pub(crate) fn state(&mut self, key: &Key, value: Option<Bytes>) {
        self.bytes += value.as_ref().map_or(0, Bytes::len);
        self.states.insert(key.clone(), value);
    }

    pub(crate) fn dead(&mut self, dead: DeadLetter) {
        let event = &dead.event;
        self.reviving.insert(name_of(event));
        let key = event.key.as_ref().map_or(0, |key| key.bytes().len());
        let kept = key + event.kind.bytes().len() + event.headers.bytes().len() + event.data.len();
        self.bytes += kept + dead.cause.len();
        self.dead.push(dead);
    }

    /// A dead letter of this lane is one no longer.
    pub(crate) fn revive(&mut self, lane: &LaneName, id: EventId) {
        self.events += 1;
        self.reviving.insert(lane.clone());
        self.revived.push(id);
    }

    pub(crate) fn emit(&mut self, emits: Vec<Emit>) {
        self.bytes += emits.iter().map(emit_bytes).sum::<usize>();
        self.emits.extend(emits);
    }

    pub(crate) fn job(&mut self, end: JobEnd) {
        self.bytes +=
            end.error.len() + if let JobResult::Inline(bytes) = &end.result { bytes.len() } else { 0 };
        self.jobs.push(end);
    }

    pub(crate) fn forwarded(&mut self, number: u64) {
        self.forwarded = Some(number);
    }

    pub(crate) fn requests_applied(&mut self, number: u64) {
        self.requests_applied = Some(number);
    }

    /// A request has its effect in this commit.
    pub(crate) fn answer(&mut self, number: u64, answer: Bytes) {
        self.bytes += answer.len();
        self.answers.push(Answered { number, answer });
    }

    pub(crate) fn status(&mut self, status: SeatStatus) {
        self.status = Some(status);
    }

    pub(crate) fn note(&mut self, note: Bytes) {
        self.bytes += note.len();
        self.note = Some(note);
    }

    pub(crate) fn clean(&mut self) {
        self.clean = true;
    }

    pub(crate) fn reset(&mut self, reset: Reset) {
        self.reset = Some(reset);
    }

    /// What is to be done once it is durable.
    pub(crate) fn afterwards(&self) -> &[A] {
        &self.after
    }

    pub(crate) fn then(&mut self, after: A) {
        self.after.push(after);
    }

    /// Takes what was gathered: the commit, the lanes it changes, and what follows when it is durable.
    pub(crate) fn take(&mut self, seat: Seat, fence: Fence, id: CommitId) -> Taken<A> {
        let gathered = std::mem::take(self);
        debug_assert!(
            gathered.bytes <= COMMIT_BYTES_MAX && gathered.emits.len() <= EMITS_PER_COMMIT_MAX,
            "a commit of {} bytes and {} emits: a store takes {COMMIT_BYTES_MAX} and {EMITS_PER_COMMIT_MAX}",
            gathered.bytes,
            gathered.emits.len(),
        );
        let mut changed = gathered.reviving;
        changed.extend(gathered.lanes.keys().cloned());
        let commit = Commit {
            passed: gathered.passed,
            endings: gathered.endings,
            lanes: gathered.lanes.into_values().collect(),
            states: gathered.states.into_iter().map(|(key, value)| StateWrite { key, value }).collect(),
            dead: gathered.dead,
            revived: gathered.revived,
            emits: gathered.emits,
            forwarded: gathered.forwarded,
            requests_applied: gathered.requests_applied,
            answers: gathered.answers,
            jobs: gathered.jobs,
            status: gathered.status,
            note: gathered.note,
            clean: gathered.clean,
            reset: gathered.reset,
            ..Commit::new(seat, fence, id)
        };
        Taken { commit, changed, after: gathered.after }
    }
}

/// What was gathered, on its way.
#[derive(Debug)]
pub(crate) struct Taken<A> {
    pub(crate) commit: Commit,
    pub(crate) changed: BTreeSet<LaneName>,
    pub(crate) after: Vec<A>,
}

/// What an emit counts for in a commit.
pub(crate) fn emit_bytes(emit: &Emit) -> usize {
    emit.draft.data.len() + emit.draft.headers.bytes().len()
}
