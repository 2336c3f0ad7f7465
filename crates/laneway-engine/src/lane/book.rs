//! The lanes of one seat that are in memory.
//!
//! Events join in id order and leave when their end is durable. A lane is *plain* when the store has no record of it:
//! then the window alone tells which of its events are settled. Of a lane with a siding, only the beginning is here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hashbrown::HashMap;
use laneway_core::store::Versioned;
use laneway_core::{Event, EventId, LaneName, LaneRecord, Steady, Timestamp};
use laneway_lanes::table::{Arrival, ItemId, Mode, Outbox, Priority, Settings, Table, Tick, Turn, Verdict};

use crate::service::Now;

/// An event that waits or runs.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) event: Event,
    /// Whether its id is in its lane's siding once everything gathered is committed.
    sided: AtomicBool,
    /// Whether it has ended once everything gathered is committed.
    ended: AtomicBool,
}

impl Waiting {
    pub(crate) fn new(event: Event, sided: bool) -> Self {
        Self { event, sided: AtomicBool::new(sided), ended: AtomicBool::new(false) }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Notes that it has ended.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_sided(&self) -> bool {
        self.sided.load(Ordering::Relaxed)
    }

    /// Notes that it joined the siding. Answers whether it had not.
    pub(crate) fn side(&self) -> bool {
        !self.sided.swap(true, Ordering::Relaxed)
    }
}

/// The right to run the head of a lane.
pub(crate) type LaneTurn = Turn<LaneName, Arc<Waiting>>;

/// What is known of a lane in memory, apart from its events.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    /// Its state, as the last settled run left it, durable or not.
    pub(crate) state: Option<Versioned>,
    /// Its record in the store once everything gathered is committed.
    pub(crate) record: Option<LaneRecord>,
    /// Events here that are in its siding.
    pub(crate) sided: usize,
    /// Whether its siding goes on in the store.
    pub(crate) more: bool,
    /// Events that ended and are not durable yet, while the lane went on.
    pub(crate) ahead: u32,
    /// Since when its head could run; kept only while batches wait to be full.
    pub(crate) runnable_since: Option<Steady>,
    /// Its batch waits to be full.
    pub(crate) batch_waits: bool,
    /// The newest event of the lane that was read while it was in memory (latest mode).
    pub(crate) newest: Option<EventId>,
}

#[derive(Debug)]
pub(crate) struct Book {
    table: Table<LaneName, Arc<Waiting>>,
    memos: HashMap<LaneName, Memo>,
    bytes: usize,
    /// Events in memory that are jobs.
    jobs: usize,
    /// Whether events run together with the head of their lane.
    batches: bool,
    /// Whether batches wait to be full.
    gathers: bool,
}

/// The lane of an event.
pub(crate) fn name_of(event: &Event) -> LaneName {
    event.key.clone().map_or(LaneName::Event(event.id), LaneName::Key)
}

impl Book {
    /// `batches`: whether events run together with the head of their lane.
    pub(crate) fn new(batches: bool) -> Self {
        let settings = Settings { mode: Mode::Queue, concurrency: usize::MAX, ..Settings::default() };
        Self {
            table: Table::new(settings),
            memos: HashMap::new(),
            bytes: 0,
            jobs: 0,
            batches,
            gathers: false,
        }
    }

    /// Events may run together with the head of their lane.
    pub(crate) fn run_batches(&mut self) {
        self.batches = true;
    }

    /// Batches wait to be full: since when a head could run is noted.
    pub(crate) fn gather_batches(&mut self) {
        self.gathers = true;
    }

    /// The head of a lane can run from now on, if there is one.
    pub(crate) fn is_runnable(&mut self, lane: &LaneName, now: Now) {
        if self.gathers && self.table.len_of(lane) > 0 {
            self.memo_mut(lane).runnable_since = Some(now.steady);
        }
    }

    /// Lanes whose head may start.
    pub(crate) fn ready(&self) -> usize {
        self.table.ready()
    }

    /// Events in memory.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Bytes of the events in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Events in memory that are jobs.
    pub(crate) fn jobs(&self) -> usize {
        self.jobs
    }

    /// Lanes with an event in memory.
    pub(crate) fn lanes(&self) -> usize {
        let counts = self.table.snapshot();
        counts.lanes - counts.remembered
    }

    pub(crate) fn can_start(&self) -> bool {
        self.table.can_start()
    }

    /// Events of a lane in memory.
    pub(crate) fn len_of(&self, lane: &LaneName) -> usize {
        self.table.len_of(lane)
    }

    /// Whether anything of a lane is in memory.
    pub(crate) fn holds(&self, lane: &LaneName) -> bool {
        self.table.len_of(lane) > 0 || self.memos.contains_key(lane)
    }

    pub(crate) fn memo(&self, lane: &LaneName) -> Option<&Memo> {
        self.memos.get(lane)
    }

    pub(crate) fn memo_mut(&mut self, lane: &LaneName) -> &mut Memo {
        if !self.memos.contains_key(lane) {
            self.memos.insert(lane.clone(), Memo::default());
        }
        self.memos.get_mut(lane).expect("it is there now")
    }

    pub(crate) fn push(&mut self, lane: LaneName, event: Event, sided: bool, now: Now) {
        let priority = event.priority;
        self.push_lifted(lane, event, sided, priority, now);
    }

    /// The same for one that is more urgent than it says, for the sake of one behind it that is not in memory.
    pub(crate) fn push_lifted(&mut self, lane: LaneName, event: Event, sided: bool, priority: u8, now: Now) {
        self.bytes += size_of(&event);
        self.jobs += usize::from(event.job.is_some());
        if self.gathers && self.table.len_of(&lane) == 0 {
            self.memo_mut(&lane).runnable_since = Some(now.steady);
        }
        if sided {
            self.memo_mut(&lane).sided += 1;
        }
        let mut arrival = Arrival::new(lane, Arc::new(Waiting::new(event, sided)));
        arrival.priority = class_of(priority);
        arrival.expires = arrival.payload.event.expires_at.map(|at| tick_of(at, now));
        self.table.push(arrival);
    }

    /// Lets time pass; answers the events that expired before they were started.
    pub(crate) fn expired(&mut self, now: Now) -> Vec<Arc<Waiting>> {
        if self.table.next_due().is_none_or(|due| due > now.tick()) {
            return Vec::new();
        }
        self.table.advance(now.tick());
        self.take_ended()
    }

    /// When the next waiting event expires.
    pub(crate) fn next_expiry(&self) -> Option<Tick> {
        self.table.next_due()
    }

    pub(crate) fn start(&mut self, now: Now) -> Option<LaneTurn> {
        self.table.start(now.tick())
    }

    /// Starts the head of this lane out of its turn. No time passes with it: what expires is told by `expired` alone, and a
    /// head that a worker has does not expire any more. Were it to, the one behind it would be taken for it.
    pub(crate) fn start_lane(&mut self, lane: &LaneName) -> Option<LaneTurn> {
        self.table.start_lane(lane, Tick::START)
    }

    /// The events behind the running one of a lane, in order.
    pub(crate) fn behind(&self, lane: &LaneName, max: usize) -> Vec<(ItemId, Arc<Waiting>)> {
        self.table.behind(lane, max)
    }

    /// The run of a turn is over and its end durable. What ended with it goes too.
    pub(crate) fn finish(&mut self, turn: &LaneTurn) {
        while self.batches
            && let Some((item, waiting)) = self.table.behind(&turn.key, 1).pop()
            && waiting.has_ended()
        {
            self.table.cancel_item(&turn.key, item);
            self.take_ended();
        }
        self.table.finish(turn, Verdict::Done);
        self.left(&turn.payload.event);
        self.tidy(&turn.key);
    }

    /// The run of a turn is over and its end not durable yet, but its lane may go on.
    pub(crate) fn run_ahead(&mut self, turn: &LaneTurn) {
        self.memo_mut(&turn.key).ahead += 1;
        self.finish(turn);
    }

    /// What ran ahead is durable.
    pub(crate) fn caught_up(&mut self, lane: &LaneName) {
        let memo = self.memo_mut(lane);
        memo.ahead = memo.ahead.saturating_sub(1);
        self.tidy(lane);
    }

    /// A turn is given back until a moment: nothing of its lane starts before.
    pub(crate) fn put_off(&mut self, turn: &LaneTurn, until: Steady) {
        self.table.finish(turn, Verdict::RetryAt(Tick::from_micros(until.0)));
    }

    /// The run of a turn did not take place: its event is the head again.
    pub(crate) fn give_back(&mut self, turn: &LaneTurn, now: Now) {
        self.table.finish(turn, Verdict::RetryAt(now.tick()));
        self.table.advance(now.tick());
    }

    /// The event of a lane that has its turn, until its end is durable.
    pub(crate) fn running_of(&self, lane: &LaneName) -> Option<Arc<Waiting>> {
        self.table.running_of(lane)
    }

    /// The first event of a lane that does not run.
    pub(crate) fn first_of(&self, lane: &LaneName) -> Option<EventId> {
        self.table.behind(lane, 1).first().map(|(_, waiting)| waiting.event.id)
    }

    /// A waiting event of a lane, ended or not. `None` if it is not here or runs.
    pub(crate) fn find(&self, lane: &LaneName, id: EventId) -> Option<Arc<Waiting>> {
        let behind = self.table.behind(lane, usize::MAX);
        behind.into_iter().map(|(_, waiting)| waiting).find(|waiting| waiting.event.id == id)
    }

    /// Takes a waiting event out of its lane. `None` if it is not here or runs.
    pub(crate) fn remove(&mut self, lane: &LaneName, id: EventId) -> Option<Arc<Waiting>> {
        let behind = self.table.behind(lane, usize::MAX);
        let (item, _) = behind.into_iter().find(|(_, waiting)| waiting.event.id == id)?;
        self.table.cancel_item(lane, item);
        let removed = self.take_ended().pop();
        self.tidy(lane);
        removed
    }

    /// Takes everything of a lane out of memory that does not run; answers it in order.
    pub(crate) fn evict(&mut self, lane: &LaneName) -> Vec<Arc<Waiting>> {
        if self.table.cancel_waiting(lane) == 0 {
            return Vec::new();
        }
        self.take_ended()
    }

    /// All events in memory, with their lanes.
    pub(crate) fn events(&self) -> impl Iterator<Item = (&LaneName, &Arc<Waiting>)> {
        self.table.items()
    }

    /// Forgets what is known of a lane that has nothing in memory any more.
    pub(crate) fn forget(&mut self, lane: &LaneName) {
        debug_assert_eq!(self.table.len_of(lane), 0, "a forgotten lane has no event in memory");
        self.memos.remove(lane);
    }

    /// A plain lane without events needs no memo.
    fn tidy(&mut self, lane: &LaneName) {
        if self.table.len_of(lane) > 0 {
            return;
        }
        if let Some(memo) = self.memos.get(lane)
            && memo.record.is_none()
            && memo.ahead == 0
            && memo.sided == 0
            && !memo.more
        {
            self.memos.remove(lane);
        }
    }

    fn take_ended(&mut self) -> Vec<Arc<Waiting>> {
        let mut outbox = Outbox::default();
        self.table.swap_outbox(&mut outbox);
        let ended: Vec<_> = outbox.ended.into_iter().map(|ended| ended.payload).collect();
        ended.iter().for_each(|waiting| self.left(&waiting.event));
        ended
    }

    /// An event is not in memory any more.
    fn left(&mut self, event: &Event) {
        self.bytes -= size_of(event);
        self.jobs -= usize::from(event.job.is_some());
    }
}

/// Bytes of memory that an event takes.
pub(crate) fn size_of(event: &Event) -> usize {
    // The event itself, with its key once more as the name of its lane.
    200 + event.key.as_ref().map_or(0, |key| key.bytes().len())
        + event.headers.bytes().len()
        + event.data.len()
}

/// 0 is the usual, 1 goes before it, more goes before that.
fn class_of(priority: u8) -> Priority {
    match priority {
        0 => Priority::Normal,
        1 => Priority::High,
        _ => Priority::Urgent,
    }
}

/// The steady moment of a date, as the clocks stand now.
fn tick_of(at: Timestamp, now: Now) -> Tick {
    let left = at.0.saturating_sub(now.calendar.0);
    Tick::from_micros(now.steady.0.saturating_add(left))
}
