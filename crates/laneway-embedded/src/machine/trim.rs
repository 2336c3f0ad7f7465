//! Trim: what retention allows to go. Never an event that a registered processor has not passed, also not one
//! in a siding; rows go when their own time is over.
//!
//! Everything is looked at first and changed afterwards, like in every rule.

use laneway_core::adoption::{given_between, last_given, next_given};
use laneway_core::store::{DeadLetter, HeldBy, JobResult, Trim, Trimmed};
use laneway_core::{Bytes, EventId, JobNumber, Result, Seat, Shard, ShardInfo, StreamInfo, Timestamp};

use super::ahead::AgeMarks;
use super::codec::keys::{self, Single};
use super::codec::{Chunk, Numbered, ScheduledJob, Stored, Token, load};
use super::expiry::{self, Fate, ROWS_PER_CALL, Sweep};
use super::idle::IdleSweep;
use super::job_ends::{alive_until, is_alive};
use super::{Now, State, StoredEnd, Table, View, dedup, gate};

/// How long a job that has not ended is left alone before the note about it is looked at again.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_secs(60 * 60);

/// Trims one shard.
pub(crate) fn trim<S: State>(state: &mut S, now: Now, trim: Trim) -> Result<Trimmed> {
    let shard = trim.shard;
    let stream = gate::stream(state, shard.stream)?;
    let info = gate::shard(state, shard)?;
    gate::imported(shard, info)?;
    let seats = seats(state, stream, shard);
    let (head, settings) = (last_given(&info.gaps, info.head), stream.settings.clone());
    let marks = AgeMarks::look(state, now, shard, settings.keep, info)?;
    let Bound { through, .. } = bound(state, now, stream, shard, info, marks.aged)?;
    let events = given_between(&info.gaps, info.trimmed, through);
    let expired = if seats.is_empty() { events } else { 0 };
    let first = next_given(&info.gaps, through.max(info.trimmed));
    let trimmed = (through > info.trimmed).then(|| ShardInfo { trimmed: through, ..info.clone() });
    let count = Single::Expired.of(shard);
    let expired_before = load::<Numbered>(state, Table::Store, &count)?.map_or(0, |count| count.0);

    let passed = passed_rows(state, shard, &seats, through)?;
    let forgotten_ids = dedup::look_for_expired(state, now, shard, ROWS_PER_CALL)?;
    let over = look_for_expired(state, now, shard, &settings.dead_keep)?;
    let idle = IdleSweep::look(state, now, shard, &settings, head, through)?;

    marks.apply(state, shard);
    if let Some(trimmed) = trimmed {
        state.put_shard(shard, trimmed);
        if expired > 0 {
            state.put(Table::Store, &count, &Numbered(expired_before + expired).to_row());
        }
    }
    let mut rows = passed.len() as u64;
    passed.iter().for_each(|(table, key)| state.delete(*table, key));
    rows += forgotten_ids.apply(state, shard);
    let more = over.iter().any(|(_, sweep)| sweep.more);
    rows += over.into_iter().map(|(table, sweep)| sweep.apply(state, table)).sum::<u64>();
    // Not counted: each store has its own moment for what nobody can read any more.
    state.expire_job_ends(shard, now.expiry);
    let (forgotten, more_lanes) = idle.apply(state, shard);
    Ok(Trimmed { first, events, expired, rows: rows + forgotten, more: more || more_lanes })
}

fn seats<S: View>(state: &S, stream: &StreamInfo, shard: Shard) -> Vec<(Seat, u32)> {
    let processors = stream.processors.iter().map(|processor| Seat { shard, processor: processor.id });
    processors.filter_map(|seat| state.seat(seat).map(|stored| (seat, stored.head.incarnation))).collect()
}

/// How far a shard may be trimmed.
struct Bound {
    /// The last event that may go.
    through: EventId,
    /// Why the next event must stay; `None` at the end of the log.
    by: Option<HeldBy>,
}

impl Bound {
    fn lower(&mut self, through: EventId, by: HeldBy) {
        if through < self.through {
            *self = Self { through, by: Some(by) };
        }
    }
}

fn bound<S: View>(
    state: &S,
    now: Now,
    stream: &StreamInfo,
    shard: Shard,
    info: &ShardInfo,
    aged: EventId,
) -> Result<Bound> {
    let mut bound = Bound { through: info.head, by: None };
    for (processor, stored) in state.seats(shard) {
        bound.lower(stored.window.floor(), HeldBy::Processor(processor));
        let prefix = keys::life(Seat { shard, processor }, stored.head.incarnation);
        if let Some((first_sided, _)) = state.scan(Table::SidedId, &prefix, None, 1)?.first() {
            let before = keys::last_number(first_sided)?.saturating_sub(1);
            bound.lower(EventId(before), HeldBy::Lane(processor));
        }
    }
    // What nobody has passed yet needs no look at its age.
    if !stream.settings.keep.is_zero() && bound.through > info.trimmed {
        let since = now.expiry.before(stream.settings.keep);
        if let Some(first) = state.first_since(shard, since, bound.through)? {
            bound.lower(EventId(first.0.saturating_sub(1)).max(aged), HeldBy::Keep);
        }
    }
    // Whoever has read all there was before a gap has missed nothing in it.
    Ok(Bound { through: last_given(&info.gaps, bound.through).max(info.trimmed), ..bound })
}

/// Returns the first event that a trim must keep, and why; `None` if it may remove all events.
pub(crate) fn held<S: View>(state: &S, now: Now, shard: Shard) -> Result<Option<(EventId, HeldBy)>> {
    let stream = gate::stream(state, shard.stream)?;
    let info = gate::shard(state, shard)?;
    let marks = AgeMarks::look(state, now, shard, stream.settings.keep, info)?;
    let Bound { through, by } = bound(state, now, stream, shard, info, marks.aged)?;
    Ok(by.map(|by| (next_given(&info.gaps, through), by)))
}

/// Rows about events that every processor has passed.
fn passed_rows<S: View>(
    state: &S,
    shard: Shard,
    seats: &[(Seat, u32)],
    through: EventId,
) -> Result<Vec<(Table, Bytes)>> {
    let mut rows = Vec::new();
    for table in [Table::Urgent, Table::KeptEvent] {
        let passed = expiry::numbered(state, table, &keys::shard(shard), through.0)?;
        rows.extend(passed.into_iter().map(|key| (table, key)));
    }
    for (seat, life) in seats {
        let endings = expiry::numbered(state, Table::Ending, &keys::life(*seat, *life), through.0)?;
        rows.extend(endings.into_iter().map(|key| (Table::Ending, key)));
    }
    Ok(rows)
}

/// Looks at all rows whose time is over.
fn look_for_expired<S: View>(
    state: &S,
    now: Now,
    shard: Shard,
    dead_keep: &std::time::Duration,
) -> Result<Vec<(Table, Sweep)>> {
    let dead_before = now.expiry.before(*dead_keep);
    let dead = |_: &[u8], row| {
        let at = DeadLetter::from_row(row)?.at;
        Ok(if at < dead_before { Fate::Over } else { Fate::StaysUntil(at) })
    };
    let token = |_: &[u8], row| {
        let until = Token::from_row(row)?.until.unwrap_or(now.wall.after(LOOK_AGAIN));
        Ok(if until < now.expiry { Fate::Over } else { Fate::StaysUntil(until) })
    };
    let chunk = |key: &[u8], row| {
        let until = Chunk::from_row(row)?.until;
        Ok(match named_until(state, now, shard, key)? {
            Some(named) => Fate::StaysUntil(named.max(until)),
            None if until < now.expiry => Fate::Over,
            None => Fate::StaysUntil(until),
        })
    };
    // A shortened life must be remembered for as long as the end itself could be read without it.
    let life = |key: &[u8], _| {
        let until = state.job_end_life(shard, EventId(keys::last_number(key)?))?;
        Ok(until.filter(|until| is_alive(now, *until)).map_or(Fate::Over, Fate::StaysUntil))
    };
    let ticket = |key: &[u8], row| match ScheduledJob::from_row(row)? {
        ScheduledJob::Ended { end, .. } if is_alive(now, end.keep_until) => {
            Ok(Fate::StaysUntil(end.keep_until))
        }
        ScheduledJob::Ended { .. } => Ok(Fate::Over),
        ScheduledJob::Joined(_) => {
            let number = JobNumber::Schedule(keys::last_number(key)?);
            let gone_at = super::jobs::gone_at(state, now, shard, number)?;
            Ok(gone_at.map_or(Fate::Over, |at| Fate::StaysUntil(at.unwrap_or(now.wall.after(LOOK_AGAIN)))))
        }
    };
    // An end is found for as long as its event is there: a job never ends twice.
    let kept_end = |_: &[u8], row| {
        let stored = StoredEnd::from_row(row)?;
        let is_there = state.shard(shard).is_some_and(|info| stored.end.id > info.trimmed);
        Ok(match alive_until(state, now, shard, &stored)? {
            Some(until) => Fate::StaysUntil(until),
            None if is_there => Fate::StaysUntil(now.wall.after(LOOK_AGAIN)),
            None => Fate::Over,
        })
    };
    let now = now.expiry;
    Ok(vec![
        (Table::KeptEnd, expiry::look(state, shard, Table::KeptEnd, now, kept_end)?),
        (Table::Dead, expiry::look(state, shard, Table::Dead, dead_before, dead)?),
        (Table::RequestToken, expiry::look(state, shard, Table::RequestToken, now, token)?),
        (Table::Chunk, expiry::look(state, shard, Table::Chunk, now, chunk)?),
        (Table::JobLife, expiry::look(state, shard, Table::JobLife, now, life)?),
        (Table::ScheduledJob, expiry::look(state, shard, Table::ScheduledJob, now, ticket)?),
    ])
}

/// Until when a living end of a job consists of this chunk; `None` if there is no such end.
fn named_until<S: View>(state: &S, now: Now, shard: Shard, key: &[u8]) -> Result<Option<Timestamp>> {
    let (id, nonce) = keys::chunk_of(key)?;
    let Some(stored) = state.job_end(shard, id)? else { return Ok(None) };
    let names = matches!(stored.end.result, JobResult::Stashed { nonce: named, .. } if named == nonce);
    if names { alive_until(state, now, shard, &stored) } else { Ok(None) }
}
