//! Urgent: an event with a priority that lies far behind what was read runs before its turn, and with it everything that
//! stands before it in its lane (contract 3.6).
//!
//! The shard lists such events apart. From each one its lane is walked back to what was read, and the whole stretch joins
//! the lane's siding, although the window is not there yet: the record's `ahead` says how far that goes. From then on it
//! is a lane with a siding like any other. When the log is read there, events up to `ahead` are passed.
//!
//! Invariants:
//! - once everything gathered is committed, an event of a lane up to its `ahead` is in its siding or has ended
//! - nothing of a stretch is in memory before its place in the siding is durable
//! - the record stays until the floor is at `ahead`: it alone tells what has ended there
//!
//! Not here: latest mode. There a newer event ends all that wait before it, so a stretch would be up to 1,024 events that
//! end unrun, each with its job, to start one that the reader comes to at the cost of their ids alone.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;
use laneway_core::store::{LaneSelect, LaneView, Lanes, Query, Rows, SeatStatus};
use laneway_core::{
    Block, Event, EventId, LaneName, LaneRecord, Mode, Result, Seat as SeatId, Store, StoreError,
};

use super::fetch::{event_of, plain};
use super::seat::{After, Seat};
use crate::lane::name_of;
use crate::service::Now;

/// Listed events looked at in one go.
const LISTED_MAX: usize = 64;
/// Steps back at most; a longer lane comes when the reader is there.
const STEPS_MAX: usize = 1_024;
/// Bytes of events that one look keeps for lanes in memory; the others are loaded from their sidings.
const KEPT_BYTES_MAX: usize = 4 << 20;
/// Lanes that are ahead at most.
const AHEAD_MAX: usize = 16_384;

/// The priority of a lane that an owner before has taken ahead, until the urgent event itself is in memory.
const LIFTED: u8 = 1;

/// What a seat knows of urgent events beyond what it read.
#[derive(Debug, Default)]
pub(crate) struct Urgent {
    /// The list is to be looked at.
    look: bool,
    /// Something could not be taken: it is looked at again with the next page.
    again: bool,
    /// Listed events up to this were looked at.
    after: EventId,
    /// Last id of the shard when the list was last asked for: nothing is listed beyond it.
    looked_to: EventId,
    /// Lanes that are ahead of the floor.
    lanes: HashMap<LaneName, Ahead>,
    /// The same, by how far they are.
    by_end: BTreeSet<(EventId, LaneName)>,
    /// While the list is being looked at: lanes that a commit changed meanwhile.
    changed: Option<BTreeSet<LaneName>>,
    /// The owner before came to a bad end: what it ran ahead is suspect too.
    suspects: bool,
}

/// A lane that is ahead of the floor.
#[derive(Debug, Clone, Copy)]
struct Ahead {
    to: EventId,
    /// Of what it is ahead for.
    priority: u8,
    suspect: bool,
    /// Its record says nothing else.
    drained: bool,
}

/// What a look at the list found.
#[derive(Debug)]
pub(crate) struct Found {
    stretches: Vec<Stretch>,
    /// The last one listed, and whether there may be more.
    last: Option<EventId>,
    is_full: bool,
}

/// The events of a lane from what was read up to an urgent one.
#[derive(Debug)]
struct Stretch {
    view: LaneView,
    events: Vec<Event>,
    /// Whether the events have their data.
    is_whole: bool,
}

impl Urgent {
    pub(super) fn new(was_clean: bool) -> Self {
        Self { suspects: !was_clean, ..Self::default() }
    }

    /// Whether no lane is ahead and nothing is to be looked at.
    pub(super) fn is_idle(&self) -> bool {
        !self.look && !self.again && self.lanes.is_empty() && self.changed.is_none()
    }

    /// Lanes that a commit changed.
    pub(super) fn committed<'a>(&mut self, lanes: impl Iterator<Item = &'a LaneName>) {
        if let Some(changed) = &mut self.changed {
            changed.extend(lanes.cloned());
        }
    }

    fn insert(&mut self, lane: &LaneName, ahead: Ahead) {
        if let Some(before) = self.lanes.insert(lane.clone(), ahead) {
            self.by_end.remove(&(before.to, lane.clone()));
        }
        self.by_end.insert((ahead.to, lane.clone()));
    }
}

/// Looks at the list, and walks from what it finds back to what was read.
pub(crate) async fn look(store: &dyn Store, seat: SeatId, after: EventId, read_to: EventId) -> Result<Found> {
    let Rows::Urgent(rows) = store.query(Query::Urgent(seat.shard, after, LISTED_MAX)).await? else {
        return Err(StoreError::Corrupt { what: "the store answered another list than urgent".to_owned() });
    };
    let mut walked = Walked { store, seat, read_to, stretches: BTreeMap::new(), bytes: 0 };
    for (id, _) in &rows {
        walked.walk(*id).await?;
    }
    Ok(Found {
        stretches: walked.stretches.into_values().filter(|stretch| !stretch.events.is_empty()).collect(),
        last: rows.last().map(|(id, _)| *id),
        is_full: rows.len() >= LISTED_MAX,
    })
}

struct Walked<'a> {
    store: &'a dyn Store,
    seat: SeatId,
    read_to: EventId,
    stretches: BTreeMap<LaneName, Stretch>,
    bytes: usize,
}

impl Walked<'_> {
    async fn walk(&mut self, id: EventId) -> Result<()> {
        let Some(event) = event_of(self.store, self.seat, id).await? else { return Ok(()) };
        let lane = name_of(&event);
        if !self.stretches.contains_key(&lane) {
            let view = self.view(&lane).await?;
            self.stretches.insert(lane.clone(), Stretch { view, events: Vec::new(), is_whole: true });
        }
        let Some(stretch) = self.stretches.get(&lane) else { return Ok(()) };
        let known = stretch.events.last().map_or(EventId(0), |event| event.id);
        let stop = self.read_to.max(known).max(stretch.view.record.ahead.unwrap_or_default());
        if id <= stop {
            return Ok(());
        }
        let mut back = vec![event];
        while let Some(prev) = back[back.len() - 1].prev.filter(|prev| *prev > stop) {
            if back.len() > STEPS_MAX {
                return Ok(());
            }
            let Some(event) = event_of(self.store, self.seat, prev).await? else { break };
            self.bytes += event.data.len();
            // Of a long stretch only the ids are kept.
            let data = if self.bytes > KEPT_BYTES_MAX { bytes::Bytes::new() } else { event.data.clone() };
            back.push(Event { data, ..event });
        }
        if let Some(stretch) = self.stretches.get_mut(&lane) {
            stretch.is_whole &= self.bytes <= KEPT_BYTES_MAX;
            stretch.events.extend(back.into_iter().rev());
        }
        Ok(())
    }

    async fn view(&self, lane: &LaneName) -> Result<LaneView> {
        let select = LaneSelect::Names(vec![lane.clone()]);
        let views = self.store.lanes(Lanes { seat: self.seat, select, siding: 1, states: false }).await?;
        Ok(views.into_iter().next().unwrap_or_else(|| plain(lane.clone())))
    }
}

impl Seat {
    /// After which listed event to look for urgent ones, and what was read; nothing while there is no room for them.
    pub(crate) fn wants_urgent(&self) -> Option<(EventId, EventId)> {
        let wanted = self.urgent.look && self.is_behind() && self.status == SeatStatus::Run;
        let room = self.has_room_for_urgent() && self.urgent.lanes.len() < AHEAD_MAX;
        let may = wanted && room && !self.is_draining() && !self.gathering.is_enough();
        may.then(|| (self.urgent.after.max(self.read_to), self.read_to))
    }

    /// A look at the list is on its way.
    pub(crate) fn urgent_sent(&mut self) {
        self.urgent.look = false;
        self.urgent.again = false;
        self.urgent.looked_to = self.head;
        self.urgent.changed = Some(BTreeSet::new());
    }

    /// The list could not be looked at.
    pub(crate) fn urgent_failed(&mut self) {
        self.urgent.look = true;
        self.urgent.changed = None;
    }

    /// A page was taken in: what it left unread may be urgent.
    pub(super) fn urgent_left(&mut self) {
        if self.mode == Mode::Queue && self.is_behind() {
            self.urgent.look |= self.urgent.again || self.head > self.urgent.looked_to;
        }
    }

    /// Takes what a look found into the sidings of its lanes.
    pub(crate) fn take_urgent(&mut self, found: Found, now: Now) {
        let changed = self.urgent.changed.take().unwrap_or_default();
        if self.is_draining() {
            return;
        }
        for stretch in found.stretches {
            let taken = self.take_stretch(stretch, &changed, now);
            self.urgent.again |= !taken;
        }
        // What was taken is known by its lane's record, and costs little to be found again.
        if !self.urgent.again
            && let Some(last) = found.last
        {
            self.urgent.after = last;
            self.urgent.look |= found.is_full;
        }
    }

    /// Answers whether that is all that is to be done about it for now.
    fn take_stretch(&mut self, stretch: Stretch, changed: &BTreeSet<LaneName>, now: Now) -> bool {
        let Stretch { view, mut events, is_whole } = stretch;
        let lane = view.record.lane.clone();
        events.retain(|event| {
            let id = event.id;
            let known = id <= self.read_to || self.passed_before.contains(id) || self.is_ahead(&lane, id);
            !known && !self.sided_unread.contains(&id) && self.is_for_us(event)
        });
        let Some(last) = events.iter().rposition(|event| event.priority > 0) else { return true };
        events.truncate(last + 1);
        let in_memory = self.book.holds(&lane);
        let mut record = if in_memory { self.record_of(&lane) } else { view.record };
        let free = match &record.block {
            None | Some(Block::Running { .. }) => true,
            Some(Block::Diverting { .. }) => return true,
            Some(_) => false,
        };
        // One that is just leaving memory, or changing in the store, is looked at again.
        if (in_memory && !free) || (!in_memory && (self.is_changing(&lane) || changed.contains(&lane))) {
            return false;
        }
        let to = events[last].id;
        let suspect = self.urgent.lanes.get(&lane).is_some_and(|before| before.suspect);
        let priority = events.iter().map(|event| event.priority).max().unwrap_or(LIFTED);
        self.urgent.insert(&lane, Ahead { to, priority, suspect, drained: false });
        self.side_in_memory(&lane);
        for event in &events {
            self.gathering.side_ahead(&lane, event.id);
        }
        record
            .block
            .get_or_insert_with(|| Block::Running { since: now.calendar, progress: bytes::Bytes::new() });
        if self.book.len_of(&lane) > 0 {
            self.put_record(&lane, Some(record));
            let more = std::mem::replace(&mut self.book.memo_mut(&lane).more, true);
            let events = if more || !is_whole { Vec::new() } else { events };
            self.gathering.then(After::Ahead { lane, events });
            return true;
        }
        if in_memory {
            self.book.forget(&lane);
        }
        self.change_record(&lane, record);
        if free {
            self.wanted_lanes.push_back(lane);
        }
        true
    }

    /// A stretch is durably in its siding: what has room joins the lane in memory, which is now as urgent as it is.
    pub(super) fn join_ahead(&mut self, lane: LaneName, events: Vec<Event>, now: Now) {
        if self.book.len_of(&lane) == 0 {
            self.wanted_lanes.push_back(lane);
            return;
        }
        // One that is being held up leaves memory, and its siding with it.
        if matches!(self.record_of(&lane).block, None | Some(Block::Running { .. })) {
            for event in events {
                self.book.push(lane.clone(), event, true, now);
            }
            self.batch_grew(&lane);
        }
    }

    /// Whether an event is known by its lane's record: it is in the siding, or has ended.
    pub(super) fn is_ahead(&self, lane: &LaneName, id: EventId) -> bool {
        // Most seats never have such a lane.
        !self.urgent.lanes.is_empty() && self.urgent.lanes.get(lane).is_some_and(|ahead| id <= ahead.to)
    }

    /// The priority of an event with what waits behind it in a siding: a lane has only its beginning in memory.
    pub(super) fn priority_of(&self, lane: &LaneName, event: &Event) -> u8 {
        let ahead = self.urgent.lanes.get(lane).filter(|ahead| event.id <= ahead.to);
        ahead.map_or(event.priority, |ahead| event.priority.max(ahead.priority))
    }

    /// Whether an event may have been running when an owner before came to a bad end (contract 1.5).
    pub(super) fn is_suspect(&self, lane: &LaneName, id: EventId) -> bool {
        let ahead = || self.urgent.lanes.get(lane).is_some_and(|ahead| ahead.suspect && id <= ahead.to);
        id <= self.suspects_to || (self.urgent.suspects && ahead())
    }

    /// A lane as it is in the store: it may be ahead.
    pub(crate) fn note_ahead(&mut self, view: &LaneView) {
        let is_bare = view.record.block.is_none() && view.siding.is_empty();
        self.note_record(&view.record, is_bare);
    }

    fn note_record(&mut self, record: &LaneRecord, drained: bool) {
        let Some(to) = record.ahead.filter(|to| *to > self.floor) else { return };
        if !self.urgent.lanes.contains_key(&record.lane) {
            self.urgent
                .insert(&record.lane, Ahead { to, priority: LIFTED, suspect: self.urgent.suspects, drained });
        }
    }

    /// The same at the start of this ownership. One that says nothing else, and that the floor has come to, goes.
    pub(crate) fn resume_ahead(&mut self, view: &LaneView) {
        self.note_ahead(view);
        let lane = &view.record.lane;
        if view.record.block.is_none() && view.siding.is_empty() && !self.urgent.lanes.contains_key(lane) {
            self.records.remove(lane);
            self.gather_record(lane, None);
        }
    }

    /// Whether a lane's record must stay because the lane is ahead.
    pub(super) fn stays_ahead(&self, lane: &LaneName) -> bool {
        self.urgent.lanes.contains_key(lane)
    }

    /// The record that a lane gets: it is ahead until the floor is there, whatever else becomes of it.
    pub(super) fn record_ahead(&mut self, lane: &LaneName, record: Option<LaneRecord>) -> Option<LaneRecord> {
        if let Some(record) = &record {
            self.note_record(record, false);
        }
        let Some(ahead) = self.urgent.lanes.get_mut(lane) else {
            return record.map(|record| LaneRecord { ahead: None, ..record });
        };
        ahead.drained = record.is_none();
        let ahead = Some(ahead.to);
        Some(LaneRecord { ahead, ..record.unwrap_or_else(|| LaneRecord::new(lane.clone())) })
    }

    /// The floor has risen: lanes that were ahead of it and are not any more are like others again.
    pub(super) fn floor_rose(&mut self) {
        while self.urgent.by_end.first().is_some_and(|(to, _)| *to <= self.floor)
            && let Some((_, lane)) = self.urgent.by_end.pop_first()
        {
            let was = self.urgent.lanes.remove(&lane);
            if was.is_some_and(|was| was.drained) {
                self.records.remove(&lane);
                self.gather_record(&lane, None);
            }
        }
    }
}
