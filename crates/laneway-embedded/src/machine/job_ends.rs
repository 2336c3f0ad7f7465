//! Ends of jobs: which ones a commit may bring, and how long one lives afterwards.

use std::collections::BTreeSet;

use laneway_core::limits::RESULT_BYTES_MAX;
use laneway_core::store::{JobEnd, JobResult};
use laneway_core::{Bytes, EventId, JobId, Refusal, Result, Seat, Shard, StoreError, Timestamp};

use super::codec::{Chunk, Numbered, Stored, keys, load};
use super::lanes::sided;
use super::state::look_at_all;
use super::{Now, SeatState, State, StoredEnd, Table, View, expiry};

/// Checks the ends of a commit; answers those to keep, with the names of their jobs. An end that is there
/// already stays, and the later one is passed over in silence. `leaving` are the ids that leave a siding with it.
pub(super) fn check<S: View>(
    state: &S,
    now: Now,
    seat: Seat,
    stored: &SeatState,
    ends: Vec<JobEnd>,
    passed: impl Fn(EventId) -> bool,
    leaving: &BTreeSet<EventId>,
) -> Result<Vec<(JobId, StoredEnd)>> {
    let new_end = |mut end: JobEnd| {
        let in_siding = || sided(state, seat, stored.head.incarnation, end.id);
        if !passed(end.id) && in_siding()?.is_none() {
            return Err(refusal(end.id, "of an event that is passed with this commit, or in a siding"));
        }
        check_size(state, seat.shard, &end)?;
        let mark = state.job_mark(seat.shard, end.id)?;
        let Some(mark) = mark.filter(|mark| mark.responder == seat.processor) else {
            return Err(refusal(end.id, "of a job that this processor answers"));
        };
        let was_open = !stored.window.contains(end.id);
        // In its first life a seat ends a job when it passes the event, so an open event has no end yet, unless it was
        // run ahead of the window and came back into its siding.
        let ahead = was_open && (leaving.contains(&end.id) || !passed(end.id));
        let may_have_end = !was_open || ahead || stored.head.incarnation > 0;
        if may_have_end && state.job_end(seat.shard, end.id)?.is_some() {
            return Ok(None);
        }
        if !was_open && in_siding()?.is_none() {
            return Err(refusal(end.id, "of an event that was open before this commit"));
        }
        end.finished_at = now.wall;
        let keep_until = now.wall.after(end.keep);
        Ok(Some((mark.id, StoredEnd { end, keep_until })))
    };
    let mut kept: Vec<(JobId, StoredEnd)> = Vec::with_capacity(ends.len());
    for (job, stored) in look_at_all(ends, new_end)?.into_iter().flatten() {
        let ascends = kept.last().is_none_or(|(_, last)| last.end.id < stored.end.id);
        if ascends || kept.iter().all(|(_, before)| before.end.id != stored.end.id) {
            kept.push((job, stored));
        }
    }
    Ok(kept)
}

fn refusal(id: EventId, limit: &str) -> StoreError {
    Refusal::new("jobs", format!("event {id}"), limit).into()
}

/// A stashed result is there, and not too long.
fn check_size<S: View>(state: &S, shard: Shard, end: &JobEnd) -> Result<()> {
    match &end.result {
        JobResult::None | JobResult::Inline(_) => Ok(()),
        JobResult::Stashed { nonce, chunks } => {
            let mut size = 0;
            for index in 0..*chunks {
                let row = keys::chunk(shard, end.id, *nonce, index);
                let Some(chunk) = load::<Chunk>(state, Table::Chunk, &row)? else {
                    let limit = format!("stashed chunks; chunk {index} of event {} is not there", end.id);
                    return Err(Refusal::new("result", format!("{chunks} chunks"), limit).into());
                };
                size += chunk.bytes.len();
                Refusal::check_max("result bytes", size, RESULT_BYTES_MAX)?;
            }
            Ok(())
        }
    }
}

/// Until when the end of a job that joined its lane can be read; `None` once it is forgotten.
pub(super) fn alive_until<S: View>(
    state: &S,
    now: Now,
    shard: Shard,
    stored: &StoredEnd,
) -> Result<Option<Timestamp>> {
    let until = life(state, shard, stored)?;
    Ok(is_alive(now, until).then_some(until))
}

/// Until when the end of a job that joined its lane could or can be read.
pub(super) fn life<S: View>(state: &S, shard: Shard, stored: &StoredEnd) -> Result<Timestamp> {
    let life = load::<Numbered>(state, Table::JobLife, &keys::shard_number(shard, stored.end.id.0))?;
    Ok(life.map_or(stored.keep_until, |life| Timestamp(life.0).min(stored.keep_until)))
}

/// Whether somebody has changed how long the end of a job that joined its lane can be read.
pub(super) fn has_own_life<S: View>(state: &S, shard: Shard, id: EventId) -> Result<bool> {
    Ok(state.get(Table::JobLife, &keys::shard_number(shard, id.0))?.is_some())
}

/// Whether an end that is kept until then can be read now.
pub(super) fn is_alive(now: Now, until: Timestamp) -> bool {
    until.0 > 0 && until >= now.expiry
}

/// Changes until when the end of a job that joined its lane can be read; the epoch forgets it at once.
pub(super) fn set_life<S: State>(state: &mut S, shard: Shard, id: EventId, until: Timestamp) {
    let row = keys::shard_number(shard, id.0);
    state.put(Table::JobLife, &row, &Numbered(until.0).to_row());
    expiry::note(state, Table::JobLife, &row, until);
}

/// The bytes of a result; `None` if there were none.
pub(super) fn result<S: View>(state: &S, shard: Shard, end: &JobEnd) -> Result<Option<Bytes>> {
    match &end.result {
        JobResult::None => Ok(None),
        JobResult::Inline(bytes) => Ok(Some(bytes.clone())),
        JobResult::Stashed { nonce, chunks } => {
            let mut whole = Vec::new();
            for index in 0..*chunks {
                let row = keys::chunk(shard, end.id, *nonce, index);
                let chunk = load::<Chunk>(state, Table::Chunk, &row)?.ok_or_else(|| StoreError::Corrupt {
                    what: format!("result of event {} in shard {shard}: chunk {index} is missing", end.id),
                })?;
                whole.extend_from_slice(&chunk.bytes);
            }
            Ok(Some(whole.into()))
        }
    }
}
