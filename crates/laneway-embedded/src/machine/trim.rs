//! Trim: what retention allows to go. Never an event that a registered processor has not passed, also not one
//! in a siding; rows go when their own time is over.

use laneway_core::adoption::{given_between, last_given, next_given};
use laneway_core::store::{DeadLetter, JobResult, Trim, Trimmed};
use laneway_core::{EventId, JobNumber, Result, Seat, Shard, ShardInfo, StreamInfo, Timestamp};

use super::ahead::mark_age;
use super::codec::keys::{self, Single};
use super::codec::{Chunk, Numbered, ScheduledJob, Stored, Token, load};
use super::idle::forget_lanes;
use super::job_ends::{alive_until, is_alive};
use super::sweep::{ROWS_PER_CALL, cut, sweep};
use super::{Now, State, Table, dedup, gate};

/// Trims one shard.
pub(crate) fn trim<S: State>(state: &mut S, now: Now, trim: Trim) -> Result<Trimmed> {
    let shard = trim.shard;
    let aged = mark_age(state, now, shard)?;
    let stream = gate::stream(state, shard.stream)?;
    let info = gate::shard(state, shard)?;
    gate::imported(shard, info)?;
    let (seats, dead_keep) = (seats(state, stream, shard), stream.settings.dead_keep);
    let (head, settings) = (last_given(&info.gaps, info.head), stream.settings.clone());
    let through = bound(state, now, stream, shard, info, aged)?;
    let events = given_between(&info.gaps, info.trimmed, through);
    let expired = if seats.is_empty() { events } else { 0 };
    let first = next_given(&info.gaps, through.max(info.trimmed));
    if through > info.trimmed {
        let trimmed = ShardInfo { trimmed: through, ..info.clone() };
        let count = Single::Expired.of(shard);
        let before = load::<Numbered>(state, Table::Store, &count)?.map_or(0, |count| count.0);
        state.put_shard(shard, trimmed);
        if expired > 0 {
            state.put(Table::Store, &count, &Numbered(before + expired).to_row());
        }
    }
    let through = through.0;
    let mut rows = cut(state, Table::Urgent, &keys::shard(shard), through)?;
    rows += dedup::expire(state, now, shard, ROWS_PER_CALL)?;
    for (seat, life) in seats {
        rows += cut(state, Table::Ending, &keys::life(seat, life), through)?;
        rows += trim_seat(state, now, seat, now.expiry.before(dead_keep))?;
    }
    rows += trim_jobs(state, now, shard)?;
    let (forgotten, more) = forget_lanes(state, now, shard, &settings, head, EventId(through))?;
    Ok(Trimmed { first, events, expired, rows: rows + forgotten, more })
}

fn seats<S: State>(state: &S, stream: &StreamInfo, shard: Shard) -> Vec<(Seat, u32)> {
    let processors = stream.processors.iter().map(|processor| Seat { shard, processor: processor.id });
    processors.filter_map(|seat| state.seat(seat).map(|stored| (seat, stored.head.incarnation))).collect()
}

/// The last event that may go.
fn bound<S: State>(
    state: &S,
    now: Now,
    stream: &StreamInfo,
    shard: Shard,
    info: &ShardInfo,
    aged: EventId,
) -> Result<EventId> {
    let mut through = info.head;
    for (processor, stored) in state.seats(shard) {
        through = through.min(stored.window.floor());
        let prefix = keys::life(Seat { shard, processor }, stored.head.incarnation);
        if let Some((first_sided, _)) = state.scan(Table::SidedId, &prefix, None, 1)?.first() {
            through = through.min(EventId(keys::last_number(first_sided)?.saturating_sub(1)));
        }
    }
    if !stream.settings.keep.is_zero() {
        let since = now.expiry.before(stream.settings.keep);
        if let Some(first) = state.first_since(shard, since)? {
            through = through.min(EventId(first.0.saturating_sub(1)).max(aged));
        }
    }
    // Whoever has read all there was before a gap has missed nothing in it.
    Ok(last_given(&info.gaps, through).max(info.trimmed))
}

fn trim_seat<S: State>(state: &mut S, now: Now, seat: Seat, dead_before: Timestamp) -> Result<u64> {
    let prefix = keys::seat(seat);
    let dead = sweep(state, seat.shard, Table::Dead, &prefix, |_, _, row| {
        Ok(DeadLetter::from_row(row)?.at < dead_before)
    })?;
    let tokens = sweep(state, seat.shard, Table::RequestToken, &prefix, |_, _, row| {
        Ok(Token::from_row(row)?.until.is_some_and(|until| until < now.expiry))
    })?;
    Ok((dead.len() + tokens.len()) as u64)
}

fn trim_jobs<S: State>(state: &mut S, now: Now, shard: Shard) -> Result<u64> {
    let prefix = keys::shard(shard);
    let scheduled = sweep(state, shard, Table::ScheduledJob, &prefix, |state, key, row| {
        match ScheduledJob::from_row(row)? {
            ScheduledJob::Ended { end, .. } => Ok(!is_alive(now, end.keep_until)),
            ScheduledJob::Joined(_) => {
                let number = JobNumber::Schedule(keys::last_number(key)?);
                super::jobs::is_gone(state, now, shard, number)
            }
        }
    })?;
    let chunks = sweep(state, shard, Table::Chunk, &prefix, |state, key, row| {
        Ok(Chunk::from_row(row)?.until < now.expiry && !is_named(state, now, shard, key)?)
    })?;
    // A shortened life must be remembered for as long as the end itself could be read without it.
    let lives = sweep(state, shard, Table::JobLife, &prefix, |state, key, _| {
        let end = state.job_end(shard, EventId(keys::last_number(key)?))?;
        Ok(end.is_none_or(|end| !is_alive(now, end.keep_until)))
    })?;
    // Not counted: each store has its own moment for what nobody can read any more.
    state.expire_job_ends(shard, now.expiry);
    Ok((scheduled.len() + chunks.len() + lives.len()) as u64)
}

/// Whether a living end of a job consists of this chunk.
fn is_named<S: State>(state: &S, now: Now, shard: Shard, key: &[u8]) -> Result<bool> {
    let (id, nonce) = keys::chunk_of(key)?;
    let Some(stored) = state.job_end(shard, id)? else { return Ok(false) };
    let names = matches!(stored.end.result, JobResult::Stashed { nonce: named, .. } if named == nonce);
    Ok(names && alive_until(state, now, shard, &stored)?.is_some())
}
