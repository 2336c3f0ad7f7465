//! Latest mode against a model: random histories of appends, failures, requests and restarts, and what must come of them.
//!
//! The model is small: it knows which version of an object is newest, and that every accepted event ends once, as done or
//! as superseded by a newer event or by one of its own version that was done. Which event runs when is left open; what
//! may not happen is not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::store::{Query, Receipt, Rows};
use laneway_core::{BlockKind, EventId, JobId, Key, LaneName, Mode, Partition, Seat, Terminal};
use laneway_engine::ProcessorSettings;
use laneway_engine::handler::{LaneAnswer, Policy, Retry, Run};
use laneway_engine::job::{JobError, JobStatus, Submit};
use parking_lot::Mutex;

use crate::seam;
use crate::world::{SOON, World, draft};

const HISTORIES: u64 = 3_000;
const STEPS: usize = 14;
const KEYS: [&str; 2] = ["ann", "bob"];

/// What the model knows of a lane: its newest version, and whether that was a delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    incarnation: u64,
    generation: u64,
}

#[derive(Debug, Clone)]
struct Accepted {
    lane: usize,
    id: EventId,
    job: JobId,
    version: Version,
}

#[derive(Debug, Clone)]
struct Ran {
    id: EventId,
    attempt: u32,
    /// What the handler answered: whether the event is done.
    done: bool,
}

#[derive(Debug, Default)]
struct Book {
    runs: Vec<Ran>,
    /// Nothing fails any more.
    calm: bool,
    random: Option<fastrand::Rng>,
}

struct History {
    seed: u64,
    random: fastrand::Rng,
    world: World,
    book: Arc<Mutex<Book>>,
    newest: BTreeMap<usize, (Version, bool)>,
    accepted: Vec<Accepted>,
}

impl History {
    async fn new(seed: u64) -> Self {
        let book = Book { random: Some(fastrand::Rng::with_seed(seed ^ 0xfeed)), ..Book::default() };
        let this = Self {
            seed,
            random: fastrand::Rng::with_seed(seed),
            world: World::with_partitions(Mode::Latest, 1).await,
            book: Arc::new(Mutex::new(book)),
            newest: BTreeMap::new(),
            accepted: Vec::new(),
        };
        this.process().await;
        this
    }

    async fn process(&self) {
        let book = Arc::clone(&self.book);
        let handler = move |run: Run| {
            let book = Arc::clone(&book);
            async move {
                let lane = &run.lanes[0];
                // Noted when it starts: a run that a crash left behind may end whenever it likes.
                let (chance, calm, number) = {
                    let mut book = book.lock();
                    book.runs.push(Ran { id: lane.events[0].id, attempt: lane.attempt, done: false });
                    let (calm, number) = (book.calm, book.runs.len() - 1);
                    (book.random.as_mut().map_or(0, |random| random.u8(0..10)), calm, number)
                };
                if chance % 2 == 1 {
                    seam::wait(Duration::from_millis(50)).await;
                }
                let answer = match chance {
                    0..=5 => LaneAnswer::done(None),
                    _ if calm => LaneAnswer::done(None),
                    6 | 7 => LaneAnswer::failed("later", Retry::ByPolicy),
                    _ => LaneAnswer::failed("never", Retry::Never),
                };
                book.lock().runs[number].done = answer.failure.is_none();
                vec![answer]
            }
        };
        let policy = Policy { max_attempts: 3, backoff: Duration::from_millis(200), ..Policy::default() };
        let settings = ProcessorSettings { policy, ..ProcessorSettings::default() };
        let started = self.world.engine.process("charge", "orders", settings, Arc::new(handler)).await;
        started.expect("a new processor");
    }

    async fn step(&mut self) {
        match self.random.u8(0..20) {
            0..=10 => self.append().await,
            11..=13 => seam::wait(Duration::from_millis(self.random.u64(1..400))).await,
            14 | 15 => self.request().await,
            16 => self.drain().await,
            17 => self.crash().await,
            _ => seam::wait(Duration::from_millis(1)).await,
        }
    }

    async fn append(&mut self) {
        let lane = self.random.usize(0..KEYS.len());
        let before = self.newest.get(&lane).copied();
        let mut wanted = draft(KEYS[lane], "x");
        wanted.incarnation =
            before.map_or(0, |(version, _)| version.incarnation) + u64::from(self.random.u8(0..8) == 0);
        let known = before.map_or(0, |(version, _)| version.generation);
        wanted.generation = self.random.bool().then(|| (known + self.random.u64(0..3)).saturating_sub(1));
        wanted.delete = self.random.u8(0..8) == 0;
        let expected = judge(before, wanted.incarnation, wanted.generation);
        let delete = wanted.delete;
        let job = Submit { draft: wanted, processor: None, keep: None };
        let answer = self.world.engine.jobs().submit("orders", vec![job]).await.expect("the stream exists");
        match (answer.into_iter().next().expect("one answer"), expected) {
            (Ok(submitted), Some(version)) => {
                let Receipt::New { id, .. } = submitted.receipt else { panic!("{:?}", submitted.receipt) };
                self.newest.insert(lane, (version, delete));
                self.accepted.push(Accepted { lane, id, job: submitted.id, version });
            }
            (Err(JobError::NotMade(_)), None) => {}
            (answer, expected) => panic!("seed {}: {answer:?}, the model says {expected:?}", self.seed),
        }
    }

    async fn request(&mut self) {
        let lane = self.random.usize(0..KEYS.len());
        let key = Key::new(KEYS[lane]).expect("a short key");
        let operator = self.world.engine.operator();
        let filed = match self.random.u8(0..4) {
            0 => operator.pause_lane("charge", &key, "anna").await,
            1 => operator.resume_lane("charge", &key).await,
            _ => {
                let head = self.accepted.iter().rev().find(|event| event.lane == lane).map(|event| event.id);
                operator.retry("charge", &key, head.unwrap_or(EventId(1))).await
            }
        };
        filed.expect("it is filed");
    }

    async fn drain(&mut self) {
        self.world.engine.drain(SOON).await;
        self.world = self.world.again();
        self.process().await;
    }

    async fn crash(&mut self) {
        let again = self.world.again();
        drop(std::mem::replace(&mut self.world, again));
        self.process().await;
    }

    /// Nothing fails any more, nobody holds anything up: everything comes to its end.
    async fn calm_down(&mut self) {
        self.book.lock().calm = true;
        seam::wait(Duration::from_secs(2)).await;
        self.check_only_the_newest_waits().await;
        for key in KEYS {
            let key = Key::new(key).expect("a short key");
            self.world.engine.operator().resume_lane("charge", &key).await.expect("it is filed");
        }
        seam::wait(Duration::from_secs(8)).await;
    }

    /// Whatever holds a lane up, except a pause, holds up its newest event alone: a newer one frees the lane.
    async fn check_only_the_newest_waits(&self) {
        let paused = self.world.engine.looker().held_lanes("charge", Some(BlockKind::Paused), 10).await;
        let paused: Vec<_> = paused.expect("listed").into_iter().map(|held| held.record.lane).collect();
        let ends = self.ends().await;
        for (lane, key) in KEYS.iter().enumerate() {
            if paused.contains(&LaneName::Key(Key::new(*key).expect("a short key"))) {
                continue;
            }
            let events: Vec<&Accepted> = self.accepted.iter().filter(|event| event.lane == lane).collect();
            let Some((newest, older)) = events.split_last() else { continue };
            let waits = older.iter().find(|event| !ends.contains_key(&event.id));
            assert!(waits.is_none(), "seed {}: {waits:?} waits although {newest:?} is newer", self.seed);
        }
    }

    async fn check(&self) {
        let ends = self.ends().await;
        let winners = self.winners().await;
        let seed = self.seed;
        let of = |id: EventId| self.accepted.iter().find(|event| event.id == id);
        for event in &self.accepted {
            let end = ends.get(&event.id).unwrap_or_else(|| panic!("seed {seed}: {event:?} has not ended"));
            match end {
                Terminal::Done => {
                    let ran = self.book.lock().runs.iter().any(|run| run.id == event.id && run.done);
                    assert!(ran, "seed {seed}: {event:?} is done and never ran");
                }
                Terminal::Superseded => {
                    let winner = winners.get(&event.id).copied().flatten().and_then(of);
                    let winner = winner.unwrap_or_else(|| panic!("seed {seed}: {event:?} names no winner"));
                    let same_done =
                        winner.version == event.version && ends.get(&winner.id) == Some(&Terminal::Done);
                    let right = winner.lane == event.lane && (winner.id > event.id || same_done);
                    assert!(right, "seed {seed}: {event:?} was superseded by {winner:?}");
                }
                other => panic!("seed {seed}: {event:?} ended {other}"),
            }
        }
        for lane in 0..KEYS.len() {
            self.check_lane(lane, &ends);
        }
    }

    fn check_lane(&self, lane: usize, ends: &BTreeMap<EventId, Terminal>) {
        let seed = self.seed;
        let events: Vec<&Accepted> = self.accepted.iter().filter(|event| event.lane == lane).collect();
        let done: Vec<Version> = events
            .iter()
            .filter(|event| ends.get(&event.id) == Some(&Terminal::Done))
            .map(|event| event.version)
            .collect();
        let mut apart = done.clone();
        apart.dedup();
        assert_eq!(done, apart, "seed {seed}: a version was done twice in lane {lane}");
        if let Some(newest) = events.last() {
            assert!(done.contains(&newest.version), "seed {seed}: the newest of lane {lane} is not done");
        }
        let runs: Vec<Ran> = self.book.lock().runs.clone();
        let mut last: Option<&Ran> = None;
        for run in runs.iter().filter(|run| events.iter().any(|event| event.id == run.id)) {
            if let Some(last) = last {
                assert!(run.id >= last.id, "seed {seed}: {run:?} came after {last:?}");
            }
            if last.is_none_or(|last| last.id != run.id) {
                assert_eq!(run.attempt, 1, "seed {seed}: a new event begins with no attempts");
            }
            last = Some(run);
        }
    }

    async fn ends(&self) -> BTreeMap<EventId, Terminal> {
        let mut ends = BTreeMap::new();
        for event in &self.accepted {
            let job = self.world.engine.jobs().get(event.job).await.expect("the job is known");
            if let JobStatus::Ended { end, .. } = job.status {
                ends.insert(event.id, end.end);
            }
        }
        ends
    }

    async fn winners(&self) -> BTreeMap<EventId, Option<EventId>> {
        let (info, processor) = self.world.engine.catalogue().processor("charge").await.expect("it exists");
        let seat = Seat { shard: info.shard(Partition(0)), processor };
        let rows = self.world.store_query(Query::Endings(seat, EventId(0), 1_000)).await;
        let Rows::Endings(rows) = rows else { panic!("a list of ends") };
        rows.into_iter().map(|ending| (ending.id, ending.winner)).collect()
    }
}

/// The version under which an append is accepted; nothing when it is stale.
fn judge(before: Option<(Version, bool)>, incarnation: u64, generation: Option<u64>) -> Option<Version> {
    let Some((newest, deleted)) = before.filter(|(newest, _)| newest.incarnation >= incarnation) else {
        return Some(Version { incarnation, generation: generation.unwrap_or(1) });
    };
    let generation = generation.unwrap_or(newest.generation + 1);
    let newer = if deleted { false } else { generation >= newest.generation };
    (newest.incarnation == incarnation && newer).then_some(Version { incarnation, generation })
}

async fn play(seed: u64) -> usize {
    let mut history = History::new(seed).await;
    for _ in 0..STEPS {
        history.step().await;
    }
    history.calm_down().await;
    history.check().await;
    history.accepted.len()
}

#[tokio::test(start_paused = true)]
async fn random_histories_of_latest_mode_agree_with_the_model() {
    let mut events = 0;
    for seed in 0..HISTORIES {
        events += play(seed).await;
    }
    println!("{HISTORIES} histories, seeds 0 to {}, {events} events", HISTORIES - 1);
    assert!(events as u64 > 3 * HISTORIES, "histories without events prove nothing");
}
