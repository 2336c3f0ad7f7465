//! A seat whose owner before came to a bad end, with one event per lane.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use laneway_core::store::{Committed, Entry, LaneView, Page, Progress, Resume, SeatStatus};
use laneway_core::{
    Block, CommitId, Draft, Event, EventId, Fence, Headers, Key, Kind, LaneName, LaneRecord, Mode, Nonce,
    Partition, ProcessorId, Seat as SeatId, Shard, Steady, StreamId, StreamInfo, StreamSettings, Term,
    Timestamp, Window,
};

use super::super::intake::Views;
use super::super::seat::{Finished, Names, RunNo, Seat};
use super::super::settings::ProcessorSettings;
use crate::commit::{Prepared, PreparedDone};
use crate::handler::{StateChange, WhenDurable};
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

fn event(number: u64) -> Event {
    let LaneName::Key(key) = lane(number) else { unreachable!("lanes of this fixture have keys") };
    Event {
        id: EventId(number),
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

impl Played {
    /// After a crash that left these lanes with a committed start and so many crashes before; the others had none.
    pub(super) fn after_crash(events: u64, started: &[(u64, u32)]) -> Self {
        let mut played = Self::resumed(events, started);
        (1..=events).for_each(|number| played.read(number));
        played
    }

    /// Takes in the event of a lane.
    pub(super) fn read(&mut self, number: u64) {
        let entries = vec![Entry::Event(event(number))];
        let head = EventId(number);
        let page = Page { entries, head, request_no: 0, next_due: None, states: Vec::new() };
        self.seat.take_page(page, &Views::new(), NOW);
    }

    /// The same before anything was read.
    pub(super) fn resumed(events: u64, started: &[(u64, u32)]) -> Self {
        let shard = Shard { stream: StreamId(1), partition: Partition(0) };
        let id = SeatId { shard, processor: ProcessorId(1) };
        let fence = Fence { term: Term(2), nonce: Nonce(2), version: 0, adoptions: 0 };
        let progress = Progress {
            fence,
            node: Bytes::new(),
            window: Window::at(EventId(0)),
            clean: false,
            requests_applied: 0,
            emitted: 0,
            forwarded: 0,
            status: SeatStatus::Run,
            incarnation: 0,
        };
        let resume = Resume { progress, head: EventId(events), request_no: 0 };
        let known: BTreeSet<LaneName> = started.iter().map(|(number, _)| lane(*number)).collect();
        let records = Records::new(Some(known));
        let settings = StreamSettings { partitions: 1, mode: Mode::Queue, ..StreamSettings::default() };
        let stream = StreamInfo {
            id: shard.stream,
            name: "orders".to_owned(),
            version: 1,
            settings,
            layout: 0,
            processors: Vec::new(),
        };
        let names =
            Names { stream: "orders".into(), processor: "charge".into(), reports_to: Some(StreamId(9)) };
        let settings = Arc::new(ProcessorSettings::default());
        let mut seat = Seat::new(id, settings, &stream, names, resume, records);
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

    /// A run is done, and that is durable.
    pub(super) fn done(&mut self, run: RunNo) {
        let done = vec![PreparedDone { result: laneway_core::store::JobResult::None, emits: Vec::new() }];
        let when_durable = WhenDurable::default();
        let answers = vec![Prepared { done, state: StateChange::Keep, failure: None, when_durable }];
        self.seat.finished(run, Finished { answers, started_at: Timestamp(0) });
        self.seat.settle(&self.env, NOW);
    }

    /// What was gathered becomes durable.
    pub(super) fn commit(&mut self) {
        let Some(commit) = self.seat.next_commit(|| CommitId(1), NOW) else { return };
        self.committed += 1;
        self.reports.extend(commit.emits.into_iter().map(|emit| emit.draft));
        let fence = Fence { version: self.committed, ..commit.fence };
        self.seat.committed(Committed { fence, floor: EventId(0), request_no: 0, emitted: 0 }, NOW);
    }
}
