//! Export: the lists that only copies and checks read. Changes nothing.
//!
//! A page may be shorter than asked for, so that it stays bounded in bytes; an empty one is the end.

use laneway_core::adoption::next_given;
use laneway_core::limits::{PAGE_BYTES_MAX, PAGE_MAX};
use laneway_core::store::{
    DedupName, DedupRow, EndRow, JobResult, ObjectRow, Source, SourceRow, StoreView, TicketRow, Ticketed,
    TokenRow,
};
use laneway_core::{
    Bytes, Event, EventId, Key, LaneName, ProcessorId, Result, Seat, Shard, StreamId, TokenId,
};

use super::codec::keys::{self, Single};
use super::codec::{Numbered, Remembered, ScheduledJob, Seen, Stored, Token, Value, load};
use super::job_ends::{is_alive, life};
use super::state::look_at_all;
use super::{Now, StoredEnd, Table, View, gate};

/// Clocks and counters.
pub(super) fn store<S: View>(state: &S, now: Now) -> Result<StoreView> {
    let last = |single: Single| -> Result<u32> {
        let last = load::<Numbered>(state, Table::Store, &single.key())?.map_or(0, |last| last.0);
        Ok(u32::try_from(last).unwrap_or(u32::MAX))
    };
    Ok(StoreView {
        calendar: now.calendar,
        steady: now.steady,
        streams: StreamId(last(Single::Streams)?),
        processors: ProcessorId(last(Single::Processors)?),
    })
}

/// Events as they are stored, one at a time. What is trimmed is passed over.
pub(super) fn events<S: View>(state: &S, shard: Shard, after: EventId, limit: usize) -> Result<Vec<Event>> {
    let info = gate::shard(state, shard)?;
    let (mut events, mut bytes): (Vec<Event>, usize) = (Vec::new(), 0);
    let mut id = after.max(info.trimmed);
    while events.len() < limit.min(PAGE_MAX) && bytes < PAGE_BYTES_MAX {
        id = next_given(&info.gaps, id);
        if id > info.head {
            break;
        }
        if let Some(event) = state.event(shard, id)? {
            bytes += event.size();
            events.push(event);
        }
    }
    Ok(events)
}

/// Rows under a prefix until the page is full, by number or by bytes.
fn page<S: View>(
    state: &S,
    table: Table,
    prefix: &[u8],
    after: Option<&[u8]>,
    limit: usize,
) -> Result<Vec<(Bytes, Bytes)>> {
    const PIECE: usize = 16;
    let (mut rows, mut bytes) = (Vec::new(), 0);
    let mut after = after.map(Bytes::copy_from_slice);
    while rows.len() < limit.min(PAGE_MAX) && bytes < PAGE_BYTES_MAX {
        let wanted = (limit.min(PAGE_MAX) - rows.len()).min(PIECE);
        let found = state.scan(table, prefix, after.as_deref(), wanted)?;
        let Some((last, _)) = found.last() else { break };
        after = Some(last.clone());
        bytes += found.iter().map(|(key, row)| key.len() + row.len()).sum::<usize>();
        rows.extend(found);
    }
    Ok(rows)
}

/// Objects, also removed ones.
pub(super) fn objects<S: View>(
    state: &S,
    shard: Shard,
    after: Option<&Key>,
    limit: usize,
) -> Result<Vec<ObjectRow>> {
    gate::shard(state, shard)?;
    let after = after.map(|key| keys::object(shard, key));
    let rows = page(state, Table::Object, &keys::shard(shard), after.as_deref(), limit)?;
    let objects = rows.into_iter().map(|(key, row)| {
        let Value { version, bytes } = Value::from_row(row)?;
        Ok(ObjectRow { key: keys::object_of(&key)?, version, value: bytes })
    });
    objects.collect()
}

/// Remembered dedup ids.
pub(super) fn dedup<S: View>(
    state: &S,
    shard: Shard,
    after: Option<&DedupName>,
    limit: usize,
) -> Result<Vec<DedupRow>> {
    gate::shard(state, shard)?;
    let after = after.map(|name| keys::dedup(shard, name.key.as_ref(), &name.id));
    let rows = page(state, Table::Dedup, &keys::shard(shard), after.as_deref(), limit)?;
    let entries = rows.into_iter().map(|(key, row)| {
        let Remembered { receipt, body, until, event } = Remembered::from_row(row)?;
        let (key, id) = keys::dedup_name_of(&key)?;
        Ok(DedupRow { name: DedupName { key, id }, receipt, body, until, event })
    });
    entries.collect()
}

/// Numbered sources.
pub(super) fn sources<S: View>(
    state: &S,
    shard: Shard,
    after: Option<&Source>,
    limit: usize,
) -> Result<Vec<SourceRow>> {
    gate::shard(state, shard)?;
    let after = after.map(|source| keys::source(shard, source));
    let rows = page(state, Table::Source, &keys::shard(shard), after.as_deref(), limit)?;
    let sources = rows.into_iter().map(|(key, row)| {
        let Seen { term, number } = Seen::from_row(row)?;
        Ok(SourceRow { source: keys::source_of(&key)?, term, number })
    });
    sources.collect()
}

/// Jobs that have left the schedule.
pub(super) fn tickets<S: View>(state: &S, shard: Shard, after: u64, limit: usize) -> Result<Vec<TicketRow>> {
    gate::shard(state, shard)?;
    let after = keys::shard_number(shard, after);
    let rows = page(state, Table::ScheduledJob, &keys::shard(shard), Some(&after), limit)?;
    let tickets = rows.into_iter().map(|(key, row)| {
        let (accepted_at, became) = match ScheduledJob::from_row(row)? {
            ScheduledJob::Joined(id) => (None, Ticketed::Joined(id)),
            ScheduledJob::Ended { end: StoredEnd { end, keep_until }, accepted_at } => {
                (accepted_at, Ticketed::Ended(Box::new(EndRow { end, keep_until })))
            }
        };
        Ok(TicketRow { ticket: keys::last_number(&key)?, accepted_at, became })
    });
    tickets.collect()
}

/// Ends with how long they can be read; past that without their result, for as long as their event is there.
pub(super) fn ends<S: View>(
    state: &S,
    now: Now,
    shard: Shard,
    after: EventId,
    limit: usize,
) -> Result<Vec<EndRow>> {
    const PIECE: usize = 16;
    let trimmed = gate::shard(state, shard)?.trimmed;
    let (mut ends, mut bytes) = (Vec::new(), 0);
    let mut after = after;
    while ends.len() < limit.min(PAGE_MAX) && bytes < PAGE_BYTES_MAX {
        let found = state.job_ends(shard, after, (limit.min(PAGE_MAX) - ends.len()).min(PIECE))?;
        let Some(last) = found.last() else { break };
        after = last.end.id;
        let found = look_at_all(found, |stored| Ok((life(state, shard, &stored)?, stored)))?;
        for (keep_until, mut stored) in found {
            if !is_alive(now, keep_until) {
                if stored.end.id <= trimmed {
                    continue;
                }
                stored.end.result = JobResult::None;
            }
            bytes += stored.to_row().len();
            ends.push(EndRow { end: stored.end, keep_until });
        }
    }
    Ok(ends)
}

/// Ids in sidings.
pub(super) fn sided<S: View>(
    state: &S,
    seat: Seat,
    after: EventId,
    limit: usize,
) -> Result<Vec<(EventId, LaneName)>> {
    let life = gate::seat(state, seat)?.head.incarnation;
    let after = keys::life_number(seat, life, after);
    let rows = page(state, Table::SidedId, &keys::life(seat, life), Some(&after), limit)?;
    let sided =
        rows.into_iter().map(|(key, row)| Ok((EventId(keys::last_number(&key)?), LaneName::from_row(row)?)));
    sided.collect()
}

/// Request tokens.
pub(super) fn tokens<S: View>(
    state: &S,
    seat: Seat,
    after: Option<TokenId>,
    limit: usize,
) -> Result<Vec<TokenRow>> {
    gate::seat(state, seat)?;
    let after = after.map(|token| keys::token(seat, token));
    let rows =
        page(state, Table::RequestToken, &keys::seat(seat), after.as_ref().map(|key| &key[..]), limit)?;
    let tokens = rows.into_iter().map(|(key, row)| {
        let Token { number, until, answer } = Token::from_row(row)?;
        Ok(TokenRow { token: keys::token_of(&key)?, number, until, answer })
    });
    tokens.collect()
}
