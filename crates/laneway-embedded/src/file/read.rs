//! Reading a page: find the place under the lock, walk the log without it, complete the page under it again.

use laneway_core::limits::{PAGE_BYTES_MAX, PAGE_MAX};
use laneway_core::store::{Entry, Page, Read, ReadFrom};
use laneway_core::{Event, EventId, Mode, Result, Shard, StoreError};
use parking_lot::Mutex;

use hashbrown::HashMap;

use super::log::Position;
use super::state::{FAR_IDS, FileState, PlainPage, Walk, events_from, resolve};
use super::store::Shared;
use crate::machine::{self, State};

/// How many readers of one shard are remembered: one place per processor, for most streams.
const HINTS_PER_SHARD: usize = 8;

/// Where the last readers of each shard stopped. Reading on from there needs no search.
#[derive(Debug, Default)]
pub(crate) struct Hints(Mutex<HashMap<Shard, Vec<(EventId, Position)>>>);

impl Hints {
    fn take(&self, shard: Shard, after: EventId) -> Option<Position> {
        let mut hints = self.0.lock();
        let places = hints.get_mut(&shard)?;
        let at = places.iter().position(|(id, _)| *id == after)?;
        Some(places.remove(at).1)
    }

    /// The place of the last one shortly before this id.
    pub(super) fn nearest(&self, shard: Shard, id: EventId) -> Option<Position> {
        let hints = self.0.lock();
        let before = hints.get(&shard)?.iter().filter(|(found, _)| *found <= id && id.0 - found.0 <= FAR_IDS);
        before.max_by_key(|(found, _)| *found).map(|(_, position)| *position)
    }

    pub(super) fn put(&self, shard: Shard, last: EventId, position: Position) {
        let mut hints = self.0.lock();
        let places = hints.entry(shard).or_default();
        if places.len() >= HINTS_PER_SHARD {
            places.remove(0);
        }
        places.push((last, position));
    }
}

/// What one look at the state says about a page.
struct Plan {
    head: EventId,
    mode: Mode,
    /// Where to look for the first id wanted; `None` if there is nothing to find.
    start: Option<Position>,
}

/// Reads a page of events.
pub(super) async fn read(shared: &Shared, read: Read) -> Result<Page> {
    if let Some(page) = shared.published.plain_page(&read) {
        return read_plain(shared, &read, page);
    }
    let (plan, events) = look(shared, &read, EventId(u64::MAX))?;
    let complete = |state: &FileState, now| {
        let entries =
            events.into_iter().map(|event| machine::read::entry(state, read.shard, plan.mode, event));
        let page = machine::read::page_rest(state, now, &read, entries.collect::<Result<_>>()?)?;
        Ok(Page { head: plan.head, ..page })
    };
    // A state, or a winner in latest mode, may be of a group that is not durable yet: then the answer waits.
    // The rest is of durable events or only a hint, and waiting would cost every reader a sync.
    if read.states || plan.mode == Mode::Latest {
        shared.observe(complete).await
    } else {
        complete(&shared.state.read(), shared.clock.now())
    }
}

/// Events as they are stored, in order; what is trimmed is passed over.
pub(super) fn events(shared: &Shared, shard: Shard, after: EventId, limit: usize) -> Result<Vec<Event>> {
    loop {
        let trimmed = shared.state.read().shard(shard).ok_or_else(|| gone(shard))?.trimmed;
        let from = ReadFrom::After(after.max(trimmed));
        let read = Read { shard, from, limit, bytes: PAGE_BYTES_MAX, processor: None, states: false };
        match look(shared, &read, EventId(u64::MAX)) {
            Err(StoreError::Trimmed { .. }) => {}
            answer => return answer.map(|(_, events)| events),
        }
    }
}

/// Reads fresh events of a plain queue: nobody waits for the state's lock here, except when a place must be
/// looked up.
pub(super) fn read_plain(shared: &Shared, read: &Read, page: PlainPage) -> Result<Page> {
    let ReadFrom::After(after) = read.from else { return Err(gone(read.shard)) };
    let mut start = None;
    if after < page.head && read.limit > 0 {
        start = shared.hints.take(read.shard, after);
    }
    let found = start.map(|start| collect(shared, read, start, page.head));
    let entries = match found {
        Some(Ok(events)) => events,
        None if after >= page.head || read.limit == 0 => Vec::new(),
        // More may have become durable since: the page stays what its head says.
        Some(Err(StoreError::Trimmed { .. })) | None => look(shared, read, page.head)?.1,
        Some(Err(error)) => return Err(error),
    };
    let entries = entries.into_iter().map(Entry::Event).collect();
    Ok(Page { entries, head: page.head, request_no: page.request_no, next_due: None, states: Vec::new() })
}

/// Plans and walks, at most up to an id. A trim may give back the segment under a walk or under a hint: then it
/// looks again.
fn look(shared: &Shared, read: &Read, last: EventId) -> Result<(Plan, Vec<Event>)> {
    loop {
        let plan = match plan(shared, read) {
            Err(StoreError::Trimmed { first: EventId(0), .. }) => continue,
            plan => plan?,
        };
        match plan.start.map(|start| collect(shared, read, start, plan.head.min(last))).transpose() {
            Err(StoreError::Trimmed { .. }) => {}
            events => return Ok((plan, events?.unwrap_or_default())),
        }
    }
}

fn first_wanted(read: &Read) -> Option<EventId> {
    match &read.from {
        ReadFrom::After(id) => Some(id.next()),
        ReadFrom::Ids(ids) => ids.first().copied(),
    }
}

fn plan(shared: &Shared, read: &Read) -> Result<Plan> {
    let state = shared.state.read();
    let info = machine::read::check(&*state, read)?;
    let first = first_wanted(read).map(|id| id.max(info.trimmed.next()));
    let stream = state.stream(read.shard.stream);
    let mode = stream.map(|stream| stream.settings.mode).ok_or_else(|| gone(read.shard))?;
    let head = shared.published.head(read.shard).ok_or_else(|| gone(read.shard))?;
    let Some(first) = first.filter(|first| *first <= head && read.limit > 0) else {
        return Ok(Plan { head, mode, start: None });
    };
    if let ReadFrom::After(after) = read.from
        && let Some(hint) = shared.hints.take(read.shard, after)
    {
        return Ok(Plan { head, mode, start: Some(hint) });
    }
    let Some(place) = state.contents.event(read.shard, first) else {
        return Ok(Plan { head, mode, start: None });
    };
    drop(state);
    Ok(Plan { head, mode, start: resolve(&shared.footers, place, read.shard, first)? })
}

fn gone(shard: Shard) -> StoreError {
    StoreError::NotFound { what: format!("shard {shard}") }
}

/// Walks the log and picks what was asked for.
fn collect(shared: &Shared, read: &Read, start: Position, head: EventId) -> Result<Vec<Event>> {
    let (limit, bytes_max) = (read.limit.min(PAGE_MAX), read.bytes.min(PAGE_BYTES_MAX));
    let (mut events, mut bytes): (Vec<Event>, usize) = (Vec::new(), 0);
    let mut stopped = None;
    let mut wanted = match &read.from {
        ReadFrom::After(after) => Wanted::After(*after),
        ReadFrom::Ids(ids) => Wanted::Ids(ids),
    };
    let how =
        if matches!(&read.from, ReadFrom::Ids(ids) if ids.len() == 1) { Walk::Near } else { Walk::Long };
    events_from(&shared.reader, start, read.shard, how, |event, position| {
        if event.id > head || wanted.is_over() {
            return true;
        }
        if !wanted.takes(event.id) {
            return false;
        }
        bytes += event.size();
        if !events.is_empty() && bytes > bytes_max {
            return true;
        }
        stopped = Some((event.id, position));
        events.push(event);
        events.len() >= limit
    })?;
    if let (ReadFrom::After(_), Some((last, position))) = (&read.from, stopped) {
        shared.hints.put(read.shard, last, position);
    }
    shared.recent_marks.put(read.shard, &events);
    Ok(events)
}

/// Which ids a walk picks.
enum Wanted<'a> {
    After(EventId),
    Ids(&'a [EventId]),
}

impl Wanted<'_> {
    fn takes(&mut self, id: EventId) -> bool {
        match self {
            Self::After(after) => id > *after,
            Self::Ids(ids) => {
                let passed = ids.partition_point(|wanted| *wanted < id);
                *ids = &ids[passed..];
                ids.first() == Some(&id)
            }
        }
    }

    fn is_over(&self) -> bool {
        matches!(self, Self::Ids([]))
    }
}
