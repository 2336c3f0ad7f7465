//! Reading a page: look at the shard, read its events without the lock, complete the page under it again.
//!
//! Fresh events are in memory. When a page needs files, they are read on a thread that may wait for the disk.

use laneway_core::limits::{PAGE_BYTES_MAX, PAGE_MAX};
use laneway_core::store::{Entry, Page, Read, ReadFrom};
use laneway_core::{Event, EventId, Mode, Result, Shard, StoreError};

use super::state::{Archive, Found, PlainPage, Reach, Seen, from_files, in_memory};
use super::store::Shared;
use crate::machine::{self, View, look_at_all};

/// How many events that are kept aside are read in one round: a page may be full with a few large ones. When events are read
/// in a row, each round reads twice as many as the one before.
const KEPT_AT_ONCE: usize = 16;

/// What one look at the state says about a page.
struct Plan {
    head: EventId,
    mode: Mode,
    /// The first id to look for.
    first: EventId,
    /// Events up to this one are kept aside.
    kept: EventId,
}

/// Reads a page of events.
pub(super) async fn read(shared: &Shared, read: Read) -> Result<Page> {
    if let Some(page) = shared.published.plain_page(&read)
        && let Some(page) = read_plain(shared, &read, page).await?
    {
        return Ok(page);
    }
    let (plan, events) = look(shared, &read).await?;
    // A state, or a winner in latest mode, may be of a group that is not durable yet: then the answer waits.
    // The rest is of durable events or only a hint, and waiting would cost every reader a sync.
    if read.states || plan.mode == Mode::Latest {
        let complete = |state: &Seen<'_>, now| {
            let entries = events.iter().cloned();
            let entries = entries.map(|event| machine::read::entry(state, read.shard, plan.mode, event));
            machine::read::page_rest(state, now, &read, entries.collect::<Result<_>>()?)
        };
        return Ok(Page { head: plan.head, ..shared.observe(complete).await? });
    }
    let rest = |state: &Seen<'_>, now| machine::read::page_rest(state, now, &read, Vec::new());
    let (rest, _) = shared.look(rest).await?;
    Ok(Page { head: plan.head, entries: events.into_iter().map(Entry::Event).collect(), ..rest? })
}

/// Events as they are stored, in order; what is trimmed is passed over.
pub(super) async fn events(
    shared: &Shared,
    shard: Shard,
    after: EventId,
    limit: usize,
) -> Result<Vec<Event>> {
    loop {
        let trimmed = shared.state.read().shard(shard).ok_or_else(|| gone(shard))?.trimmed;
        let from = ReadFrom::After(after.max(trimmed));
        let read = Read { shard, from, limit, bytes: PAGE_BYTES_MAX, processor: None, states: false };
        match look(shared, &read).await {
            Err(StoreError::Trimmed { .. }) => {}
            answer => return answer.map(|(_, events)| events),
        }
    }
}

/// Reads fresh events of a plain queue: nobody waits for the state's lock here. `None` if some of them were trimmed or
/// kept aside meanwhile.
pub(super) async fn read_plain(shared: &Shared, read: &Read, page: PlainPage) -> Result<Option<Page>> {
    let ReadFrom::After(after) = read.from else { return Err(gone(read.shard)) };
    let events =
        if after < page.head { collect(shared, read, after.next(), page.head).await? } else { Vec::new() };
    if shared.published.plain_page(read).is_none() {
        return Ok(None);
    }
    let entries = events.into_iter().map(Entry::Event).collect();
    Ok(Some(Page {
        entries,
        head: page.head,
        request_no: page.request_no,
        next_due: None,
        states: Vec::new(),
    }))
}

/// Reads the events of a page. A trim may overtake the read: then what is left is no page, and it says so. When some were
/// kept aside meanwhile, it looks again.
async fn look(shared: &Shared, read: &Read) -> Result<(Plan, Vec<Event>)> {
    loop {
        let plan = plan(shared, read)?;
        let events = read_planned(shared, read, &plan).await?;
        let state = shared.state.read();
        machine::read::check(&*state, read)?;
        if state.kept_of(read.shard).events == plan.kept {
            return Ok((plan, events));
        }
    }
}

async fn read_planned(shared: &Shared, read: &Read, plan: &Plan) -> Result<Vec<Event>> {
    if plan.first > plan.head || read.limit == 0 {
        return Ok(Vec::new());
    }
    if plan.first > plan.kept {
        return collect(shared, read, plan.first, plan.head).await;
    }
    let mut page = PageEvents::new(read);
    kept(shared, read, plan).await?.into_iter().for_each(|event| page.push(event));
    if !page.is_full() && plan.kept < plan.head {
        let in_log = collect(shared, read, plan.kept.next(), plan.head).await?;
        in_log.into_iter().for_each(|event| page.push(event));
    }
    Ok(page.events)
}

fn plan(shared: &Shared, read: &Read) -> Result<Plan> {
    let state = shared.state.read();
    let info = machine::read::check(&*state, read)?;
    let first = match &read.from {
        ReadFrom::After(id) => id.next(),
        ReadFrom::Ids(ids) => ids.first().copied().unwrap_or(EventId(u64::MAX)),
    };
    let stream = state.stream(read.shard.stream);
    let mode = stream.map(|stream| stream.settings.mode).ok_or_else(|| gone(read.shard))?;
    let head = shared.published.head(read.shard).ok_or_else(|| gone(read.shard))?;
    let kept = state.kept_of(read.shard).events;
    Ok(Plan { head, mode, first: first.max(info.trimmed.next()), kept })
}

/// Reads those events that a page asks for and that are kept aside. Rows behind the plan's last one may be there already
/// while their segment is being emptied; their events are still read from the log.
async fn kept(shared: &Shared, read: &Read, plan: &Plan) -> Result<Vec<Event>> {
    let Plan { first, kept: through, .. } = *plan;
    let look = |state: &Seen<'_>, _| {
        let mut page = PageEvents::new(read);
        match &read.from {
            ReadFrom::After(_) => {
                let (mut next, mut count) = (first, KEPT_AT_ONCE);
                while !page.is_full() && next <= through {
                    let events = machine::kept::events(state, read.shard, next, count)?;
                    let Some(last) = events.last() else { break };
                    (next, count) = (last.id.next(), 2 * count);
                    let events = events.into_iter().filter(|event| event.id <= through);
                    events.for_each(|event| page.push(event));
                }
            }
            ReadFrom::Ids(ids) => return kept_by_id(state, read, ids, first),
        }
        Ok(page.events)
    };
    shared.observe(look).await
}

/// Reads those of these events that are kept aside, in pieces: a page of large events is full after a few.
pub(super) fn kept_by_id(
    state: &Seen<'_>,
    read: &Read,
    ids: &[EventId],
    first: EventId,
) -> Result<Vec<Event>> {
    let through = state.state.kept_of(read.shard).events;
    let ids: Vec<EventId> = ids.iter().copied().filter(|id| (first..=through).contains(id)).collect();
    let mut page = PageEvents::new(read);
    for piece in ids.chunks(KEPT_AT_ONCE) {
        if page.is_full() {
            break;
        }
        let events = look_at_all(piece, |id| state.event(read.shard, *id))?;
        events.into_iter().flatten().for_each(|event| page.push(event));
    }
    Ok(page.events)
}

fn gone(shard: Shard) -> StoreError {
    StoreError::NotFound { what: format!("shard {shard}") }
}

/// Reads the events that a page asks for, from memory if they all are there.
async fn collect(shared: &Shared, read: &Read, first: EventId, head: EventId) -> Result<Vec<Event>> {
    let from_memory = in_memory(pick(&shared.archive, read, first, head, Reach::Memory))?;
    let events = match from_memory {
        Some(events) => events,
        None => {
            let (archive, read) = (shared.archive.clone(), read.clone());
            let work = move || from_files(pick(&archive, &read, first, head, Reach::Files));
            shared.read_files(work).await?
        }
    };
    shared.recent_marks.put(read.shard, &events);
    Ok(events)
}

fn pick(archive: &Archive, read: &Read, first: EventId, head: EventId, reach: Reach) -> Found<Vec<Event>> {
    archive.settled(|| {
        let mut page = PageEvents::new(read);
        let mut walk = archive.events(read.shard, first, reach);
        match &read.from {
            ReadFrom::After(_) => {
                while !page.is_full()
                    && let Some(event) = walk.next()?.filter(|event| event.id <= head)
                {
                    page.push(event);
                }
            }
            ReadFrom::Ids(ids) => {
                for id in ids.iter().filter(|id| **id >= first && **id <= head) {
                    if page.is_full() {
                        break;
                    }
                    walk.seek(*id);
                    match walk.next()? {
                        Some(event) if event.id == *id => page.push(event),
                        // The next one that there is may be asked for too.
                        Some(event) => walk.back_to(event.id),
                        None => break,
                    }
                }
            }
        }
        Ok(page.events)
    })
}

/// The events of a page within its bounds; the first one always fits.
struct PageEvents {
    events: Vec<Event>,
    bytes: usize,
    limit: usize,
    bytes_max: usize,
    over: bool,
}

impl PageEvents {
    fn new(read: &Read) -> Self {
        let (limit, bytes_max) = (read.limit.min(PAGE_MAX), read.bytes.min(PAGE_BYTES_MAX));
        Self { events: Vec::new(), bytes: 0, limit, bytes_max, over: false }
    }

    fn is_full(&self) -> bool {
        self.over || self.events.len() >= self.limit
    }

    fn push(&mut self, event: Event) {
        if self.is_full() {
            return;
        }
        self.bytes += event.size();
        self.over = !self.events.is_empty() && self.bytes > self.bytes_max;
        if !self.over {
            self.events.push(event);
        }
    }
}
