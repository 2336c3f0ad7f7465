//! A seeded sequence of calls, right and wrong ones, for comparing two stores.
//!
//! The script learns from the answers of the trusted store only what a client would: fences, heads and numbers.

use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{
    Answered, Append, Commit, Define, JobEnd, JobResult, Jobs, LaneChange, LaneSelect, Lanes, ObjectWrite,
    Origin, Owner, Promote, Query, Read, ReadFrom, Request, RequestOp, Reset, Seize, Source, Stash,
    StateWrite, Trim,
};
use laneway_core::{
    BlockKind, CommitId, Delay, DelayMode, Draft, Due, EventId, Fence, Incarnation, JobDraft, JobNumber,
    Mode, Nonce, Partition, Seat, Shard, StartAfter, StartAt, Steady, StreamInfo, StreamSettings, Term,
    Terminal, TokenId,
};

use super::differential::Answer;
use crate::bench::{
    DraftExt, draft, emit, ending, inline, job_end, key, keyless, lane, lane_change, parked, retrying,
};

/// One call of a script.
#[derive(Clone, Debug)]
pub(super) enum Call {
    Define(Define),
    Append(Append),
    Promote(Promote),
    Read(Read),
    Seize(Seize),
    Lanes(Lanes),
    Commit(Box<Commit>),
    Request(Request),
    Jobs(Jobs),
    Stash(Stash),
    Query(Query),
    Trim(Trim),
    Advance(Duration),
    /// The store comes back under another incarnation, and these shards are adopted.
    Restore(Vec<Shard>),
    /// A store that is persistent is closed and opened again.
    Reopen,
}

/// The two streams of every script: a queue and a latest one, each with two processors.
const STREAMS: [(Mode, &str); 2] = [(Mode::Queue, "queue"), (Mode::Latest, "latest")];

/// Bytes of a large event.
const LARGE_BYTES: usize = 32 << 10;
/// How many calls lie between two restored backups, about.
const RESTORED_ONCE_IN: u16 = 500;
/// How many lie between two restarts, about.
const REOPENED_ONCE_IN: u16 = 250;

pub(super) struct Script {
    random: fastrand::Rng,
    numbers: u128,
    /// What is known of each seat.
    seats: Vec<Known>,
    /// Which seat the last call was about, so that its answer can be learned from.
    asked: Option<usize>,
    last_commit: Option<Commit>,
}

struct Known {
    seat: Seat,
    latest: bool,
    layout: u32,
    fence: Option<Fence>,
    head: EventId,
    request_no: u64,
    emitted: u64,
}

impl Script {
    pub(super) fn new(seed: u64, streams: &[StreamInfo]) -> Self {
        let streams: Vec<&StreamInfo> =
            STREAMS.iter().filter_map(|(_, name)| streams.iter().find(|info| info.name == *name)).collect();
        let seats = streams.iter().flat_map(|info| {
            info.processors.iter().map(|processor| Known {
                seat: Seat { shard: info.shard(Partition(0)), processor: processor.id },
                latest: info.settings.mode == Mode::Latest,
                layout: info.layout,
                fence: None,
                head: EventId(0),
                request_no: 0,
                emitted: 0,
            })
        });
        let random = fastrand::Rng::with_seed(seed);
        Self { random, numbers: 0, seats: seats.collect(), asked: None, last_commit: None }
    }

    /// Definitions to begin with.
    pub(super) fn opening() -> Vec<Define> {
        let mut defines = Vec::new();
        for (mode, name) in STREAMS {
            let settings = StreamSettings {
                partitions: 1,
                mode,
                keep: Duration::from_secs(50),
                max_pending: Some(400),
                dedup_max: 8,
                dedup_window: Duration::from_secs(3_600),
                dead_keep: Duration::from_secs(100),
                keep_done: Duration::from_secs(70),
                responder: Some("charge".to_owned()),
                forget_lanes_after: Some(Duration::from_secs(60)),
            };
            defines.push(Define::Stream { name: name.to_owned(), expect: None, settings });
        }
        defines
    }

    /// Two processors for each of the streams.
    pub(super) fn processors(streams: &[StreamInfo]) -> Vec<Define> {
        let of_script = streams.iter().filter(|info| STREAMS.iter().any(|(_, name)| info.name == *name));
        let both = of_script.flat_map(|info| ["first", "second"].map(|name| (info, name)));
        both.map(|(info, name)| Define::Processor {
            stream: info.id,
            name: format!("{}-{name}", info.name),
            start: StartAt::Beginning,
            settings: Bytes::new(),
        })
        .collect()
    }

    pub(super) fn shards(&self) -> Vec<Shard> {
        vec![self.seats[0].seat.shard, self.seats[2].seat.shard]
    }

    /// Takes over what a client would learn.
    pub(super) fn learn(&mut self, answer: &Answer) {
        let Some(known) = self.asked.take().map(|at| &mut self.seats[at]) else { return };
        known.fence = answer.fence.or(known.fence);
        known.head = answer.head.unwrap_or(known.head);
        known.request_no = answer.request_no.unwrap_or(known.request_no);
        known.emitted = answer.emitted.unwrap_or(known.emitted);
    }

    fn number(&mut self) -> u128 {
        self.numbers += 1;
        self.numbers
    }

    fn chance(&mut self, percent: u8) -> bool {
        self.random.u8(0..100) < percent
    }

    fn id(&mut self, at: usize) -> EventId {
        let head = self.seats[at].head.0;
        // Mostly near the head, sometimes above it.
        EventId(head.saturating_sub(self.random.u64(0..20)).max(1) + u64::from(self.chance(3)))
    }

    pub(super) fn next(&mut self) -> Call {
        let at = self.random.usize(0..self.seats.len());
        let seat = self.seats[at].seat;
        let shard = seat.shard;
        self.asked = None;
        if self.random.u16(0..RESTORED_ONCE_IN) == 0 {
            return Call::Restore(self.shards());
        }
        if self.random.u16(0..REOPENED_ONCE_IN) == 0 {
            return Call::Reopen;
        }
        match self.random.u8(0..100) {
            0..30 => Call::Append(self.append(at)),
            30..34 => Call::Promote(Promote { shard, limit: self.random.usize(1..5) }),
            34..40 => Call::Read(self.read(at)),
            40..48 => Call::Seize(self.seize(at)),
            48..52 => Call::Lanes(self.lanes(seat)),
            52..72 => Call::Commit(Box::new(self.commit(at))),
            72..76 => Call::Request(self.request(at)),
            76..83 => Call::Jobs(self.jobs(at)),
            83..85 => Call::Stash(self.stash(at)),
            85..92 => self.query(at),
            92..95 => Call::Trim(Trim { shard }),
            _ => Call::Advance(Duration::from_millis(self.random.u64(0..20_000))),
        }
    }

    fn draft(&mut self, at: usize) -> Draft {
        let latest = self.seats[at].latest;
        let number = self.number();
        let name = format!("lane-{}", self.random.u8(0..5));
        let keyless_too = !latest || self.chance(5);
        // Some are so large that a log does not fit into one segment.
        let width = if self.chance(8) { LARGE_BYTES } else { 0 };
        let data = format!("{number:0width$}");
        let mut made = if keyless_too && self.chance(10) { keyless(&data) } else { draft(&name, &data) };
        if self.chance(20) {
            made = made.dedup(&format!("id-{}", self.random.u8(0..12)), u128::from(self.random.u8(0..2)));
        }
        if latest || self.chance(10) {
            let generation = self.chance(60).then(|| self.random.u64(0..30));
            made = made.generation(self.random.u64(0..3), generation);
            made.delete = self.chance(5);
        }
        if self.chance(15) {
            let mode = if self.chance(20) { DelayMode::Hold } else { DelayMode::Join };
            let until = StartAfter::Delay(Duration::from_secs(self.random.u64(0..60)));
            made.delay = Some(Delay { until, mode });
        }
        if self.chance(5) {
            made = made.after(self.chance(50).then(|| EventId(self.random.u64(0..50))));
        }
        if self.chance(25) {
            let responder = self.seats[at].seat.processor;
            made.job = Some(JobDraft { responder, keep: Duration::from_secs(self.random.u64(0..90)) });
        }
        made.ttl = self.chance(10).then(|| Duration::from_secs(9));
        made.priority = if self.chance(10) { self.random.u8(..) } else { 0 };
        made
    }

    fn append(&mut self, at: usize) -> Append {
        let count = self.random.usize(1..5);
        let mut drafts: Vec<Draft> = (0..count).map(|_| self.draft(at)).collect();
        let mut origin = None;
        if self.chance(15) {
            let source = Source::Named(Bytes::from(format!("source-{}", self.random.u8(0..3))));
            origin = Some(Origin { source, term: Term(self.random.u64(1..4)) });
            let first = self.random.u64(1..40);
            for (index, draft) in drafts.iter_mut().enumerate() {
                draft.origin_seq = Some(first + index as u64);
            }
        }
        let mut object = None;
        if self.chance(10) {
            drafts.truncate(1);
            let expect = self.chance(50).then(|| self.random.u64(0..4));
            let value = self.chance(80).then(|| Bytes::from_static(b"object"));
            object = Some(ObjectWrite { expect, value });
        }
        let incarnation = Incarnation(u128::from(self.chance(2)) * 999);
        let layout = self.seats[at].layout + u32::from(self.chance(2));
        Append { shard: self.seats[at].seat.shard, incarnation, layout, origin, drafts, object }
    }

    fn read(&mut self, at: usize) -> Read {
        let from = if self.chance(70) {
            ReadFrom::After(EventId(self.seats[at].head.0.saturating_sub(self.random.u64(0..30))))
        } else {
            let mut ids: Vec<EventId> = (0..4).map(|_| self.id(at)).collect();
            ids.sort();
            ids.dedup();
            ReadFrom::Ids(ids)
        };
        let seat = self.seats[at].seat;
        let processor = Some(seat.processor);
        Read {
            shard: seat.shard,
            from,
            limit: self.random.usize(1..40),
            bytes: if self.chance(80) { 1 << 20 } else { self.random.usize(0..200) },
            processor,
            states: true,
        }
    }

    fn seize(&mut self, at: usize) -> Seize {
        self.asked = Some(at);
        let nonce = Nonce(self.number());
        let Known { seat, fence, .. } = self.seats[at];
        let stored = fence.map(|fence| Owner { term: fence.term, nonce: fence.nonce });
        let expect = if self.chance(10) { None } else { stored };
        Seize { seat, incarnation: Incarnation(0), expect, nonce, node: Bytes::from_static(b"n") }
    }

    fn lanes(&mut self, seat: Seat) -> Lanes {
        let select = match self.random.u8(0..3) {
            0 => LaneSelect::Names((0..5).map(|index| lane(&format!("lane-{index}"))).collect()),
            1 => LaneSelect::Due { within: Duration::from_secs(self.random.u64(0..1_000)), limit: 4 },
            _ => {
                let kind = self.chance(50).then_some(BlockKind::Retry);
                LaneSelect::Blocked { kind, after: self.chance(20).then(|| lane("lane-2")), limit: 3 }
            }
        };
        Lanes { seat, select, siding: 5, states: self.chance(50) }
    }

    fn commit(&mut self, at: usize) -> Commit {
        self.asked = Some(at);
        if self.chance(8)
            && let Some(last) = &self.last_commit
            && last.seat == self.seats[at].seat
        {
            return last.clone();
        }
        let (seat, mut fence) = (self.seats[at].seat, self.seats[at].fence.unwrap_or_default());
        if self.chance(8) {
            match self.random.u8(0..3) {
                0 => fence.version = fence.version.wrapping_sub(1),
                1 => fence.nonce = Nonce(fence.nonce.0.wrapping_add(1)),
                _ => fence.term = Term(fence.term.0.saturating_sub(1)),
            }
        }
        let mut commit = Commit::new(seat, fence, CommitId(self.number()));
        let ids: Vec<EventId> = (0..self.random.usize(0..8)).map(|_| self.id(at)).collect();
        commit.passed = ids.iter().copied().collect();
        for id in ids {
            self.settle(&mut commit, id);
        }
        if self.chance(20) {
            let record =
                retrying(lane("lane-1"), self.id(at), Due::Steady(Steady(self.random.u64(0..9_000_000))));
            commit.lanes.push(lane_change(record));
        }
        for _ in 0..self.random.u8(0..3) {
            commit.emits.push(emit(seat.shard.stream, "lane-0", &self.number().to_string()));
        }
        commit.forwarded = self.chance(20).then(|| self.seats[at].emitted);
        commit.requests_applied = self.chance(20).then(|| self.seats[at].request_no);
        if self.chance(20) && self.seats[at].request_no > 0 {
            let number = self.random.u64(1..=self.seats[at].request_no);
            commit.answers.push(Answered { number, answer: Bytes::from(number.to_string()) });
        }
        commit.clean = self.chance(10);
        if self.chance(2) {
            let start = match self.random.u8(0..3) {
                0 => StartAt::End,
                1 => StartAt::Beginning,
                _ => StartAt::Id(self.id(at)),
            };
            commit.reset = Some(Reset { start, clear_states: self.chance(50), quiet: false });
        }
        self.last_commit = Some(commit.clone());
        commit
    }

    /// What a commit may say about one event, right or wrong.
    fn settle(&mut self, commit: &mut Commit, id: EventId) {
        match self.random.u8(0..10) {
            0 => commit.endings.push(ending(id, Terminal::Skipped)),
            1 | 6 => {
                let keep = Duration::from_secs(self.random.u64(0..200));
                commit.jobs.push(JobEnd { keep, ..job_end(id, inline("result")) });
            }
            2 => commit.jobs.push(job_end(id, JobResult::Stashed { nonce: Nonce(1), chunks: 1 })),
            3 => {
                let name = lane(&format!("lane-{}", self.random.u8(0..5)));
                let change = LaneChange { side: vec![id], ..lane_change(parked(name.clone(), id)) };
                if commit.lanes.iter().all(|other| other.lane != name) {
                    commit.lanes.push(change);
                }
            }
            4 => {
                let name = format!("lane-{}", self.random.u8(0..5));
                if commit.states.iter().all(|other| other.key != key(&name)) {
                    let value = self.chance(80).then(|| Bytes::from(self.number().to_string()));
                    commit.states.push(StateWrite { key: key(&name), value });
                }
            }
            5 => commit.revived.push(id),
            _ => {}
        }
    }

    fn request(&mut self, at: usize) -> Request {
        let seat = self.seats[at].seat;
        let token = TokenId(u128::from(self.random.u8(0..40)));
        Request { seat, token, op: RequestOp::Cancel { id: self.id(at) } }
    }

    fn jobs(&mut self, at: usize) -> Jobs {
        let shard = self.seats[at].seat.shard;
        let number = if self.chance(70) {
            JobNumber::Event(self.id(at))
        } else {
            JobNumber::Schedule(self.random.u64(0..20))
        };
        match self.random.u8(0..6) {
            0 => Jobs::Take { shard, number, grace: Duration::from_secs(self.random.u64(0..20)) },
            1 => Jobs::Forget { shard, number },
            2 => Jobs::CancelScheduled { shard, ticket: self.random.u64(0..20) },
            _ => Jobs::Get { shard, numbers: vec![number, JobNumber::Event(self.id(at))], results: true },
        }
    }

    fn stash(&mut self, at: usize) -> Stash {
        let (shard, id) = (self.seats[at].seat.shard, self.id(at));
        Stash { shard, id, nonce: Nonce(1), index: 0, bytes: Bytes::from(self.number().to_string()) }
    }

    fn query(&mut self, at: usize) -> Call {
        let seat = self.seats[at].seat;
        let shard = seat.shard;
        let (id, limit) = (EventId(self.random.u64(0..60)), self.random.usize(1..20));
        Call::Query(match self.random.u8(0..22) {
            0 => Query::Streams,
            1 => Query::Lane(shard, key("lane-1")),
            2 => Query::Tails(shard, None, limit),
            3 => Query::Dead(seat, id, limit),
            4 => Query::Endings(seat, id, limit),
            5 => Query::Requests(seat, id.0, limit),
            6 => Query::Outbox(seat, id.0, limit),
            7 => Query::States(seat, None, limit),
            8 => Query::Ended(shard, id, limit),
            9 => Query::Scheduled(shard, id.0, limit),
            10 => Query::Urgent(shard, id, limit),
            11 => Query::Counts(shard),
            12 => Query::Store,
            13 => Query::Events(shard, self.id(at), limit),
            14 => Query::Objects(shard, self.chance(50).then(|| key("lane-1")), limit),
            15 => Query::Dedup(shard, None, limit),
            16 => Query::Sources(shard, None, limit),
            17 => Query::Tickets(shard, id.0, limit),
            18 => Query::Ends(shard, self.id(at), limit),
            19 => Query::Sided(seat, EventId(0), limit),
            20 => Query::Tokens(seat, None, limit),
            _ => {
                self.asked = Some(at);
                Query::Seats(shard)
            }
        })
    }
}
