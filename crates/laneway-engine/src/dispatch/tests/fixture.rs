//! A seat whose owner before came to a bad end, with one event per lane.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use laneway_core::store::{
    Commit, Committed, Entry, LaneView, Page, Progress, RequestOp, RequestRow, Resume, SeatStatus,
};
use laneway_core::{
    Block, CommitId, Draft, Event, EventId, Fence, Headers, Key, Kind, LaneName, LaneRecord, Mode, Nonce,
    Partition, ProcessorId, Seat as SeatId, Shard, Steady, StreamId, StreamInfo, StreamSettings, Term,
    Timestamp, TokenId, Window,
};

use super::super::fetch::Wish;
use super::super::intake::Views;
use super::super::seat::{Finished, Names, RunNo, Seat};
use super::super::settings::ProcessorSettings;
use crate::commit::{Prepared, PreparedDone};
use crate::handler::{Failure, Retry, StateChange, WhenDurable};
use crate::lane::Records;
use crate::service::{Env, Now};

pub(super) const NOW: Now = Now { steady: Steady(1_000_000), calendar: Timestamp(1_000_000) };

/// A seat in which the event with id n is the only one of lane n.
pub(super) struct Played {
    pub(super) seat: Seat,
    env: Env,
    committed: u64,
    /// What was told to the system stream.
    pub(super) reports: Vec<Draft>,
}

pub(super) fn lane(number: u64) -> LaneName {
    LaneName::Key(Key::new(format!("lane-{number}")).expect("a short key"))
}

/// An event of a lane.
pub(crate) fn event_in(number: u64, id: u64) -> Event {
    let LaneName::Key(key) = lane(number) else { unreachable!("lanes of this fixture have keys") };
    Event {
        id: EventId(id),
        prev: None,
        seq: None,
        key: Some(key),
        kind: Kind::default(),
        data: Bytes::new(),
        headers: Headers::default(),
        time: Timestamp(0),
        generation: None,
        incarnation: 0,
        delete: false,
        priority: 0,
        expires_at: None,
        hold_until: None,
        job: None,
    }
}

/// The stream of the seat.
pub(super) fn stream() -> StreamInfo {
    StreamInfo {
        id: StreamId(1),
        name: "orders".to_owned(),
        version: 1,
        settings: StreamSettings { partitions: 1, mode: Mode::Queue, ..StreamSettings::default() },
        layout: 0,
        processors: Vec::new(),
    }
}

impl Played {
    /// After a crash that left these lanes with a committed start and so many crashes before; the others had none.
    pub(super) fn after_crash(events: u64, started: &[(u64, u32)]) -> Self {
        let mut played = Self::resumed(events, started);
        (1..=events).for_each(|number| played.read(number));
        played
    }

    /// Takes in the event of a lane.
    pub(super) fn read(&mut self, number: u64) {
        self.read_in(number, number);
    }

    /// Takes in an event of a lane.
    pub(super) fn read_in(&mut self, lane: u64, id: u64) {
        let entries = vec![Entry::Event(event_in(lane, id))];
        let head = EventId(id);
        let page = Page { entries, head, request_no: 0, next_due: None, states: Vec::new() };
        self.seat.take_page(page, &Views::new(), NOW);
    }

    /// The same before anything was read.
    pub(super) fn resumed(events: u64, started: &[(u64, u32)]) -> Self {
        Self::with(events, started, false, ProcessorSettings::default())
    }

    /// A seat that its owner before left well.
    pub(super) fn clean(settings: ProcessorSettings) -> Self {
        Self::with(0, &[], true, settings)
    }

    fn with(events: u64, started: &[(u64, u32)], clean: bool, settings: ProcessorSettings) -> Self {
        let shard = Shard { stream: StreamId(1), partition: Partition(0) };
        let id = SeatId { shard, processor: ProcessorId(1) };
        let fence = Fence { term: Term(2), nonce: Nonce(2), version: 0, adoptions: 0 };
        let progress = Progress {
            fence,
            node: Bytes::new(),
            window: Window::at(EventId(0)),
            clean,
            requests_applied: 0,
            emitted: 0,
            forwarded: 0,
            note: Bytes::new(),
            status: SeatStatus::Run,
            incarnation: 0,
        };
        let resume = Resume { progress, head: EventId(events), gaps: Vec::new(), request_no: 0 };
        let known: BTreeSet<LaneName> = started.iter().map(|(number, _)| lane(*number)).collect();
        let records = Records::new(Some(known), BTreeSet::new());
        let stream = stream();
        let names =
            Names { stream: "orders".into(), processor: "charge".into(), reports_to: Some(StreamId(9)) };
        let mut seat = Seat::new(id, Arc::new(settings), &stream, names, resume, records)
            .expect("a note that can be read");
        for (number, crashes) in started {
            let record = LaneRecord {
                block: Some(Block::Running { since: Timestamp(0), progress: Bytes::new() }),
                head: Some(EventId(*number)),
                crashes: *crashes,
                started: true,
                ..LaneRecord::new(lane(*number))
            };
            seat.resume_lane(&LaneView { record, state: None, siding: Vec::new() }, false, NOW);
        }
        let clock = Arc::new(laneway_core::ManualClock::default());
        Self { seat, env: Env::seeded(clock, 1), committed: 0, reports: Vec::new() }
    }

    /// Starts whatever may start, and lets commits become durable, until nothing moves. Answers the lanes that started.
    pub(super) fn start_all(&mut self) -> Vec<(RunNo, u64)> {
        let mut started = Vec::new();
        loop {
            let before = (started.len(), self.committed);
            while let Some(run) = self.seat.start_run(NOW) {
                assert_eq!(run.lanes.len(), 1, "one lane per run");
                started.push((run.number, run.lanes[0].events[0].id.0));
            }
            self.commit();
            if before == (started.len(), self.committed) {
                return started;
            }
        }
    }

    /// A run of one event is done; that is gathered.
    pub(super) fn done(&mut self, run: RunNo) {
        self.answered(run, vec![done(1)]);
    }

    /// A run is over with these answers, one per lane; they are gathered.
    pub(super) fn answered(&mut self, run: RunNo, answers: Vec<Prepared>) {
        self.seat.finished(run, Finished { answers, started_at: Timestamp(0), took: None });
        self.seat.settle(&self.env, NOW);
    }

    /// Somebody asks for something of a lane that the store shows so.
    pub(super) fn ask(&mut self, number: u64, op: RequestOp, lane: Option<LaneView>) {
        let mut wish = wish(number, op);
        if let RequestOp::Cancel { id } = &wish.row.op {
            wish.event = Some(Entry::Event(event_in(1, id.0)));
            wish.sided = lane.as_ref().is_some_and(|view| view.siding.contains(id));
        }
        wish.lane = lane;
        self.seat.wish_sent();
        self.decide(wish);
    }

    /// A request that was looked up is decided.
    pub(super) fn decide(&mut self, wish: Wish) {
        self.seat.grant(&self.env, wish, NOW);
    }

    /// The next commit, on its way.
    pub(super) fn sent(&mut self) -> Option<Commit> {
        self.seat.next_commit(|| CommitId(1), NOW)
    }

    /// That commit is durable.
    pub(super) fn durable(&mut self, commit: &Commit) {
        self.durable_to(commit, EventId(0));
    }

    /// That commit is durable, and every id up to the floor is passed.
    pub(super) fn durable_to(&mut self, commit: &Commit, floor: EventId) {
        self.committed += 1;
        self.reports.extend(commit.emits.iter().map(|emit| emit.draft.clone()));
        let fence = Fence { version: self.committed, ..commit.fence };
        self.seat.committed(Committed { fence, floor, request_no: 0, emitted: 0 }, NOW);
    }

    pub(super) fn env(&self) -> &Env {
        &self.env
    }

    /// What was gathered becomes durable.
    pub(super) fn commit(&mut self) {
        if let Some(commit) = self.sent() {
            self.durable(&commit);
        }
    }
}

/// A request, with nothing looked up for it.
pub(super) fn wish(number: u64, op: RequestOp) -> Wish {
    Wish::new(RequestRow { number, token: TokenId(number.into()), op }, number - 1)
}

/// The answer for a lane of which so many events are done.
pub(super) fn done(events: usize) -> Prepared {
    let done = || PreparedDone { result: laneway_core::store::JobResult::None, emits: Vec::new() };
    Prepared {
        done: std::iter::repeat_with(done).take(events).collect(),
        state: StateChange::Keep,
        failure: None,
        when_durable: WhenDurable::default(),
    }
}

/// The answer for a lane whose head failed.
pub(super) fn failed() -> Prepared {
    Prepared { failure: Some(Failure { error: "as told".to_owned(), retry: Retry::ByPolicy }), ..done(0) }
}
