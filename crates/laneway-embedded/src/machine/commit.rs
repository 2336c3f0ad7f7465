//! Commit: the fence, then everything an owner may settle in one step (contract 1.8).
//!
//! All parts are checked against the state as it is; only then the first row is written. What a commit says
//! of the life that it ends by a reset counts before the next life begins.

use std::collections::{BTreeMap, BTreeSet};

use laneway_core::limits::{PAGE_MAX, TOKEN_KEEP};
use laneway_core::store::{Answered, Commit, Committed, DeadLetter, Emit, Ending, Reset, StateWrite};
use laneway_core::{
    Bytes, EventId, Fence, JobId, Passed, Refusal, Result, Seat, ShardInfo, StoreError, Terminal, TokenId,
    Window,
};

use super::codec::{Filed, Outgoing, Stored, Token, Value, keys, load};
use super::lanes::sided;
use super::{
    Now, SeatHead, SeatState, State, StoredEnd, Table, View, define, expiry, gate, ids, job_ends,
    lane_changes,
};

/// Settles runs. Also answers which jobs ended.
pub(crate) fn commit<S: State>(state: &mut S, now: Now, commit: Commit) -> Result<(Committed, Vec<JobId>)> {
    let seat = commit.seat;
    let info = gate::shard(state, seat.shard)?;
    let stored = gate::seat(state, seat)?;
    if is_repeat(&stored.head, info, &commit) {
        return Ok((committed(stored), Vec::new()));
    }
    let unowned = stored.head.fence.term.0 == 0;
    if unowned
        || stored.head.fence != commit.fence
        || info.adoptions != commit.fence.adoptions
        // A store that came back from an older state answers nobody until its shards are adopted.
        || info.incarnation != state.incarnation()
    {
        return Err(StoreError::Fenced { seat, current: stored.head.fence.term });
    }
    let plan = plan(state, now, commit)?;
    let ended = plan.jobs.iter().map(|(job, _)| *job).collect();
    plan.apply(state, seat);
    Ok((committed(gate::seat(state, seat)?), ended))
}

fn is_repeat(head: &SeatHead, info: &ShardInfo, commit: &Commit) -> bool {
    let before = Fence { version: head.fence.version.wrapping_sub(1), ..head.fence };
    head.fence.version > 0
        && before == commit.fence
        && head.last_commit == Some(commit.id)
        && info.adoptions == commit.fence.adoptions
}

fn committed(stored: &SeatState) -> Committed {
    Committed {
        fence: stored.head.fence,
        floor: stored.window.floor(),
        request_no: stored.head.request_no,
        emitted: stored.head.emitted,
    }
}

/// Everything one commit changes, checked.
struct Plan {
    before: Lives,
    head: SeatHead,
    passed: Passed,
    endings: Vec<Ending>,
    lanes: Vec<lane_changes::Checked>,
    states: Vec<(Vec<u8>, Option<Value>)>,
    dead: Vec<DeadLetter>,
    revived: Vec<EventId>,
    emits: Vec<Emit>,
    /// Outbox rows that reached their shard: after the first, up to the second.
    forwarded: (u64, u64),
    /// Requests that had their effect, with their tokens and answers.
    applied: BTreeMap<u64, (TokenId, Bytes)>,
    token_until: laneway_core::Timestamp,
    jobs: Vec<(JobId, StoredEnd)>,
    reset: Option<(Reset, EventId)>,
}

#[derive(Clone, Copy)]
struct Lives {
    lanes: u32,
    states: u32,
    emitted: u64,
}

fn plan<S: View>(state: &S, now: Now, commit: Commit) -> Result<Plan> {
    let seat = commit.seat;
    let info = gate::shard(state, seat.shard)?;
    let stored = gate::seat(state, seat)?;
    check_passed(info, &stored.window, &commit.passed)?;
    commit.check_sizes()?;
    let passed = |id: EventId| stored.window.contains(id) || commit.passed.contains(id);
    // What was run ahead of the window is in a siding, and not passed yet (contract 3.6).
    let life = stored.head.incarnation;
    check_endings(&commit.endings, |id| Ok(passed(id) || sided(state, seat, life, id)?.is_some()))?;
    let leaving: BTreeSet<EventId> =
        commit.lanes.iter().flat_map(|change| change.unside.iter().copied()).collect();
    let jobs = job_ends::check(state, now, seat, stored, commit.jobs, passed, &leaving)?;
    let place = lane_changes::Place {
        seat,
        life: stored.head.incarnation,
        head: info.head,
        floor: stored.window.floor(),
    };
    let lanes = lane_changes::check(state, place, commit.lanes, passed)?;
    let states = plan_states(state, seat, stored.head.states_life, commit.states)?;
    let forwarded = commit.forwarded.unwrap_or(stored.head.forwarded);
    check_counter("forwarded", forwarded, stored.head.forwarded, stored.head.emitted)?;
    let requests_applied = commit.requests_applied.unwrap_or(stored.head.requests_applied);
    check_counter(
        "requests_applied",
        requests_applied,
        stored.head.requests_applied,
        stored.head.request_no,
    )?;
    let applied =
        plan_applied(state, seat, (stored.head.requests_applied + 1, requests_applied), commit.answers)?;
    let reset = match commit.reset {
        None => None,
        Some(reset) => Some((reset, define::start_floor(state, seat.shard, reset.start)?)),
    };
    let clears = reset.is_some_and(|(reset, _)| reset.clear_states);
    let before = &stored.head;
    let head = SeatHead {
        fence: Fence { version: before.fence.version + 1, ..before.fence },
        last_commit: Some(commit.id),
        clean: commit.clean,
        emitted: before.emitted + commit.emits.len() as u64,
        forwarded,
        requests_applied,
        status: commit.status.unwrap_or(before.status),
        note: commit.note.unwrap_or_else(|| before.note.clone()),
        incarnation: before.incarnation + u32::from(reset.is_some()),
        states_life: before.states_life + u32::from(clears),
        ..before.clone()
    };
    Ok(Plan {
        before: Lives { lanes: before.incarnation, states: before.states_life, emitted: before.emitted },
        head,
        passed: commit.passed,
        endings: commit.endings,
        lanes,
        states,
        dead: commit.dead.into_iter().map(|dead| DeadLetter { at: now.wall, ..dead }).collect(),
        revived: commit.revived,
        emits: commit.emits,
        forwarded: (before.forwarded, forwarded),
        applied,
        token_until: now.wall.after(TOKEN_KEEP),
        jobs,
        reset,
    })
}

fn check_endings(endings: &[Ending], settles: impl Fn(EventId) -> Result<bool>) -> Result<()> {
    for ending in endings {
        if ending.end == Terminal::Done || !settles(ending.id)? {
            let limit = "another end than done, of an event that is passed or in a siding";
            let found = format!("{} of event {}", ending.end, ending.id);
            return Err(Refusal::new("endings", found, limit).into());
        }
    }
    Ok(())
}

fn check_passed(info: &ShardInfo, window: &Window, passed: &Passed) -> Result<(), Refusal> {
    let Some(last) = passed.last() else { return Ok(()) };
    if last > info.head {
        return Err(Refusal::new("passed", last.to_string(), format!("at most the last id {}", info.head)));
    }
    let ceiling = ids::ceiling(info, window);
    if last > ceiling {
        return Err(Refusal::new("passed", last.to_string(), format!("at most {ceiling}, the window's end")));
    }
    Ok(())
}

/// A counter of the seat may only grow, up to what there is, and by a page at a time: each step removes a row.
fn check_counter(field: &'static str, value: u64, from: u64, to: u64) -> Result<(), Refusal> {
    let to = to.min(from + PAGE_MAX as u64);
    if (from..=to).contains(&value) {
        return Ok(());
    }
    Err(Refusal::new(field, value.to_string(), format!("{from} to {to}")))
}

/// The rows that state writes become; a key that is written twice counts twice.
fn plan_states<S: View>(
    state: &S,
    seat: Seat,
    life: u32,
    writes: Vec<StateWrite>,
) -> Result<Vec<(Vec<u8>, Option<Value>)>> {
    let mut rows: Vec<(Vec<u8>, Option<Value>)> = Vec::with_capacity(writes.len());
    let mut versions = hashbrown::HashMap::with_capacity(writes.len());
    for write in writes {
        let row = keys::state(seat, life, &write.key);
        let before = match versions.get(&row) {
            Some(version) => *version,
            None => load::<Value>(state, Table::LaneState, &row)?.map_or(0, |value| value.version),
        };
        let version = before + 1;
        let value = write.value.map(|bytes| Value { version, bytes: Some(bytes) });
        // A removed state leaves nothing behind, so that idle lanes cost nothing.
        versions.insert(row.clone(), if value.is_some() { version } else { 0 });
        rows.push((row, value));
    }
    Ok(rows)
}

/// The requests that have their effect: those that are answered, and all that wait up to a number.
fn plan_applied<S: View>(
    state: &S,
    seat: Seat,
    (from, to): (u64, u64),
    answers: Vec<Answered>,
) -> Result<BTreeMap<u64, (TokenId, Bytes)>> {
    let mut applied = BTreeMap::new();
    for Answered { number, answer } in answers {
        let refusal = || Refusal::new("answers", number.to_string(), "requests that wait, each once");
        let filed = filed(state, seat, number)?.ok_or_else(refusal)?;
        if applied.insert(number, (filed.token, answer)).is_some() {
            return Err(refusal().into());
        }
    }
    for number in from..=to {
        // One that is not there any more was answered before its turn.
        if !applied.contains_key(&number)
            && let Some(filed) = filed(state, seat, number)?
        {
            applied.insert(number, (filed.token, Bytes::new()));
        }
    }
    Ok(applied)
}

fn filed<S: View>(state: &S, seat: Seat, number: u64) -> Result<Option<Filed>> {
    load::<Filed>(state, Table::Request, &keys::seat_number(seat, number))
}

impl Plan {
    fn apply<S: State>(self, state: &mut S, seat: Seat) {
        self.apply_rows(state, seat);
        let life = self.before.lanes;
        for (_, end) in self.jobs {
            state.end_job(seat.shard, end);
        }
        match self.reset {
            None => {
                // A dead letter that comes back into its lane has not ended after all.
                for id in self.revived.iter().filter(|id| self.lanes.iter().any(|change| change.sides(**id)))
                {
                    state.delete(Table::Ending, &keys::life_number(seat, life, *id));
                }
                for ending in &self.endings {
                    state.put(Table::Ending, &keys::life_number(seat, life, ending.id), &ending.to_row());
                }
                for change in &self.lanes {
                    lane_changes::apply(state, seat, life, change);
                }
                state.advance_seat(seat, self.head, &self.passed);
            }
            Some((reset, floor)) => {
                forget_life(state, seat, life);
                if reset.clear_states {
                    state.forget(Table::LaneState, &keys::life(seat, self.before.states));
                }
                state.put_seat(seat, SeatState { head: self.head, window: Window::at(floor) });
            }
        }
    }

    fn apply_rows<S: State>(&self, state: &mut S, seat: Seat) {
        for (row, value) in &self.states {
            match value {
                Some(value) => state.put(Table::LaneState, row, &value.to_row()),
                None => state.delete(Table::LaneState, row),
            }
        }
        for id in &self.revived {
            state.delete(Table::Dead, &keys::seat_number(seat, id.0));
        }
        for dead in &self.dead {
            let row = keys::seat_number(seat, dead.event.id.0);
            state.put(Table::Dead, &row, &dead.to_row());
            expiry::note(state, Table::Dead, &row, dead.at);
        }
        for (number, emit) in (self.before.emitted + 1..).zip(&self.emits) {
            let (incarnation, adoptions) = (self.before.lanes, self.head.fence.adoptions);
            let outgoing = Outgoing { incarnation, adoptions, emit: emit.clone() };
            state.put_new(Table::Outbox, &keys::seat_number(seat, number), &outgoing.to_row());
        }
        for number in self.forwarded.0 + 1..=self.forwarded.1 {
            state.delete(Table::Outbox, &keys::seat_number(seat, number));
        }
        for (number, (token, answer)) in &self.applied {
            let until = Some(self.token_until);
            let remembered = Token { number: *number, until, answer: answer.clone() };
            state.delete(Table::Request, &keys::seat_number(seat, *number));
            let row = keys::token(seat, *token);
            state.put(Table::RequestToken, &row, &remembered.to_row());
            expiry::note(state, Table::RequestToken, &row, self.token_until);
        }
    }
}

/// Everything of a seat that ends with one of its lives.
pub(super) fn forget_life<S: State>(state: &mut S, seat: Seat, life: u32) {
    let prefix = keys::life(seat, life);
    for table in [Table::Lane, Table::LaneDue, Table::LaneBlock, Table::Siding, Table::SidedId, Table::Ending]
    {
        state.forget(table, &prefix);
    }
}
