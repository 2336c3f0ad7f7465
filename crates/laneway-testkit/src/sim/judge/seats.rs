//! Grants and commits. S2: a grant before anything under it. S3: a commit that is not the owner's next changes nothing.
//! S4: one place at a time. O1: lanes settle in order. O2, L1: terms grow, one nonce each. A1: all of a commit or
//! nothing. A3: one end per job.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use laneway_core::store::{
    Commit, Committed, JobEnd, JobResult, LaneChange, Owner, Request, RequestOp, SeatStatus, Seize,
};
use laneway_core::{
    Block, CommitId, EventId, Fence, JobNumber, Key, LaneName, LaneRecord, Nonce, Seat, Shard, Steady, Term,
    Terminal, Timestamp,
};

use super::Judge;
use crate::sim::handler::maker;
use crate::sim::life::TrueNow;
use crate::sim::plan::Plan;
use crate::sim::record::{By, Refused};

/// A seat as it must be.
#[derive(Clone, Debug, Default)]
pub(super) struct SeatModel {
    pub(super) fence: Option<Fence>,
    /// The life that was granted it last.
    pub(super) owner: u32,
    /// The node that it was granted to.
    pub(super) node: Bytes,
    pub(super) granted_at: Steady,
    /// Its owner has handed it over.
    pub(super) clean: bool,
    /// When it was last granted or handed over.
    pub(super) changed_at: Steady,
    pub(super) terms: BTreeMap<Term, Nonce>,
    last_commit: Option<CommitId>,
    /// Events up to this were passed over by a reset.
    pub(super) start: EventId,
    pub(super) settled: BTreeMap<EventId, Terminal>,
    pub(super) sided: BTreeMap<EventId, LaneName>,
    /// Those that joined a siding before the window came to them: when it does, that settles nothing.
    pub(super) ahead: BTreeSet<EventId>,
    pub(super) records: BTreeMap<LaneName, LaneRecord>,
    pub(super) states: BTreeMap<Key, (u64, Bytes)>,
    pub(super) endings: BTreeMap<EventId, Terminal>,
    pub(super) dead: BTreeSet<EventId>,
    pub(super) outbox: Vec<Bytes>,
    pub(super) emitted: u64,
    pub(super) forwarded: u64,
    pub(super) filed: u64,
    pub(super) applied: u64,
    /// Requests that had their effect, in whatever order.
    pub(super) answered: BTreeSet<u64>,
    pub(super) status: SeatStatus,
    /// Which life of the processor.
    pub(super) life: u32,
    /// Emits are unforwarded and their owner is dead.
    left_emits: bool,
    /// The store has lost its end since it was granted: whoever holds it may commit nothing any more.
    pub(super) outlived: bool,
}

impl Judge {
    pub(super) fn seize(&mut self, now: TrueNow, by: By, seize: &Seize, answer: &Result<Fence, Refused>) {
        let seat = seize.seat;
        let fence = match answer {
            Ok(fence) => *fence,
            Err(Refused::Fenced) => {
                let what = if by.late { "late seizure refused" } else { "seizure refused" };
                return self.hit(what);
            }
            Err(_) => return,
        };
        if by.late {
            self.disturb(now);
        }
        let model = self.seats.entry(seat).or_default().clone();
        self.check_taken(by, seize, &model);
        let model = self.seats.entry(seat).or_default();
        let before = model.fence;
        let owner = before.map(|fence| Owner { term: fence.term, nonce: fence.nonce });
        let mut faults = Vec::new();
        if owner != seize.expect {
            let expect = &seize.expect;
            faults.push((
                "S2",
                format!("seat {seat} was taken from {owner:?}, though {expect:?} was expected"),
            ));
        }
        if let Some((highest, _)) = model.terms.last_key_value()
            && fence.term <= *highest
        {
            faults.push(("L1", format!("seat {seat} was granted under term {} after {highest}", fence.term)));
        }
        if model.terms.values().any(|nonce| *nonce == fence.nonce) {
            faults.push((
                "O2",
                format!("seat {seat} was granted under a nonce of before: {:x}", fence.nonce.0),
            ));
        }
        if before.is_some_and(|before| before.version != fence.version) {
            faults.push((
                "S3",
                format!("seat {seat} was granted at version {}, not {before:?}", fence.version),
            ));
        }
        let from_dead = before.is_some() && self.lives.get(&model.owner).is_some_and(|lived| lived.dead);
        model.left_emits = from_dead && model.emitted > model.forwarded;
        model.terms.insert(fence.term, fence.nonce);
        model.fence = Some(fence);
        model.owner = by.life;
        model.node = seize.node.clone();
        (model.granted_at, model.changed_at, model.clean) = (now.steady, now.steady, false);
        model.last_commit = None;
        let outlived = std::mem::take(&mut model.outlived);
        faults.into_iter().for_each(|(invariant, detail)| self.report(invariant, detail));
        self.hit("grant");
        if outlived {
            self.hit("seat taken after a failover");
        }
        if from_dead {
            self.hit("seat taken from a dead owner");
        }
        if by.late {
            self.hit("late seizure granted");
        }
    }

    pub(super) fn commit(
        &mut self,
        now: TrueNow,
        by: By,
        commit: &Commit,
        answer: &Result<Committed, Refused>,
    ) {
        let seat = commit.seat;
        self.check_leased("commits", by.life, seat, by.sent_at);
        let model = self.seats.entry(seat).or_default();
        let stored = model.fence.unwrap_or_default();
        let repeats = model.last_commit == Some(commit.id)
            && stored == (Fence { version: commit.fence.version + 1, ..commit.fence });
        let outlived = model.outlived;
        let rightful = model.fence == Some(commit.fence) && !outlived;
        match answer {
            Ok(_) if repeats => self.hit("commit repeated"),
            Ok(committed) if rightful => {
                if self.seats[&seat].owner != by.life {
                    let detail =
                        format!("seat {seat} accepted a commit of life {}, which does not own it", by.life);
                    self.report("O3", detail);
                }
                if by.late && self.is_dead(by.life) {
                    self.hit("commit of a dead process arrived in time");
                }
                self.apply(now, seat, commit, committed);
            }
            Ok(_) => {
                let detail =
                    format!("seat {seat} accepted a commit under {:?}, stored was {stored:?}", commit.fence);
                self.report("S3", detail);
            }
            Err(Refused::Fenced) if outlived => self.hit("commit of before a failover refused"),
            Err(Refused::Fenced) if rightful || repeats => {
                self.report("S3", format!("seat {seat} refused its owner's commit under {:?}", commit.fence));
            }
            Err(Refused::Fenced) => {
                self.hit("commit fenced");
                if by.late && self.is_dead(by.life) {
                    self.hit("commit of a dead process refused");
                } else if by.late {
                    self.hit("late commit refused");
                }
            }
            Err(Refused::Input(refusal)) => {
                self.report("C1", format!("seat {seat}: the owner's commit was impossible: {refusal}"));
            }
            Err(Refused::Other(_)) => {}
        }
    }

    fn apply(&mut self, now: TrueNow, seat: Seat, commit: &Commit, committed: &Committed) {
        self.hit("commit");
        let mut model = self.seats.remove(&seat).unwrap_or_default();
        if committed.fence.version <= commit.fence.version {
            self.report(
                "S3",
                format!("seat {seat}: a commit did not raise version {}", commit.fence.version),
            );
        }
        model.fence = Some(committed.fence);
        model.clean = commit.clean;
        if commit.clean {
            model.changed_at = now.steady;
        }
        model.last_commit = Some(commit.id);
        let settled = self.apply_places(seat, &mut model, commit);
        self.check_order(seat, &model, &settled);
        self.check_emits(seat, commit, &settled);
        self.apply_records(seat, &mut model, commit);
        self.apply_rows(seat, &mut model, commit);
        self.apply_ends(seat, commit, &settled);
        if let Some(reset) = commit.reset {
            self.hit("reset");
            model.life += 1;
            model.start = committed.floor;
            model.settled.clear();
            model.sided.clear();
            model.ahead.clear();
            model.records.clear();
            model.endings.clear();
            if reset.clear_states {
                model.states.clear();
            }
        }
        self.seats.insert(seat, model);
    }

    /// Where events are after a commit; answers those that it settled.
    fn apply_places(
        &mut self,
        seat: Seat,
        model: &mut SeatModel,
        commit: &Commit,
    ) -> BTreeMap<EventId, Terminal> {
        let endings: BTreeMap<EventId, Terminal> =
            commit.endings.iter().map(|ending| (ending.id, ending.end)).collect();
        let end_of = |id: &EventId| endings.get(id).copied().unwrap_or(Terminal::Done);
        let mut settled = BTreeMap::new();
        let joins: BTreeSet<EventId> =
            commit.lanes.iter().flat_map(|change| change.side.iter().copied()).collect();
        for LaneChange { lane, side, unside, .. } in &commit.lanes {
            for id in unside {
                if model.sided.remove(id).as_ref() != Some(lane) {
                    self.report("S4", format!("seat {seat}: event {id} left a siding it was not in"));
                }
                if !joins.contains(id) {
                    settled.insert(*id, end_of(id));
                }
            }
            for id in side {
                if model.settled.remove(id).is_some() && !commit.revived.contains(id) {
                    self.report("S4", format!("seat {seat}: event {id} was settled and waits again"));
                }
                model.endings.remove(id);
                model.sided.insert(*id, lane.clone());
                model.ahead.insert(*id);
            }
        }
        for id in commit.passed.ids().filter(|id| *id > model.start) {
            if !model.ahead.remove(&id) {
                settled.insert(id, end_of(&id));
            }
        }
        for (id, end) in &settled {
            self.hit(match end {
                Terminal::Done => "done",
                Terminal::Failed => "failed",
                Terminal::Skipped => "skipped",
                Terminal::Superseded => "superseded",
                Terminal::Cancelled => "cancelled",
                Terminal::Expired => "expired",
            });
            if model.sided.contains_key(id) {
                self.report("S4", format!("seat {seat}: event {id} was settled and is in a siding"));
            }
            if model.settled.insert(*id, *end).is_some() {
                self.report("S4", format!("seat {seat}: event {id} was settled twice"));
            }
            if self.events.get(&seat.shard).is_none_or(|events| !events.contains_key(id)) {
                self.report("D2", format!("seat {seat}: event {id} was settled and never was"));
            }
        }
        for (id, end) in &endings {
            model.endings.insert(*id, *end);
            if !settled.contains_key(id) {
                self.report(
                    "S4",
                    format!("seat {seat}: event {id} ended {end} in a commit that settles it not"),
                );
            }
        }
        settled
    }

    /// O1: what is done has everything before it in its lane behind it.
    fn check_order(&mut self, seat: Seat, model: &SeatModel, settled: &BTreeMap<EventId, Terminal>) {
        let done: Vec<EventId> =
            settled.iter().filter(|(_, end)| **end == Terminal::Done).map(|(id, _)| *id).collect();
        let mut faults = Vec::new();
        for id in done {
            let Some(event) = self.events.get(&seat.shard).and_then(|events| events.get(&id)) else {
                continue;
            };
            let Some(key) = &event.key else { continue };
            let Some(lane) = self.lanes.get(&(seat.shard, key.clone())) else { continue };
            let before = lane.iter().rev().filter(|before| **before < id && **before > model.start);
            // Far behind everything is settled, or it was found earlier.
            if let Some(waits) = before.take(64).find(|before| !model.settled.contains_key(before)) {
                faults.push(format!("seat {seat}: event {id} of lane {key} was done before event {waits}"));
            }
        }
        faults.into_iter().for_each(|detail| self.report("O1", detail));
    }

    /// A1: emits come in the commit that settles the event of their run, and all of them.
    fn check_emits(&mut self, seat: Seat, commit: &Commit, settled: &BTreeMap<EventId, Terminal>) {
        let mut counts: BTreeMap<(u64, EventId), u32> = BTreeMap::new();
        for emit in commit.emits.iter().filter(|emit| emit.draft.data.starts_with(b"e")) {
            if let Some(made) = maker(&emit.draft.data) {
                *counts.entry(made).or_default() += 1;
            }
        }
        let mut faults = Vec::new();
        for ((run, id), count) in &counts {
            if settled.get(id) != Some(&Terminal::Done) {
                faults.push(format!(
                    "seat {seat}: run {run} emits for event {id}, which this commit does not end"
                ));
            }
            let event = self.events.get(&seat.shard).and_then(|events| events.get(id));
            let planned = event.map_or(0, |event| Plan::of(&event.data).emits);
            if *count != planned {
                faults.push(format!("seat {seat}: event {id} emitted {count} of {planned}"));
            }
        }
        faults.into_iter().for_each(|detail| self.report("A1", detail));
    }

    /// R1: attempts grow by one.
    fn apply_records(&mut self, seat: Seat, model: &mut SeatModel, commit: &Commit) {
        for change in &commit.lanes {
            let before = model.records.get(&change.lane).cloned();
            let Some(record) = &change.record else {
                model.records.remove(&change.lane);
                continue;
            };
            let same = before.as_ref().filter(|before| before.head == record.head && record.head.is_some());
            let attempts_before = same.map_or(0, |before| before.attempts);
            if record.attempts > attempts_before + 1 {
                let detail = format!(
                    "seat {seat}: attempts at {:?} of lane {} went from {attempts_before} to {}",
                    record.head, change.lane, record.attempts
                );
                self.report("R1", detail);
            }
            match record.block {
                Some(Block::Parked { .. }) => self.hit("lane parked"),
                Some(Block::Retry { .. }) => self.hit("retry planned"),
                Some(Block::Paused { .. }) => self.hit("lane paused"),
                Some(Block::Diverting { .. }) => self.hit("lane diverts"),
                Some(Block::Hold { .. }) => self.hit("lane held"),
                Some(Block::Claimed(_)) => self.hit("claim written"),
                Some(Block::Running { .. }) | None => {}
            }
            if record.started && same.is_none_or(|before| !before.started) {
                self.hit("start of a suspect committed");
            }
            if record.crashes > same.map_or(0, |before| before.crashes) {
                self.hit("crash counted");
            }
            model.records.insert(change.lane.clone(), record.clone());
        }
    }

    fn apply_rows(&mut self, seat: Seat, model: &mut SeatModel, commit: &Commit) {
        for write in &commit.states {
            match &write.value {
                Some(value) => {
                    let version = model.states.get(&write.key).map_or(0, |(version, _)| *version) + 1;
                    model.states.insert(write.key.clone(), (version, value.clone()));
                }
                None => drop(model.states.remove(&write.key)),
            }
        }
        for id in &commit.revived {
            self.hit("dead letter revived");
            if !model.dead.remove(id) {
                self.report("S4", format!("seat {seat}: event {id} was revived and is no dead letter"));
            }
        }
        model.dead.extend(commit.dead.iter().map(|dead| dead.event.id));
        for emit in &commit.emits {
            model.outbox.push(emit.draft.data.clone());
            self.emits.push((seat, emit.clone()));
        }
        model.emitted += commit.emits.len() as u64;
        if let Some(forwarded) = commit.forwarded {
            if forwarded > model.emitted || forwarded < model.forwarded {
                let detail = format!("seat {seat}: {forwarded} of {} emits were forwarded", model.emitted);
                self.report("A2", detail);
            }
            let gone = usize::try_from(forwarded.saturating_sub(model.forwarded)).unwrap_or(0);
            model.outbox.drain(..gone.min(model.outbox.len()));
            model.forwarded = forwarded;
            if std::mem::take(&mut model.left_emits) {
                self.hit("emit forwarded after a crash");
            }
        }
        model.answered.extend(commit.answers.iter().map(|answered| answered.number));
        if let Some(applied) = commit.requests_applied {
            if applied > model.filed || applied < model.applied {
                self.report(
                    "1.7",
                    format!("seat {seat}: {applied} of {} requests were applied", model.filed),
                );
            }
            if self.help_for_all.get(&seat).is_some_and(|number| *number <= applied) {
                self.help_for_all.remove(&seat);
                self.helped.extend(model.records.keys().map(|lane| (seat, lane.clone())));
            }
            model.applied = applied;
            self.hit("request applied");
        }
        model.status = commit.status.unwrap_or(model.status);
    }

    /// A3: the first end of a job stays, and says what became of its event.
    fn apply_ends(&mut self, seat: Seat, commit: &Commit, settled: &BTreeMap<EventId, Terminal>) {
        for end in &commit.jobs {
            if settled.get(&end.id).is_some_and(|settled| *settled != end.end) {
                self.report(
                    "A3",
                    format!("seat {seat}: job {} ended {} and its event otherwise", end.id, end.end),
                );
            }
            if let JobResult::Stashed { .. } = end.result {
                self.hit("large result");
            }
            if end.end == Terminal::Done && end.attempts > 1 {
                self.hit("job done after a retry");
            }
            self.hit("job ended");
            self.ends.entry((seat.shard, end.id)).or_insert_with(|| end.clone());
        }
    }

    pub(super) fn end_seen(&mut self, shard: Shard, number: JobNumber, end: &JobEnd, result: Option<&Bytes>) {
        self.hit("end of a job seen");
        let plain = |end: &JobEnd| JobEnd { finished_at: Timestamp(0), ..end.clone() };
        // A job that never joined its lane is ended by its submitter, or by a newer object.
        if matches!(number, JobNumber::Schedule(_)) && !self.ends.contains_key(&(shard, end.id)) {
            if !matches!(end.end, Terminal::Cancelled | Terminal::Superseded) {
                self.report("A3", format!("scheduled job {shard}/{number:?} ended {} by nobody", end.end));
            }
            return;
        }
        match self.ends.get(&(shard, end.id)) {
            None => self.report("A3", format!("job {shard}/{} was shown ended before its commit", end.id)),
            Some(written) if plain(written) != plain(end) => {
                let detail = format!("job {shard}/{} was shown as {end:?}, written was {written:?}", end.id);
                self.report("A3", detail);
            }
            Some(_) => {
                let whose = result.and_then(|result| maker(result)).map(|(_, id)| id);
                if whose.is_some_and(|id| id != end.id) {
                    self.report("A3", format!("job {shard}/{} was shown the result of {whose:?}", end.id));
                }
            }
        }
    }

    pub(super) fn forget(&mut self, shard: Shard, number: JobNumber) {
        match number {
            JobNumber::Event(id) => drop(self.forgotten.insert((shard, id))),
            JobNumber::Schedule(ticket) => {
                let data = self.tickets.get(&(shard, ticket));
                let event = data.and_then(|data| self.tried.get(data).copied().flatten());
                self.forgotten.extend(event);
            }
        }
    }

    pub(super) fn request(&mut self, request: &Request, answer: &Result<u64, Refused>) {
        let Ok(number) = answer else { return };
        let seat = request.seat;
        let model = self.seats.entry(seat).or_default();
        model.filed = model.filed.max(*number);
        let lane = match &request.op {
            RequestOp::Skip { lane, id } => {
                self.unwanted.insert((seat, *id));
                lane
            }
            RequestOp::Retry { lane, .. } | RequestOp::Redrive { lane, .. } => lane,
            RequestOp::Resume { lane: Some(lane) } => lane,
            RequestOp::Resume { lane: None } | RequestOp::Reset(_) => {
                self.help_for_all.insert(seat, *number);
                return;
            }
            RequestOp::Cancel { id } => {
                self.unwanted.insert((seat, *id));
                return;
            }
            _ => return,
        };
        self.helped.insert((seat, lane.clone()));
    }
}
