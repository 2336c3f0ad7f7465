//! What a seat asks of its store besides pages and commits: lanes that come back into memory, and what a request is
//! about. Reads only.

use std::time::Duration;

use laneway_core::limits::PAGE_BYTES_MAX;
use laneway_core::store::{
    DeadLetter, Entry, LaneSelect, LaneView, Lanes, Page, Query, Read, ReadFrom, RedriveTo, RequestOp,
    RequestRow, Rows, TailView,
};
use laneway_core::{
    Block, BlockKind, Due, Event, EventId, LaneName, LaneRecord, Result, Seat as SeatId, Store, StoreError,
    Terminal,
};
use parking_lot::Mutex;

use super::carry::Ground;
use super::claims::claimed_events;
use super::dead_lanes::DeadLanes;
use super::fetch_dead::Letters;
use super::loading::SIDING_CHUNK;
use super::redrive::is_stale;
use super::turns::is_due;
use crate::commit::{Prepared, prepare};
use crate::handler::{ClaimToken, LaneAnswer, decode_answer};
use crate::lane::{name_of, size_of};
use crate::service::Now;

/// Lanes looked at in one go.
const DUE_MAX: usize = 256;
/// How far ahead the next due lane is looked for; what is due beyond it is found when it is looked for again.
const DUE_WITHIN: Duration = Duration::from_secs(24 * 3_600);
/// When it is looked again for lanes that are due and were not loaded.
const DUE_AGAIN: Duration = Duration::from_millis(10);

/// Bytes of events and dead letters that are read for one page of requests, give or take one request.
const LOOK_UP_BYTES: usize = PAGE_BYTES_MAX / 4;

/// Parked lanes that run again in one commit when a halt ends.
pub(super) const PARKED_MAX: usize = 1_000;

/// The beginning of a lane's siding.
#[derive(Debug)]
pub(crate) struct Siding {
    pub(crate) events: Page,
    /// Whether it goes on in the store.
    pub(crate) more: bool,
}

/// How much may be loaded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) events: usize,
    pub(crate) bytes: usize,
}

impl Room {
    const ALL: Self = Self { events: usize::MAX, bytes: usize::MAX };

    pub(crate) fn is_none(self) -> bool {
        self.events == 0 || self.bytes == 0
    }

    /// What is left beside this page.
    fn beside(self, page: &Page) -> Self {
        Self {
            events: self.events.saturating_sub(page.entries.len()),
            bytes: self.bytes.saturating_sub(bytes_of(page)),
        }
    }
}

/// Lanes that come back into memory.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) lanes: Vec<(LaneView, Siding)>,
    /// Those for which there was no room.
    pub(crate) left: Vec<LaneName>,
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
    /// It is the first with a higher number than this.
    pub(crate) fetched_after: u64,
    /// The record of the lane it names, or of the event it names.
    pub(crate) lane: Option<LaneView>,
    /// The event it names, if it is still in the log.
    pub(crate) event: Option<Entry>,
    /// The first events of the lane's siding.
    pub(crate) siding: Siding,
    /// Dead letters it may be about, by id.
    pub(crate) dead: Vec<DeadLetter>,
    /// Those up to this one have their payload; of the others only the place is known.
    pub(crate) whole_through: EventId,
    /// Whether the event it names is in a siding, at whatever place.
    pub(crate) sided: bool,
    /// Events up to this are gone from the log by retention.
    pub(crate) trimmed: EventId,
    /// The end of the lane it names, as producers see it.
    pub(crate) tail: Option<TailView>,
    /// Parked lanes, for the end of a halt.
    pub(crate) parked: Vec<LaneRecord>,
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
    pub(crate) fn new(row: RequestRow, fetched_after: u64) -> Self {
        Self {
            row,
            fetched_after,
            lane: None,
            event: None,
            siding: Siding { events: no_page(), more: false },
            dead: Vec::new(),
            whole_through: EventId(u64::MAX),
            sided: false,
            trimmed: EventId(0),
            tail: None,
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

/// Loads these lanes with the beginning of their sidings, as far as there is room.
pub(crate) async fn load_named(
    store: &dyn Store,
    seat: SeatId,
    names: Vec<LaneName>,
    room: Room,
) -> Result<Loaded> {
    load_up_to(store, seat, names, SIDING_CHUNK, room).await
}

/// The same with so many ids of each siding.
async fn load_up_to(
    store: &dyn Store,
    seat: SeatId,
    names: Vec<LaneName>,
    siding: usize,
    room: Room,
) -> Result<Loaded> {
    let select = LaneSelect::Names(names.clone());
    let mut views = store.lanes(Lanes { seat, select, siding, states: true }).await?;
    // A lane without record and state has an empty siding: it is plain.
    for name in names {
        if !views.iter().any(|view| view.record.lane == name) {
            views.push(plain(name));
        }
    }
    let (lanes, left) = with_sidings(store, seat, views, room).await?;
    Ok(Loaded { lanes, left, wanted: Wanted::ByName, next_due: None })
}

/// Loads the lanes whose time has come, as far as there is room, and says when the next one's comes.
pub(crate) async fn load_due(store: &dyn Store, seat: SeatId, now: Now, room: Room) -> Result<Loaded> {
    let select = LaneSelect::Due { within: DUE_WITHIN, limit: DUE_MAX };
    let views = store.lanes(Lanes { seat, select, siding: SIDING_CHUNK, states: true }).await?;
    let due_of = |view: &LaneView| view.record.block.as_ref().and_then(Block::due);
    let next_due = views.iter().filter_map(due_of).find(|due| !is_due(*due, now));
    let all_due = views.len() == DUE_MAX && next_due.is_none();
    let due = views.into_iter().filter(|view| due_of(view).is_some_and(|due| is_due(due, now))).collect();
    let (lanes, left) = with_sidings(store, seat, due, room).await?;
    // More of them are due than were loaded: again as soon as these have left the list.
    let again = (all_due || !left.is_empty()).then_some(DUE_AGAIN);
    let next = again.or(next_due.is_none().then_some(DUE_WITHIN / 2)).map(|wait| now.steady.after(wait));
    let next_due = next.map(Due::Steady).or(next_due);
    Ok(Loaded { lanes, left, wanted: Wanted::ByTime, next_due })
}

/// Reads the beginning of every siding as long as there is room, and at least of one. Answers which were left.
async fn with_sidings(
    store: &dyn Store,
    seat: SeatId,
    views: Vec<LaneView>,
    mut room: Room,
) -> Result<(Vec<(LaneView, Siding)>, Vec<LaneName>)> {
    let (mut lanes, mut left) = (Vec::with_capacity(views.len()), Vec::new());
    for mut view in views {
        if room.is_none() && !lanes.is_empty() {
            left.push(view.record.lane);
            continue;
        }
        let (events, unread) = events(store, seat, view.siding.clone(), room).await?;
        room = room.beside(&events);
        let more = view.siding.len() >= SIDING_CHUNK || unread > 0;
        view.siding.truncate(view.siding.len() - unread);
        lanes.push((view, Siding { events, more }));
    }
    Ok((lanes, left))
}

/// Events by their ids, however many pages it takes, as long as there is room; at least one page is read. Answers how many
/// of the last ones were not.
async fn events(store: &dyn Store, seat: SeatId, mut ids: Vec<EventId>, room: Room) -> Result<(Page, usize)> {
    let mut whole = no_page();
    while !ids.is_empty() {
        let left = room.beside(&whole);
        if left.is_none() && !whole.entries.is_empty() {
            break;
        }
        let read = Read {
            shard: seat.shard,
            from: ReadFrom::Ids(ids.clone()),
            limit: ids.len().min(left.events.max(1)),
            bytes: left.bytes.clamp(1, PAGE_BYTES_MAX),
            processor: None,
            states: false,
        };
        let page = match store.read(read).await {
            // Those before it are gone from the log, as if they had never been named.
            Err(StoreError::Trimmed { first, .. }) if ids[0] < first => {
                ids.retain(|id| *id >= first);
                continue;
            }
            page => page?,
        };
        // The log has none of them any more.
        let Some(last) = page.entries.last().map(Entry::id) else { return Ok((whole, 0)) };
        ids.retain(|id| *id > last);
        whole.entries.extend(page.entries);
    }
    Ok((whole, ids.len()))
}

fn bytes_of(page: &Page) -> usize {
    page.entries.iter().map(|entry| if let Entry::Event(event) = entry { size_of(event) } else { 0 }).sum()
}

/// Looks up what requests are about, in order. Stops once [`LOOK_UP_BYTES`] are read; the caller asks again for the rest.
pub(crate) async fn look_up_requests(
    ground: &Ground,
    seat: SeatId,
    rows: Vec<RequestRow>,
    after: u64,
    by_lane: &Mutex<DeadLanes>,
) -> Result<Vec<Wish>> {
    let (mut found, mut bytes, mut fetched_after) = (Vec::with_capacity(rows.len()), 0, after);
    for row in rows {
        let number = row.number;
        let request = look_up_request(ground, seat, row, fetched_after, by_lane).await?;
        bytes += bytes_of(&request.siding.events);
        bytes += request.dead.iter().map(|letter| size_of(&letter.event)).sum::<usize>();
        found.push(request);
        if bytes >= LOOK_UP_BYTES {
            break;
        }
        fetched_after = number;
    }
    Ok(found)
}

/// Looks up what a request is about.
async fn look_up_request(
    ground: &Ground,
    seat: SeatId,
    row: RequestRow,
    fetched_after: u64,
    by_lane: &Mutex<DeadLanes>,
) -> Result<Wish> {
    let store = &*ground.store;
    let mut wish = Wish::new(row, fetched_after);
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
        let parked = store.lanes(Lanes { seat, select, siding: 0, states: false }).await?;
        wish.parked = parked.into_iter().map(|view| view.record).collect();
    }
    let Some(name) = name else { return Ok(wish) };
    // A worker may have more of a lane than is loaded at a time.
    let claimed = wish.claim.as_ref().map_or(0, |token| token.events.len());
    let most = claimed.max(SIDING_CHUNK);
    let loaded = load_up_to(store, seat, vec![name.clone()], most, Room::ALL).await?;
    if let Some((view, siding)) = loaded.lanes.into_iter().next() {
        wish.siding = siding;
        wish.lane = Some(view);
    }
    look_up_dead(ground, seat, &mut wish, &name, by_lane).await?;
    look_up_answer(ground, seat, &mut wish).await;
    Ok(wish)
}

/// One event by its id; nothing if the log does not have it any more.
async fn entry_of(store: &dyn Store, seat: SeatId, id: EventId) -> Result<Option<Entry>> {
    Ok(events(store, seat, vec![id], Room::ALL).await?.0.entries.into_iter().next())
}

/// The same, unless a newer one has taken its place.
pub(super) async fn event_of(store: &dyn Store, seat: SeatId, id: EventId) -> Result<Option<Event>> {
    Ok(entry_of(store, seat, id).await?.and_then(|entry| match entry {
        Entry::Event(event) => Some(event),
        Entry::Superseded { .. } => None,
    }))
}

async fn look_up_event(store: &dyn Store, seat: SeatId, id: EventId, wish: &mut Wish) -> Result<()> {
    wish.event = entry_of(store, seat, id).await?;
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
        && let Some(events) = claimed_events(token, &wish.siding.events)
    {
        let (store, catalogue) = (&*ground.store, &ground.catalogue);
        let prepared = prepare(&ground.env, store, catalogue, seat.shard, &events, answer.clone()).await;
        wish.prepared = Some(prepared);
    }
}

/// The dead letters that a request is about, and of its lane what says whether they may come back.
async fn look_up_dead(
    ground: &Ground,
    seat: SeatId,
    wish: &mut Wish,
    lane: &LaneName,
    by_lane: &Mutex<DeadLanes>,
) -> Result<()> {
    let (id, to) = match &wish.row.op {
        RequestOp::Redrive { id, to, .. } => (*id, Some(*to)),
        RequestOp::Discard { id, .. } => (*id, None),
        _ => return Ok(()),
    };
    let store = &*ground.store;
    if to == Some(RedriveTo::Place)
        && let Rows::Seats(info, _) = store.query(Query::Seats(seat.shard)).await?
    {
        wish.trimmed = info.trimmed;
    }
    if let LaneName::Key(key) = lane
        && let Rows::Lane(tail) = store.query(Query::Lane(seat.shard, key.clone())).await?
    {
        wish.tail = tail;
    }
    let letters = Letters { env: &ground.env, store, seat, lane, by_lane };
    if let Some(id) = id {
        wish.dead.extend(letters.one(id).await?);
        let block = wish.lane.as_ref().and_then(|view| view.record.block.as_ref());
        // Such a lane comes back as a whole: any other letter of it decides.
        if to == Some(RedriveTo::Place) && matches!(block, Some(Block::Diverting { .. })) {
            wish.dead.extend(letters.neighbour(id).await?);
            wish.dead.sort_by_key(|letter| letter.event.id);
        }
        return Ok(());
    }
    // What is stale is not copied: its payload would only take the room of the others.
    let tail = wish.tail.as_ref().filter(|_| to == Some(RedriveTo::Tail));
    let is_meant = |dead: &DeadLetter| !tail.is_some_and(|tail| is_stale(dead, tail));
    (wish.dead, wish.whole_through) = letters.all(is_meant).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use laneway_core::store::{Append, Define, Trim};
    use laneway_core::{
        Draft, Key, Kind, ManualClock, Partition, ProcessorId, Shard, ShardInfo, StreamSettings,
    };
    use laneway_embedded::MemoryStore;

    use super::*;

    const DATA: usize = 1_000;

    /// A store with so many events in one partition. Nothing keeps them from a trim.
    async fn with_events(count: usize) -> (MemoryStore, SeatId) {
        let store = MemoryStore::new(Arc::new(ManualClock::default()));
        let settings = StreamSettings { partitions: 1, keep: Duration::ZERO, ..StreamSettings::default() };
        let define = Define::Stream { name: "orders".to_owned(), settings, expect: None };
        let info = store.define(define).await.expect("a new stream").stream.expect("it exists now");
        let shard = Shard { stream: info.id, partition: Partition(0) };
        append(&store, shard, count).await;
        (store, SeatId { shard, processor: ProcessorId(1) })
    }

    async fn append(store: &MemoryStore, shard: Shard, count: usize) {
        let key = Key::new("k").expect("a short key");
        let drafts = vec![Draft::new(Some(key), Kind::default(), vec![7; DATA]); count];
        let (incarnation, seats) = (store.about().incarnation, store.query(Query::Seats(shard)).await);
        let Ok(Rows::Seats(ShardInfo { layout, .. }, _)) = seats else { panic!("{seats:?}") };
        let append = Append { shard, incarnation, layout, origin: None, drafts, object: None };
        store.append(append).await.expect("the store takes them");
    }

    fn view(lane: &str, ids: std::ops::RangeInclusive<u64>) -> LaneView {
        let lane = LaneName::Key(Key::new(lane.to_owned()).expect("a short key"));
        LaneView { record: LaneRecord::new(lane), state: None, siding: ids.map(EventId).collect() }
    }

    #[tokio::test]
    async fn lanes_without_room_are_left() {
        let (store, seat) = with_events(30).await;
        let views = vec![view("a", 1..=10), view("b", 11..=20), view("c", 21..=30)];
        let room = Room { events: 15, bytes: usize::MAX };
        let (lanes, left) = with_sidings(&store, seat, views, room).await.expect("the store answers");
        let loaded: Vec<_> =
            lanes.iter().map(|(_, siding)| (siding.events.entries.len(), siding.more)).collect();
        assert_eq!(loaded, [(10, false), (5, true)]);
        assert_eq!(left, [LaneName::Key(Key::new("c").expect("a short key"))]);
    }

    #[tokio::test]
    async fn long_siding_comes_as_far_as_there_is_room() {
        let (store, seat) = with_events(30).await;
        let room = Room { events: usize::MAX, bytes: 3 * DATA };
        let loaded = with_sidings(&store, seat, vec![view("a", 1..=30)], room).await;
        let (mut lanes, left) = loaded.expect("the store answers");
        let (view, siding) = lanes.pop().expect("at least one is loaded");
        assert!(siding.more && left.is_empty() && (1..30).contains(&view.siding.len()), "{view:?}");
        let ids: Vec<EventId> = siding.events.entries.iter().map(Entry::id).collect();
        assert_eq!(view.siding, ids, "the rest is not taken for gone");
    }
    #[tokio::test]
    async fn what_retention_took_is_taken_for_gone_and_the_rest_is_loaded() {
        let (store, seat) = with_events(30).await;
        store.trim(Trim { shard: seat.shard }).await.expect("nobody needs them");
        append(&store, seat.shard, 5).await;
        let views = vec![view("a", 1..=10), view("b", 28..=33)];
        let loaded = with_sidings(&store, seat, views, Room::ALL).await.expect("the store answers").0;
        let ids =
            |siding: &Siding| siding.events.entries.iter().map(|entry| entry.id().0).collect::<Vec<_>>();
        let found: Vec<_> = loaded.iter().map(|(view, siding)| (view.siding.len(), ids(siding))).collect();
        assert_eq!(found, [(10, vec![]), (6, vec![31, 32, 33])], "all ids, so that those gone can end");
    }
}
