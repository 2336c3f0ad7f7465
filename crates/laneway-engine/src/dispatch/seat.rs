//! One seat as its owner sees it: what was read, what runs, what is gathered.
//!
//! Plain code, no I/O: the loop in `run` hands in what happened and asks what to do. The rules are in the files beside
//! it: `intake` (pages), `urgent` (what is not read yet and cannot wait), `turns` (what starts), `accused` (what starts alone), `settle` (what a run came to), `requests` (what others ask for),
//! `durable` (what follows once a commit is safe).
//!
//! Invariants:
//! - an event is in memory, or passed, or beyond what was read, or its lane is ahead of it
//! - a lane's next event starts only when the end of the one before is durable
//! - a lane with a record in the store has its events in its siding; those in memory are its beginning
//! - nothing here outlives the fence: a fenced seat is dropped whole

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;
use laneway_core::adoption::Gap;
use laneway_core::limits::WINDOW_IDS;
use laneway_core::store::{Resume, SeatStatus, Versioned};
use laneway_core::{
    Due, Event, EventId, Fence, Key, LaneName, LaneRecord, Mode, Result, Seat as SeatId, Steady, StreamId,
    StreamInfo, Timestamp, Window,
};
use laneway_lanes::table::ItemId;
use parking_lot::Mutex;

use super::accused::Accused;
use super::claims::Settled;
use super::dead_count::DeadCount;
use super::dead_lanes::DeadLanes;
use super::fetch::Room;
use super::note::Note;
use super::queue::Requests;
use super::settings::{Batch, ProcessorSettings};
use super::urgent::Urgent;
use crate::commit::{Gathering, Prepared};
use crate::handler::{Canceller, Progress, WhenDurable};
use crate::lane::{Book, LaneTurn, Rates, Records, Waiting};
use crate::observe::Tally;
use crate::service::Now;

/// Events in memory at most, unless more may run at once.
const LOADED_MAX: usize = 8_192;
/// Bytes of events in memory at most; one event may go beyond.
const LOADED_BYTES_MAX: usize = 16 << 20;

/// Number of a run of this seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RunNo(pub(super) u64);

#[derive(Debug)]
pub(crate) struct Seat {
    pub(super) id: SeatId,
    pub(super) settings: Arc<ProcessorSettings>,
    pub(super) mode: Mode,
    pub(super) fence: Fence,
    pub(super) status: SeatStatus,
    /// What is kept with it besides its progress.
    pub(super) note: Note,
    /// What owners before had passed; only ids beyond `read_to` are looked up in it.
    pub(super) passed_before: Window,
    /// Every id up to this is durably passed.
    pub(super) floor: EventId,
    /// Last id read.
    pub(super) read_to: EventId,
    /// Last id of the shard, as far as known.
    pub(super) head: EventId,
    /// Ids up to it that were never given. An adoption adds one, and ends this owner.
    pub(super) gaps: Vec<Gap>,
    pub(super) book: Book,
    pub(super) records: Records,
    pub(super) gathering: Gathering<After>,
    pub(super) in_flight: Option<InFlight>,
    pub(super) runs: BTreeMap<RunNo, Active>,
    pub(super) next_run: u64,
    /// Runs that are over and not gathered yet.
    pub(super) settling: VecDeque<(RunNo, Finished)>,
    /// Turns whose start is durable: they were suspects.
    pub(super) granted: VecDeque<LaneTurn>,
    pub(super) accused: Accused,
    /// Ids up to this may have been running when an owner before came to a bad end (contract 1.5).
    pub(super) suspects_to: EventId,
    /// What is urgent beyond what was read, and lanes that are ahead because of it.
    pub(super) urgent: Urgent,
    /// States that became durable since the read under way was sent: what it brings may be older.
    pub(super) fresh_states: HashMap<Key, Option<Versioned>>,
    pub(super) requests: Requests,
    /// Requests about more dead letters than one commit holds, and the last one that is meant.
    pub(super) dead_through: BTreeMap<u64, EventId>,
    /// Last number given in the outbox.
    pub(super) emitted: u64,
    /// Outbox rows up to this have reached their shard, durably noted or not.
    pub(super) forwarded: u64,
    pub(super) forwarded_durable: u64,
    /// Lanes whose record changed since the look-up under way was sent.
    pub(super) changed_lanes: BTreeSet<LaneName>,
    /// Lanes whose record changed since a request was looked up.
    pub(super) changed_since_wish: BTreeSet<LaneName>,
    /// While requests are being looked up: lanes of which an event has ended since, also as a dead letter.
    pub(super) ended_since_look_up: Option<BTreeSet<LaneName>>,
    /// While lanes are being loaded: those that a commit changed meanwhile.
    pub(super) committed_while_loading: Option<BTreeSet<LaneName>>,
    /// Events that were moved to a siding before they were read.
    pub(super) sided_unread: BTreeSet<EventId>,
    /// Lanes to be loaded from their siding.
    pub(super) wanted_lanes: VecDeque<LaneName>,
    /// When the next lane that was held up is due.
    pub(super) next_due: Option<Due>,
    /// The same, of lanes whose records are durable: nobody finds the others.
    pub(super) next_due_durable: Option<Due>,
    pub(super) stage: Stage,
    pub(super) names: Names,
    /// What happened since the last durable commit.
    pub(super) tally: Tally,
    pub(super) dead_count: DeadCount,
    /// Shared with the look-up of a request, which fills it.
    pub(super) dead_lanes: Arc<Mutex<DeadLanes>>,
    /// When the last event that was read was appended.
    pub(super) read_time: Timestamp,
    pub(super) rates: Rates,
    /// Until when the processor's rate lets nothing start.
    pub(super) rate_waits: Option<Steady>,
    /// Since when a batch over lanes waits for more of them.
    pub(super) lanes_since: Option<Steady>,
    /// Remote workers run what is here.
    pub(super) remote: bool,
    /// Events of a lane that a worker asks for at most.
    pub(super) offered_max: usize,
    /// Claims that were settled.
    pub(super) settled: Settled,
}

/// What a seat is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Working,
    /// It takes no new turns.
    Draining,
    /// Nothing runs any more, and its last commit says so.
    Leaving,
    /// The processor begins anew on this shard as soon as nothing runs.
    Resetting,
    /// It has begun anew: nothing in memory is true any more.
    BeganAnew,
}

/// The names a seat speaks under, and where it reports.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    pub(crate) stream: Arc<str>,
    pub(crate) processor: Arc<str>,
    /// The system stream; nothing for a seat on that stream itself, which would report for ever.
    pub(crate) reports_to: Option<StreamId>,
}

/// A commit on its way.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(super) after: Vec<After>,
    pub(super) lanes: BTreeSet<LaneName>,
    /// When the first lane that it holds up is due.
    pub(super) next_due: Option<Due>,
}

/// What follows when a commit is durable.
#[derive(Debug)]
pub(crate) enum After {
    /// The lane may go on: its running event has ended, and those that ran and ended with it.
    Finish { turn: LaneTurn },
    /// A stretch of the lane that lies beyond what was read is in its siding.
    Ahead { lane: LaneName, events: Vec<Event> },
    /// Something of the lane is durable that a request waits for.
    Moved { lane: LaneName },
    /// What a lane ran ahead of is durable.
    CaughtUp { lane: LaneName },
    /// The lane is held up in the store: it leaves memory.
    Block { turn: LaneTurn },
    /// A suspect may run now.
    Grant { turn: LaneTurn },
    /// Somebody waits for this to be durable.
    Tell(WhenDurable),
    /// States that are durable now.
    States(Vec<(Key, Option<Versioned>)>),
    /// The processor began anew on this shard: nothing in memory is true any more.
    Reset,
}

impl After {
    /// The lane of which a run is over.
    pub(super) fn ended_lane(&self) -> Option<&LaneName> {
        match self {
            Self::Finish { turn } | Self::Block { turn } => Some(&turn.key),
            Self::CaughtUp { lane } => Some(lane),
            _ => None,
        }
    }
}

/// A run under way.
#[derive(Debug)]
pub(crate) struct Active {
    pub(super) lanes: Vec<ActiveLane>,
    pub(super) canceller: Canceller,
    pub(super) since: Now,
    /// Its lane records tell of it.
    pub(super) shown: bool,
}

/// One lane of a run under way.
#[derive(Debug)]
pub(crate) struct ActiveLane {
    pub(super) turn: LaneTurn,
    /// Events that run with the turn's, in order (a lane batch).
    pub(super) also: Vec<(ItemId, Arc<Waiting>)>,
    pub(super) attempt: u32,
    /// So many of its events, from the first on, are settled already.
    pub(super) settled: usize,
    pub(super) progress: Progress,
    /// Why the run was asked to stop.
    pub(super) stop: Option<Stop>,
}

/// Why a run was asked to stop: how its event ends unless it is done after all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// This event was cancelled; others that run with it were not.
    Cancel(EventId),
    Supersede(EventId),
    /// Another lane of its run was stopped: it has no attempt of its own.
    Beside,
    /// The processor begins anew, or the seat is to move: nor has it then.
    GiveBack,
}

impl ActiveLane {
    pub(super) fn events(&self) -> impl Iterator<Item = &Arc<Waiting>> {
        std::iter::once(&self.turn.payload).chain(self.also.iter().map(|(_, waiting)| waiting))
    }

    /// Attempts at its event of this place: those before counted for the head alone.
    pub(super) fn attempts_at(&self, place: usize) -> u32 {
        if place == 0 { self.attempt } else { 1 }
    }
}

/// A run that is over.
#[derive(Debug)]
pub(crate) struct Finished {
    /// One answer per lane of the run.
    pub(crate) answers: Vec<Prepared>,
    pub(crate) started_at: Timestamp,
    /// How long the handler took; nothing if it was not called.
    pub(crate) took: Option<Duration>,
}

impl Seat {
    /// A seat just seized. `records`: the lanes that have a record, if they are not too many.
    pub(crate) fn new(
        id: SeatId,
        settings: Arc<ProcessorSettings>,
        stream: &StreamInfo,
        names: Names,
        resume: Resume,
        records: Records,
    ) -> Result<Self> {
        let (mode, partitions) = (stream.settings.mode, stream.settings.partitions);
        let rates = Rates::new(settings.rate, settings.rate_per_key, partitions);
        let mut book = Book::new(matches!(settings.batch, Batch::Lane { .. }));
        if matches!(settings.batch, Batch::Lane { within, .. } if !within.is_zero()) {
            book.gather_batches();
        }
        let progress = resume.progress;
        let note = Note::decode(progress.note)?;
        let floor = progress.window.floor();
        let ceiling = progress.window.ceiling();
        Ok(Self {
            id,
            settings,
            mode,
            fence: progress.fence,
            status: progress.status,
            note,
            // Only what was within the window can have been started.
            suspects_to: if progress.clean { EventId(0) } else { resume.head.min(ceiling) },
            urgent: Urgent::new(progress.clean),
            passed_before: progress.window,
            floor,
            read_to: floor,
            head: resume.head,
            gaps: resume.gaps,
            book,
            records,
            gathering: Gathering::default(),
            in_flight: None,
            runs: BTreeMap::new(),
            next_run: 1,
            settling: VecDeque::new(),
            granted: VecDeque::new(),
            accused: Accused::default(),
            fresh_states: HashMap::new(),
            requests: Requests::new(resume.request_no, progress.requests_applied),
            dead_through: BTreeMap::new(),
            emitted: progress.emitted,
            forwarded: progress.forwarded,
            forwarded_durable: progress.forwarded,
            changed_lanes: BTreeSet::new(),
            changed_since_wish: BTreeSet::new(),
            ended_since_look_up: None,
            committed_while_loading: None,
            sided_unread: BTreeSet::new(),
            wanted_lanes: VecDeque::new(),
            next_due: None,
            next_due_durable: None,
            stage: Stage::Working,
            names,
            tally: Tally::default(),
            dead_count: DeadCount::default(),
            dead_lanes: Arc::default(),
            read_time: Timestamp(0),
            rates,
            rate_waits: None,
            lanes_since: None,
            remote: false,
            offered_max: 1,
            settled: Settled::default(),
        })
    }

    pub(crate) fn id(&self) -> SeatId {
        self.id
    }

    pub(crate) fn fence(&self) -> Fence {
        self.fence
    }

    /// Which dead letters its lanes have.
    pub(crate) fn dead_lanes(&self) -> Arc<Mutex<DeadLanes>> {
        Arc::clone(&self.dead_lanes)
    }

    /// Drops the list of dead letters if nobody needs it. Answers when to look again.
    pub(crate) fn drop_unused_list(&self, now: Steady) -> Option<Steady> {
        self.dead_lanes.lock().drop_unused(now)
    }

    /// After which event to read next, and how many; none while memory or the window is full.
    pub(crate) fn wants_read(&self) -> (EventId, usize) {
        let room = self.loaded_max().saturating_sub(self.book.len());
        // An event whose cancel waits for the window is read after that cancel. It cannot hold itself up: the floor rises
        // to within half a window of whatever was read, and then the cancel is decided.
        let undecided = self.requests.not_before(self.read_to).map(|id| id.0 - 1);
        let last = undecided.unwrap_or(u64::MAX).min(self.floor.0 + WINDOW_IDS);
        let window = last.saturating_sub(self.read_to.0);
        let limit = room.min(usize::try_from(window).unwrap_or(usize::MAX));
        let full = self.book.bytes() >= LOADED_BYTES_MAX || self.gathering.is_enough() || self.is_draining();
        let stands = full || self.status == SeatStatus::Halted;
        (self.read_to, if stands { 0 } else { limit })
    }

    pub(super) fn loaded_max(&self) -> usize {
        LOADED_MAX.max(2 * self.settings.concurrency)
    }

    /// Whether there may be more to read than was read.
    pub(crate) fn is_behind(&self) -> bool {
        self.read_to < self.head
    }

    fn is_quiet(&self) -> bool {
        self.runs.is_empty()
            && self.settling.is_empty()
            && self.in_flight.is_none()
            && self.gathering.is_empty()
    }

    /// Whether nothing is to be done for it until it is woken.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.is_quiet() && self.book.len() == 0 && self.has_no_other_work()
    }

    /// Whether there is nothing to do beside the events in memory and what was gathered of them.
    pub(super) fn has_no_other_work(&self) -> bool {
        self.stage == Stage::Working
            && !self.is_behind()
            && self.wanted_lanes.is_empty()
            && self.requests.wanted().is_none()
            && self.wants_forward().is_none()
    }

    /// Takes no new turns from now on. Once nothing runs, the last commit says so.
    pub(crate) fn drain(&mut self) {
        if self.stage == Stage::Working {
            self.stage = Stage::Draining;
            self.hand_over_claims();
        }
        // In the same turn: nothing would wake an idle seat for a second one.
        if self.stage == Stage::Draining && self.is_quiet() {
            self.gathering.clean();
            self.stage = Stage::Leaving;
        }
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.stage != Stage::Working
    }

    /// Whether its last commit is durable.
    pub(crate) fn is_drained(&self) -> bool {
        self.stage == Stage::Leaving && self.is_quiet()
    }

    /// Whether nothing in memory is true any more.
    pub(crate) fn wants_restart(&self) -> bool {
        self.stage == Stage::BeganAnew
    }

    /// Whether pages are to come with the states of their lanes.
    pub(crate) fn reads_states(&self) -> bool {
        self.settings.uses_state || self.mode == Mode::Latest
    }

    /// How much of sidings may come into memory; nothing while the next commit has no room for what becomes of it.
    pub(crate) fn room(&self) -> Room {
        let events = if self.gathering.is_enough() { 0 } else { self.loaded_max() };
        Room {
            events: events.saturating_sub(self.book.len()),
            bytes: LOADED_BYTES_MAX.saturating_sub(self.book.bytes()),
        }
    }

    /// Whether there is room for lanes that do not wait until memory has some.
    pub(super) fn has_room_for_urgent(&self) -> bool {
        self.book.len() < 2 * self.loaded_max() && self.book.bytes() < 2 * LOADED_BYTES_MAX
    }

    /// When the next waiting event expires.
    pub(crate) fn next_expiry(&self) -> Option<Steady> {
        self.book.next_expiry().map(|tick| Steady(tick.as_micros()))
    }

    /// When the next lane that was held up since the last time is due.
    pub(crate) fn take_next_due(&mut self) -> Option<Due> {
        self.next_due_durable.take()
    }

    /// Events up to this are gone by retention: nobody had to process them here.
    pub(crate) fn skip_to(&mut self, first: EventId) {
        self.read_to = self.read_to.max(EventId(first.0.saturating_sub(1)));
    }

    /// The number after which emits are to be forwarded.
    pub(crate) fn wants_forward(&self) -> Option<u64> {
        (self.emitted > self.forwarded).then_some(self.forwarded)
    }

    /// The next lane of which more is to be loaded from its siding; those whose record is just changing wait.
    pub(crate) fn next_wanted_lane(&mut self) -> Option<LaneName> {
        if self.gathering.is_enough() {
            return None;
        }
        let at = self.wanted_lanes.iter().position(|lane| self.may_load(lane))?;
        self.wanted_lanes.remove(at)
    }

    /// The record of a lane in memory, or a new one.
    pub(super) fn record_of(&self, lane: &LaneName) -> LaneRecord {
        let known = self.book.memo(lane).and_then(|memo| memo.record.clone());
        known.unwrap_or_else(|| LaneRecord::new(lane.clone()))
    }

    /// The same for a lane with this head: what another head went through does not count for it.
    pub(super) fn record_with_head(&self, lane: &LaneName, head: EventId) -> LaneRecord {
        let record = self.record_of(lane);
        if record.head == Some(head) {
            return record;
        }
        LaneRecord { head: Some(head), attempts: 0, crashes: 0, started: false, ..record }
    }

    /// Changes the record of a lane in memory and gathers the change.
    pub(super) fn put_record(&mut self, lane: &LaneName, record: Option<LaneRecord>) {
        match &record {
            Some(_) => self.records.insert(lane),
            None if self.stays_ahead(lane) => self.records.insert(lane),
            None => self.records.remove(lane),
        }
        self.gather_record(lane, record.clone());
        self.book.memo_mut(lane).record = record;
    }

    /// Gathers the record of a lane that may not be in memory.
    pub(super) fn gather_record(&mut self, lane: &LaneName, record: Option<LaneRecord>) {
        // Both are empty most of the time: nobody looks up anything while no lane has a record.
        self.changed_lanes.insert(lane.clone());
        self.changed_since_wish.insert(lane.clone());
        let record = self.record_ahead(lane, record);
        self.records.note(lane, record.as_ref());
        self.gathering.record(lane, record);
    }
}
