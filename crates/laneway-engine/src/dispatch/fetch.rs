//! What a seat asks of its store besides pages and commits: lanes that come back into memory, and what a request is
//! about. Reads only.

use std::time::Duration;

use laneway_core::limits::PAGE_BYTES_MAX;
use laneway_core::store::{
    DeadLetter, Entry, LaneSelect, LaneView, Lanes, Page, Query, Read, ReadFrom, RequestOp, RequestRow, Rows,
};
use laneway_core::{
    Block, BlockKind, Due, EventId, LaneName, LaneRecord, Result, Seat as SeatId, Store, StoreError, Terminal,
};

use super::carry::Ground;
use super::claims::claimed_events;
use super::loading::SIDING_CHUNK;
use super::turns::is_due;
use crate::commit::{Prepared, prepare};
use crate::handler::{ClaimToken, LaneAnswer, decode_answer};
use crate::lane::name_of;
use crate::service::Now;

/// Lanes looked at in one go.
const DUE_MAX: usize = 256;
/// How far ahead the next due lane is looked for; beyond it, it is looked for again.
const DUE_WITHIN: Duration = Duration::from_secs(24 * 3_600);

/// Parked lanes that run again when a halt ends; the others need a resume of their own.
const PARKED_MAX: usize = 1_000;

/// Lanes that come back into memory.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) lanes: Vec<(LaneView, Page)>,
    pub(crate) wanted: Wanted,
    /// When to look for due lanes again.
    pub(crate) next_due: Option<Due>,
}

/// Why lanes come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    ByName,
    /// Their time has come.
    ByTime,
}

/// A request, with what it is about.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) row: RequestRow,
    /// The record of the lane it names, or of the event it names.
    pub(crate) lane: Option<LaneView>,
    /// The event it names, if it is still in the log.
    pub(crate) event: Option<Entry>,
    /// The first events of the lane's siding.
    pub(crate) siding: Page,
    /// Dead letters it may be about, by id.
    pub(crate) dead: Vec<DeadLetter>,
    /// Whether the event it names is in a siding, at whatever place.
    pub(crate) sided: bool,
    /// The last event of the lane it names.
    pub(crate) last_of_lane: Option<EventId>,
    /// Parked lanes, for the end of a halt.
    pub(crate) parked: Vec<LaneName>,
    /// How the event it names has ended, other than done.
    pub(crate) ended: Option<Terminal>,
    /// The claim it names.
    pub(crate) claim: Option<ClaimToken>,
    /// The answer of a remote worker, for a claim that runs here.
    pub(crate) answer: Option<LaneAnswer>,
    /// The same, checked, for a claim that an owner before has written.
    pub(crate) prepared: Option<Prepared>,
}

impl Wish {
    fn new(row: RequestRow) -> Self {
        Self {
            row,
            lane: None,
            event: None,
            siding: no_page(),
            dead: Vec::new(),
            sided: false,
            last_of_lane: None,
            parked: Vec::new(),
            ended: None,
            claim: None,
            answer: None,
            prepared: None,
        }
    }
}

fn no_page() -> Page {
    Page { entries: Vec::new(), head: EventId(0), request_no: 0, next_due: None, states: Vec::new() }
}

/// The view of a lane that the store knows nothing of.
pub(crate) fn plain(lane: LaneName) -> LaneView {
    LaneView { record: LaneRecord::new(lane), state: None, siding: Vec::new() }
}

/// Loads these lanes with the beginning of their sidings.
pub(crate) async fn load_named(store: &dyn Store, seat: SeatId, names: Vec<LaneName>) -> Result<Loaded> {
    load_up_to(store, seat, names, SIDING_CHUNK).await
}

/// The same with so many ids of each siding.
async fn load_up_to(store: &dyn Store, seat: SeatId, names: Vec<LaneName>, siding: usize) -> Result<Loaded> {
    let select = LaneSelect::Names(names.clone());
    let mut views = store.lanes(Lanes { seat, select, siding }).await?;
    // A lane without record and state has an empty siding: it is plain.
    for name in names {
        if !views.iter().any(|view| view.record.lane == name) {
            views.push(plain(name));
        }
    }
    let mut lanes = Vec::with_capacity(views.len());
    for view in views {
        let page = events(store, seat, view.siding.clone()).await?;
        lanes.push((view, page));
    }
    Ok(Loaded { lanes, wanted: Wanted::ByName, next_due: None })
}

/// Loads the lanes whose time has come, and says when the next one's comes.
pub(crate) async fn load_due(store: &dyn Store, seat: SeatId, now: Now) -> Result<Loaded> {
    let select = LaneSelect::Due { within: DUE_WITHIN, limit: DUE_MAX };
    let views = store.lanes(Lanes { seat, select, siding: SIDING_CHUNK }).await?;
    let due_of = |view: &LaneView| view.record.block.as_ref().and_then(Block::due);
    let next_due = views.iter().filter_map(due_of).find(|due| !is_due(*due, now));
    let all_due = views.len() == DUE_MAX && next_due.is_none();
    let mut lanes = Vec::new();
    for view in views.into_iter().filter(|view| due_of(view).is_some_and(|due| is_due(due, now))) {
        let page = events(store, seat, view.siding.clone()).await?;
        lanes.push((view, page));
    }
    // More of them are due than were looked at: again as soon as these have left the list.
    let again = all_due.then_some(Due::Steady(now.steady.after(Duration::from_millis(10))));
    Ok(Loaded { lanes, wanted: Wanted::ByTime, next_due: next_due.or(again) })
}

/// Events by their ids, all of them, however many pages it takes.
async fn events(store: &dyn Store, seat: SeatId, mut ids: Vec<EventId>) -> Result<Page> {
    let mut whole = no_page();
    while !ids.is_empty() {
        let read = Read {
            shard: seat.shard,
            from: ReadFrom::Ids(ids.clone()),
            limit: ids.len(),
            bytes: PAGE_BYTES_MAX,
            processor: None,
            states: false,
        };
        let page = store.read(read).await?;
        let Some(last) = page.entries.last().map(Entry::id) else { break };
        ids.retain(|id| *id > last);
        whole.entries.extend(page.entries);
    }
    Ok(whole)
}

/// Looks up what a request is about.
pub(crate) async fn look_up_wish(ground: &Ground, seat: SeatId, row: RequestRow) -> Result<Wish> {
    let store = &*ground.store;
    let mut wish = Wish::new(row);
    let name = match &wish.row.op {
        RequestOp::Cancel { id } => {
            let id = *id;
            look_up_event(store, seat, id, &mut wish).await?;
            wish.event.as_ref().map(|entry| match entry {
                Entry::Event(event) => name_of(event),
                Entry::Superseded { key, .. } => LaneName::Key(key.clone()),
            })
        }
        RequestOp::Pause { lane, .. } | RequestOp::Resume { lane } => lane.clone(),
        RequestOp::Retry { lane, .. } | RequestOp::Skip { lane, .. } => Some(lane.clone()),
        RequestOp::Redrive { lane, .. } | RequestOp::Discard { lane, .. } => Some(lane.clone()),
        RequestOp::Settle { claim, .. } | RequestOp::Extend { claim, .. } => {
            let text = std::str::from_utf8(claim).ok();
            wish.claim =
                text.and_then(|text| text.parse().ok()).filter(|token: &ClaimToken| token.seat == seat);
            wish.claim.as_ref().map(|token| token.lane.clone())
        }
        RequestOp::Reset(_) => None,
    };
    if let RequestOp::Resume { lane: None } = wish.row.op {
        let select = LaneSelect::Blocked { kind: Some(BlockKind::Parked), after: None, limit: PARKED_MAX };
        let parked = store.lanes(Lanes { seat, select, siding: 0 }).await?;
        wish.parked = parked.into_iter().map(|view| view.record.lane).collect();
    }
    let Some(name) = name else { return Ok(wish) };
    if let RequestOp::Redrive { .. } | RequestOp::Discard { .. } = wish.row.op {
        wish.dead = dead_of(store, seat, &name).await?;
        if let LaneName::Key(key) = &name
            && let Rows::Lane(Some(tail)) = store.query(Query::Lane(seat.shard, key.clone())).await?
        {
            wish.last_of_lane = Some(tail.id);
        }
    }
    // A worker may have more of a lane than is loaded at a time.
    let claimed = wish.claim.as_ref().map_or(0, |token| token.events.len());
    let loaded = load_up_to(store, seat, vec![name], claimed.max(SIDING_CHUNK)).await?;
    if let Some((view, page)) = loaded.lanes.into_iter().next() {
        wish.siding = page;
        wish.lane = Some(view);
    }
    look_up_answer(ground, seat, &mut wish).await;
    Ok(wish)
}

async fn look_up_event(store: &dyn Store, seat: SeatId, id: EventId, wish: &mut Wish) -> Result<()> {
    wish.event = match events(store, seat, vec![id]).await {
        Ok(page) => page.entries.into_iter().next(),
        Err(StoreError::Trimmed { .. }) => None,
        Err(error) => return Err(error),
    };
    let before = EventId(id.0.saturating_sub(1));
    if let Rows::Sided(rows) = store.query(Query::Sided(seat, before, 1)).await? {
        wish.sided = rows.first().is_some_and(|(sided, _)| *sided == id);
    }
    if let Rows::Endings(rows) = store.query(Query::Endings(seat, before, 1)).await? {
        wish.ended = rows.first().filter(|ending| ending.id == id).map(|ending| ending.end);
    }
    Ok(())
}

/// The answer that a settle carries, and, for a claim that is written, checked against its events.
async fn look_up_answer(ground: &Ground, seat: SeatId, wish: &mut Wish) {
    let RequestOp::Settle { answer, .. } = &wish.row.op else { return };
    wish.answer = decode_answer(answer.clone());
    let (Some(token), Some(answer)) = (&wish.claim, &wish.answer) else { return };
    let written = wish.lane.as_ref().and_then(|view| view.record.block.as_ref());
    if matches!(written, Some(Block::Claimed(claim)) if claim.nonce == token.nonce)
        && let Some(events) = claimed_events(token, &wish.siding)
    {
        let (store, catalogue) = (&*ground.store, &ground.catalogue);
        let prepared = prepare(&ground.env, store, catalogue, seat.shard, &events, answer.clone()).await;
        wish.prepared = Some(prepared);
    }
}

/// The dead letters of a lane, by id.
async fn dead_of(store: &dyn Store, seat: SeatId, lane: &LaneName) -> Result<Vec<DeadLetter>> {
    let (mut found, mut after) = (Vec::new(), EventId(0));
    loop {
        let Rows::Dead(rows) = store.query(Query::Dead(seat, after, 1_000)).await? else { return Ok(found) };
        let Some(last) = rows.last() else { return Ok(found) };
        after = last.event.id;
        found.extend(rows.into_iter().filter(|dead| name_of(&dead.event) == *lane));
    }
}
