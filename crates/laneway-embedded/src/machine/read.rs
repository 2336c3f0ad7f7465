//! Read: what both stores need to answer a page. How events are found on disk is not here.

use std::collections::BTreeMap;

use laneway_core::adoption::next_given;
use laneway_core::limits::{PAGE_BYTES_MAX, PAGE_MAX};
use laneway_core::store::{Entry, Page, Read, ReadFrom, Versioned};
use laneway_core::{Event, EventId, Key, Mode, Refusal, Result, Seat, Shard, ShardInfo, StoreError};

use super::codec::{Value, keys, load};
use super::{Now, Table, View, gate, ids, schedule};

/// Reads a page, one event at a time.
pub(crate) fn read<S: View>(state: &S, now: Now, read: &Read) -> Result<Page> {
    let info = check(state, read)?;
    let mode = gate::stream(state, read.shard.stream)?.settings.mode;
    let (limit, bytes_max) = (read.limit.min(PAGE_MAX), read.bytes.min(PAGE_BYTES_MAX));
    let (mut entries, mut bytes) = (Vec::new(), 0);
    let mut candidates = Candidates::new(info, &read.from);
    while entries.len() < limit
        && let Some(id) = candidates.next()
    {
        let Some(event) = state.event(read.shard, id)? else { continue };
        bytes += event.size();
        if !entries.is_empty() && bytes > bytes_max {
            break;
        }
        entries.push(entry(state, read.shard, mode, event)?);
    }
    page_rest(state, now, read, entries)
}

/// What must hold before any event is looked for; answers the shard.
pub(crate) fn check<'a, S: View>(state: &'a S, read: &Read) -> Result<&'a ShardInfo> {
    let shard = read.shard;
    let info = gate::shard(state, shard)?;
    if let Some(processor) = read.processor {
        gate::seat(state, Seat { shard, processor })?;
    } else if read.states {
        return Err(Refusal::new("states", "true", "false without a processor").into());
    }
    let below = match &read.from {
        ReadFrom::After(id) => *id < info.trimmed,
        ReadFrom::Ids(ids) => {
            Refusal::check_max("ids", ids.len(), PAGE_MAX)?;
            if !ids.is_sorted() {
                return Err(Refusal::new("ids", "not in order", "ascending").into());
            }
            ids.first().is_some_and(|id| id.0 > 0 && *id <= info.trimmed)
        }
    };
    if below {
        return Err(StoreError::Trimmed { shard, first: next_given(&info.gaps, info.trimmed) });
    }
    Ok(info)
}

/// An event as a page shows it: in latest streams only the newest of its lane shows itself.
pub(crate) fn entry<S: View>(state: &S, shard: Shard, mode: Mode, event: Event) -> Result<Entry> {
    if mode == Mode::Latest
        && let Some(key) = &event.key
        && let Some(tail) = state.tail(shard, key)?
        && tail.id > event.id
    {
        return Ok(Entry::Superseded { id: event.id, winner: tail.id, key: key.clone(), job: event.job });
    }
    Ok(Entry::Event(event))
}

/// The page around its entries: head, request number, next due, states. It ends where the states get too large.
pub(crate) fn page_rest<S: View>(state: &S, now: Now, read: &Read, mut entries: Vec<Entry>) -> Result<Page> {
    let head = gate::shard(state, read.shard)?.head;
    let (mut request_no, mut states) = (0, Vec::new());
    if let Some(processor) = read.processor {
        let seat = Seat { shard: read.shard, processor };
        request_no = gate::seat(state, seat)?.head.request_no;
        if read.states {
            states = states_of(state, seat, read.bytes.min(PAGE_BYTES_MAX), &mut entries)?;
        }
    }
    Ok(Page { entries, head, request_no, next_due: schedule::next_due(state, now, read.shard)?, states })
}

/// The states of these entries' keys, by key. Entries whose states are more than so many bytes are taken away, but not the first.
fn states_of<S: View>(
    state: &S,
    seat: Seat,
    bytes_max: usize,
    entries: &mut Vec<Entry>,
) -> Result<Vec<(Key, Versioned)>> {
    let life = gate::seat(state, seat)?.head.states_life;
    let (mut states, mut bytes) = (BTreeMap::new(), 0);
    let mut fitting = 0;
    for key in entries.iter().map(key_of) {
        if let Some(key) = key
            && !states.contains_key(key)
        {
            let found = state_of(state, seat, life, key)?;
            bytes += found.as_ref().map_or(0, |found| found.bytes.len());
            if fitting > 0 && bytes > bytes_max {
                break;
            }
            states.insert(key.clone(), found);
        }
        fitting += 1;
    }
    entries.truncate(fitting);
    Ok(states.into_iter().filter_map(|(key, found)| Some((key, found?))).collect())
}

/// The state of one lane.
pub(super) fn state_of<S: View>(state: &S, seat: Seat, life: u32, key: &Key) -> Result<Option<Versioned>> {
    let value = load::<Value>(state, Table::LaneState, &keys::state(seat, life, key))?;
    Ok(value.and_then(versioned))
}

/// A value that is there.
pub(super) fn versioned(value: Value) -> Option<Versioned> {
    value.bytes.map(|bytes| Versioned { version: value.version, bytes })
}

fn key_of(entry: &Entry) -> Option<&Key> {
    match entry {
        Entry::Event(event) => event.key.as_ref(),
        Entry::Superseded { key, .. } => Some(key),
    }
}

/// The ids that a read asks for, without those that were never given.
enum Candidates<'a> {
    After(&'a ShardInfo, EventId),
    Ids(&'a ShardInfo, std::slice::Iter<'a, EventId>),
}

impl<'a> Candidates<'a> {
    fn new(info: &'a ShardInfo, from: &'a ReadFrom) -> Self {
        match from {
            ReadFrom::After(id) => Self::After(info, *id),
            ReadFrom::Ids(ids) => Self::Ids(info, ids.iter()),
        }
    }

    fn next(&mut self) -> Option<EventId> {
        match self {
            Self::After(info, last) => {
                *last = next_given(&info.gaps, *last);
                (*last <= info.head).then_some(*last)
            }
            Self::Ids(info, ids) => {
                ids.find(|id| id.0 > 0 && **id <= info.head && !ids::in_gap(info, **id)).copied()
            }
        }
    }
}
