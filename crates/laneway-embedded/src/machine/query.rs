//! Query: lists of one shard, and the catalogue. Changes nothing.

use laneway_core::limits::PAGE_MAX;
use laneway_core::store::{
    Counts, DeadLetter, EndedPage, Ending, JobEnd, LaneTail, OutboxRow, Query, RequestRow, Rows,
    ScheduledRow, SeatView, TailView, Versioned,
};
use laneway_core::{Bytes, EventId, Key, Result, Seat, Shard, StoreError};

use super::codec::keys::{self, Single};
use super::codec::{Filed, Numbered, Outgoing, Stored, Value, Waiting, load};
use super::dedup::evicted_ever;
use super::job_ends::alive_until;
use super::read::versioned;
use super::seize::progress;
use super::state::look_at_all;
use super::{Now, Table, Tail, View, export, gate};

/// How many ends of jobs are looked at in one go at least, and about how many in one call at most.
const ENDS_AT_ONCE: usize = 64;
const ENDS_EXAMINED_MAX: usize = 1_024;

/// Reads one list.
pub(crate) fn query<S: View>(state: &S, now: Now, query: &Query) -> Result<Rows> {
    Ok(match query {
        Query::Streams => Rows::Streams(state.streams().into_iter().cloned().collect()),
        Query::Seats(shard) => Rows::Seats(gate::shard(state, *shard)?.clone(), seats(state, *shard)),
        Query::Lane(shard, key) => Rows::Lane(lane(state, *shard, key)?),
        Query::Tails(shard, after, limit) => Rows::Tails(tails(state, *shard, after.as_ref(), *limit)?),
        Query::Dead(seat, after, limit) => Rows::Dead(dead(state, *seat, *after, *limit)?),
        Query::Endings(seat, after, limit) => Rows::Endings(endings(state, *seat, *after, *limit)?),
        Query::Requests(seat, after, limit) => Rows::Requests(requests(state, *seat, *after, *limit)?),
        Query::Outbox(seat, after, limit) => Rows::Outbox(outbox(state, *seat, *after, *limit)?),
        Query::States(seat, after, limit) => Rows::States(states(state, *seat, after.as_ref(), *limit)?),
        Query::Ended(shard, after, limit) => Rows::Ended(ended(state, now, *shard, *after, *limit)?),
        Query::Scheduled(shard, after, limit) => Rows::Scheduled(scheduled(state, *shard, *after, *limit)?),
        Query::Urgent(shard, after, limit) => Rows::Urgent(urgent(state, *shard, *after, *limit)?),
        Query::Counts(shard) => {
            Rows::Counts(counts(state, *shard, |table, prefix| state.count(table, prefix))?)
        }
        Query::Store => Rows::Store(export::store(state, now)?),
        Query::Events(shard, after, limit) => Rows::Events(export::events(state, *shard, *after, *limit)?),
        Query::Objects(shard, after, limit) => {
            Rows::Objects(export::objects(state, *shard, after.as_ref(), *limit)?)
        }
        Query::Dedup(shard, after, limit) => {
            Rows::Dedup(export::dedup(state, *shard, after.as_ref(), *limit)?)
        }
        Query::Sources(shard, after, limit) => {
            Rows::Sources(export::sources(state, *shard, after.as_ref(), *limit)?)
        }
        Query::Tickets(shard, after, limit) => Rows::Tickets(export::tickets(state, *shard, *after, *limit)?),
        Query::Ends(shard, after, limit) => Rows::Ends(export::ends(state, now, *shard, *after, *limit)?),
        Query::Sided(seat, after, limit) => Rows::Sided(export::sided(state, *seat, *after, *limit)?),
        Query::Tokens(seat, after, limit) => Rows::Tokens(export::tokens(state, *seat, *after, *limit)?),
    })
}

/// Rows by the number that ends their key, after this number.
fn numbered<S: View>(
    state: &S,
    table: Table,
    prefix: &[u8],
    after: u64,
    limit: usize,
) -> Result<Vec<(u64, Bytes)>> {
    let after = [prefix, &after.to_be_bytes()[..]].concat();
    let rows = state.scan(table, prefix, Some(&after), limit.min(PAGE_MAX))?;
    rows.into_iter().map(|(key, row)| Ok((keys::last_number(&key)?, row))).collect()
}

fn seats<S: View>(state: &S, shard: Shard) -> Vec<SeatView> {
    let seats = state.seats(shard).into_iter().map(|(processor, stored)| SeatView {
        processor,
        progress: progress(stored, stored.head.clean),
        request_no: stored.head.request_no,
    });
    seats.collect()
}

fn lane<S: View>(state: &S, shard: Shard, key: &Key) -> Result<Option<TailView>> {
    gate::shard(state, shard)?;
    state.tail(shard, key)?.map(|tail| tail_view(state, shard, key, tail)).transpose()
}

fn tails<S: View>(state: &S, shard: Shard, after: Option<&Key>, limit: usize) -> Result<Vec<LaneTail>> {
    gate::shard(state, shard)?;
    look_at_all(state.tails(shard, after, limit.min(PAGE_MAX))?, |(key, tail)| {
        let tail = tail_view(state, shard, &key, tail)?;
        Ok(LaneTail { key, tail })
    })
}

fn tail_view<S: View>(state: &S, shard: Shard, key: &Key, tail: Tail) -> Result<TailView> {
    let object = load::<Value>(state, Table::Object, &keys::object(shard, key))?.and_then(versioned);
    let Tail { id, seq, generation, incarnation, deleted } = tail;
    Ok(TailView { id, seq, generation, incarnation, deleted, object })
}

fn dead<S: View>(state: &S, seat: Seat, after: EventId, limit: usize) -> Result<Vec<DeadLetter>> {
    gate::seat(state, seat)?;
    let rows = numbered(state, Table::Dead, &keys::seat(seat), after.0, limit)?;
    rows.into_iter().map(|(_, row)| DeadLetter::from_row(row)).collect()
}

fn endings<S: View>(state: &S, seat: Seat, after: EventId, limit: usize) -> Result<Vec<Ending>> {
    let life = gate::seat(state, seat)?.head.incarnation;
    let rows = numbered(state, Table::Ending, &keys::life(seat, life), after.0, limit)?;
    rows.into_iter().map(|(_, row)| Ending::from_row(row)).collect()
}

fn requests<S: View>(state: &S, seat: Seat, after: u64, limit: usize) -> Result<Vec<RequestRow>> {
    gate::seat(state, seat)?;
    let rows = numbered(state, Table::Request, &keys::seat(seat), after, limit)?;
    let requests = rows.into_iter().map(|(number, row)| {
        let Filed { token, op } = Filed::from_row(row)?;
        Ok(RequestRow { number, token, op })
    });
    requests.collect()
}

fn outbox_row(number: u64, row: Bytes) -> Result<OutboxRow> {
    let Outgoing { incarnation, adoptions, emit } = Outgoing::from_row(row)?;
    Ok(OutboxRow { number, incarnation, adoptions, emit })
}

fn outbox<S: View>(state: &S, seat: Seat, after: u64, limit: usize) -> Result<Vec<OutboxRow>> {
    gate::seat(state, seat)?;
    let rows = numbered(state, Table::Outbox, &keys::seat(seat), after, limit)?;
    rows.into_iter().map(|(number, row)| outbox_row(number, row)).collect()
}

fn states<S: View>(
    state: &S,
    seat: Seat,
    after: Option<&Key>,
    limit: usize,
) -> Result<Vec<(Key, Versioned)>> {
    let life = gate::seat(state, seat)?.head.states_life;
    let after = after.map(|key| keys::state(seat, life, key));
    let rows =
        state.scan(Table::LaneState, &keys::life(seat, life), after.as_deref(), limit.min(PAGE_MAX))?;
    let states = rows.into_iter().map(|(key, row)| {
        let value = versioned(Value::from_row(row)?);
        let what = || StoreError::Corrupt { what: format!("state of seat {seat} without a value") };
        Ok((keys::state_of(&key)?, value.ok_or_else(what)?))
    });
    states.collect()
}

/// Ends that can still be read. Those that cannot are passed over, but only so many in one call.
fn ended<S: View>(state: &S, now: Now, shard: Shard, after: EventId, limit: usize) -> Result<EndedPage> {
    gate::shard(state, shard)?;
    let limit = limit.min(PAGE_MAX);
    let (mut ends, mut after, mut examined) = (Vec::new(), after, 0);
    while ends.len() < limit && examined < ENDS_EXAMINED_MAX {
        let page = state.job_ends(shard, after, limit.max(ENDS_AT_ONCE))?;
        let Some(last) = page.last() else { return Ok(EndedPage { ends, next: None }) };
        after = last.end.id;
        examined += page.len();
        let readable =
            look_at_all(page, |end| Ok(alive_until(state, now, shard, &end)?.is_some().then_some(end.end)))?;
        ends.extend(readable.into_iter().flatten());
    }
    if ends.len() < limit {
        return Ok(EndedPage { ends, next: Some(after) });
    }
    ends.truncate(limit);
    let next = ends.last().map(|end: &JobEnd| end.id);
    Ok(EndedPage { ends, next })
}

fn scheduled<S: View>(state: &S, shard: Shard, after: u64, limit: usize) -> Result<Vec<ScheduledRow>> {
    gate::shard(state, shard)?;
    let rows = numbered(state, Table::Schedule, &keys::shard(shard), after, limit)?;
    let scheduled = rows.into_iter().map(|(ticket, row)| {
        let Waiting { due, accepted_at, draft } = Waiting::from_row(row)?;
        Ok(ScheduledRow { ticket, due, accepted_at, draft })
    });
    scheduled.collect()
}

fn urgent<S: View>(state: &S, shard: Shard, after: EventId, limit: usize) -> Result<Vec<(EventId, u8)>> {
    gate::shard(state, shard)?;
    let rows = numbered(state, Table::Urgent, &keys::shard(shard), after.0, limit)?;
    let urgent = rows.into_iter().map(|(id, row)| match row[..] {
        [priority] => Ok((EventId(id), priority)),
        _ => Err(StoreError::Corrupt { what: format!("priority of event {id} in shard {shard}") }),
    });
    urgent.collect()
}

/// The tables of which a shard counts rows, with their prefixes.
pub(crate) fn counted<S: View>(state: &S, shard: Shard) -> Vec<(Table, Vec<u8>)> {
    let mut counted = vec![(Table::Schedule, keys::shard(shard).to_vec())];
    for (processor, stored) in state.seats(shard) {
        let seat = Seat { shard, processor };
        counted.push((Table::Lane, keys::life(seat, stored.head.incarnation).to_vec()));
        counted.push((Table::Dead, keys::seat(seat).to_vec()));
        counted.push((Table::Request, keys::seat(seat).to_vec()));
    }
    counted
}

/// Counts of one shard; rows are counted by `count`.
pub(crate) fn counts<S: View>(
    state: &S,
    shard: Shard,
    count: impl Fn(Table, &[u8]) -> Result<u64>,
) -> Result<Counts> {
    let info = gate::shard(state, shard)?;
    let mut seats = Vec::new();
    for (processor, stored) in state.seats(shard) {
        let (seat, head) = (Seat { shard, processor }, &stored.head);
        let lanes = count(Table::Lane, &keys::life(seat, head.incarnation))?;
        let dead = count(Table::Dead, &keys::seat(seat))?;
        let emits = head.emitted - head.forwarded;
        let requests = count(Table::Request, &keys::seat(seat))?;
        seats.push((processor, [lanes, dead, emits, requests]));
    }
    let expired = load::<Numbered>(state, Table::Store, &Single::Expired.of(shard))?;
    Ok(Counts {
        scheduled: count(Table::Schedule, &keys::shard(shard))?,
        seats,
        adoptions: info.adoptions,
        expired: expired.map_or(0, |expired| expired.0),
        dedup_evicted: evicted_ever(state, shard)?,
    })
}
