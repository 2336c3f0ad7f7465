//! A handler that brings the process down is parked after its limit, and only its event (contract 1.5).
//!
//! 64 lanes run together when it happens, so that a crash accuses all of them. The parent starts the process again
//! until it ends in good order.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{Define, LaneSelect, LaneView, Lanes};
use laneway_core::{
    Block, Draft, JobId, Key, Kind, Partition, Seat, StartAt, Status, Store, StreamSettings, Terminal,
};
use laneway_engine::handler::{LaneAnswer, Policy, Run};
use laneway_engine::job::Submit;
use laneway_engine::{Engine, ProcessorSettings};
use tokio::sync::Notify;

use crate::child::{self, LIFE_MAX, Working, report};
use crate::open::open;
use crate::print::print;
use crate::seam;

const TEST: &str = "poison::runs_until_the_poison";
const LANES: usize = 64;
/// Events of each lane; the second of one lane is the poison.
const EVENTS_EACH: usize = 3;
const POISONED: usize = 17;
const PARTITIONS: u32 = 4;
const LIMIT: u32 = 3;
/// Starts of the process after which it should long have been parked.
const LIVES_MAX: u64 = 9;
/// Lives in which all lanes run together: the clean one, and the first after a crash.
const TOGETHER: u64 = 2;

fn name(lane: usize) -> String {
    format!("lane-{lane}")
}

fn event(lane: usize, number: usize) -> Draft {
    let key = Key::new(name(lane)).expect("a short key");
    let is_poison = lane == POISONED && number == 1;
    Draft::new(Some(key), Kind::default(), if is_poison { "poison".to_owned() } else { number.to_string() })
}

/// Fills an empty folder; answers the jobs that its events are.
async fn found(dir: &Path) -> Vec<JobId> {
    let (store, engine) = open(dir, 0);
    let settings = StreamSettings { partitions: PARTITIONS, ..StreamSettings::default() };
    let stream = engine.define_stream("orders", settings).await.expect("a new stream").id;
    let name = "charge".to_owned();
    let define = Define::Processor { stream, name, start: StartAt::Beginning, settings: Bytes::new() };
    engine.catalogue().define(define).await.expect("a new processor");
    let mut jobs = Vec::new();
    for number in 0..EVENTS_EACH {
        for lane in 0..LANES {
            let draft = event(lane, number);
            let submit = vec![Submit { draft, processor: None, keep: None }];
            let submitted = engine.jobs().submit("orders", submit).await.expect("the stream exists");
            jobs.extend(submitted.into_iter().map(|job| job.expect("the store takes it").id));
        }
    }
    store.close().expect("closes in order");
    jobs
}

/// What handlers of one life know of each other.
#[derive(Default)]
struct Company {
    running: AtomicUsize,
    came: Notify,
}

impl Company {
    /// The poison waits until everybody runs, so that the crash accuses as many as it can.
    async fn gather(&self) {
        loop {
            let came = self.came.notified();
            if self.running.load(Ordering::SeqCst) == LANES - 1 {
                return;
            }
            came.await;
        }
    }

    /// Runs until the poison brings the process down.
    async fn wait_for_the_end(&self) {
        self.running.fetch_add(1, Ordering::SeqCst);
        self.came.notify_waiters();
        std::future::pending::<()>().await;
    }
}

async fn handle(run: Run, life: u64, company: Arc<Company>) -> Vec<LaneAnswer> {
    let event = &run.lanes[0].events[0];
    let lane = event.key.as_ref().expect("events of this proof have keys").to_string();
    let data = String::from_utf8_lossy(&event.data).into_owned();
    report(&format!("start {lane} {data}"));
    let together = life <= TOGETHER;
    match data.as_str() {
        "poison" => {
            if together {
                company.gather().await;
            }
            report("crash");
            std::process::abort();
        }
        "0" if together && lane != name(POISONED) => company.wait_for_the_end().await,
        // Others get the chance to start beside it.
        _ => {
            for _ in 0..200 {
                tokio::task::yield_now().await;
            }
        }
    }
    report(&format!("end {lane} {data}"));
    run.lanes.iter().map(LaneAnswer::all_done).collect()
}

/// Waits for all events but the one behind the poison.
async fn tell_what_became_of(engine: Engine, jobs: Vec<JobId>) {
    let (mut done, mut parked) = (0, 0);
    for (at, id) in jobs.into_iter().enumerate() {
        if at % LANES == POISONED && at / LANES == 2 {
            continue;
        }
        let job = engine.jobs().wait(id, LIFE_MAX).await.expect("all events are jobs");
        done += usize::from(job.status.status() == Status::Ended(Terminal::Done));
        parked += usize::from(job.status.status() == Status::Parked);
    }
    report(&format!("settled {done} {parked}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_until_the_poison() {
    let Some(orders) = child::orders() else { return };
    let parts: Vec<&str> = orders.splitn(4, ' ').collect();
    let [life, limit, jobs, dir] = parts[..] else { panic!("four parts: {orders}") };
    let life: u64 = life.parse().expect("a number");
    report("\nopening");
    let (store, engine) = open(Path::new(dir), life);
    let policy = Policy { crashes_max: limit.parse().expect("a number"), ..Policy::default() };
    let settings = ProcessorSettings { policy, concurrency: LANES, ..ProcessorSettings::default() };
    let company = Arc::new(Company::default());
    let handler = move |run: Run| handle(run, life, Arc::clone(&company));
    engine.process("charge", "orders", settings, Arc::new(handler)).await.expect("the stream exists");
    let jobs: Vec<JobId> = jobs.split(',').map(|id| id.parse().expect("the id of a job")).collect();
    // Ends with the process at the latest.
    drop(seam::spawn(tell_what_became_of(engine.clone(), jobs)));
    let told = seam::within(LIFE_MAX, seam::input_closed()).await;
    assert!(told.is_some(), "nobody told this process to end");
    engine.drain(Duration::from_secs(30)).await;
    store.close().expect("closes in order");
    report("closed");
}

/// What the lives of one folder came to.
#[derive(Debug, Default)]
struct Lived {
    lives: u64,
    crashes: u64,
    /// What became of the events, once it is known of all: done and parked.
    settled: Option<String>,
    /// Most lanes that were accused and ran at the same time.
    accused_together: usize,
}

impl Lived {
    /// Starts the process again and again, until everything is settled or it was enough.
    fn live(&mut self, dir: &Path, jobs: &[JobId], limit: u32) {
        let jobs = jobs.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let mut accused: BTreeSet<String> = BTreeSet::new();
        while self.lives < LIVES_MAX {
            self.lives += 1;
            let orders = format!("{} {limit} {jobs} {}", self.lives, dir.display());
            let mut working = Working::start(TEST, &orders);
            let mut running: BTreeSet<String> = BTreeSet::new();
            while let Some(line) = working.line() {
                self.hear(&line, &mut running, &accused);
                if self.settled.is_some() {
                    working.finish();
                    return;
                }
            }
            working.end();
            // The crash of a life that began clean accuses nobody: no start was written down.
            if self.lives > 1 {
                accused.extend(running);
            }
        }
    }

    fn hear(&mut self, line: &str, running: &mut BTreeSet<String>, accused: &BTreeSet<String>) {
        match line.split_once(' ') {
            Some(("start", event)) => {
                running.insert(event.to_owned());
                let together = running.iter().filter(|event| accused.contains(*event)).count();
                self.accused_together = self.accused_together.max(together);
            }
            Some(("end", event)) => {
                running.remove(event);
            }
            Some(("settled", counts)) => self.settled = Some(counts.to_owned()),
            _ => self.crashes += u64::from(line == "crash"),
        }
    }
}

async fn parked(engine: &Engine, store: &impl Store) -> Vec<LaneView> {
    let (info, processor) = engine.catalogue().processor("charge").await.expect("it is registered");
    let mut held = Vec::new();
    for partition in 0..PARTITIONS {
        let seat = Seat { shard: info.shard(Partition(partition)), processor };
        let select = LaneSelect::Blocked { kind: None, after: None, limit: 100 };
        held.extend(store.lanes(Lanes { seat, select, siding: 10, states: true }).await.expect("readable"));
    }
    held
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killer_is_parked_alone() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let dir = temporary.path().join("store");
    let jobs = found(&dir).await;
    let mut lived = Lived::default();
    lived.live(&dir, &jobs, LIMIT);
    let (store, engine) = open(&dir, u64::MAX);
    let held = parked(&engine, &store).await;
    print(&format!(
        "{LANES} lanes, {} crashes in {} lives: events done and parked: {}; lanes held up: {}; at most {} accused at a \
         time",
        lived.crashes,
        lived.lives,
        lived.settled.as_deref().unwrap_or("unknown"),
        held.len(),
        lived.accused_together
    ));
    assert_eq!(lived.settled, Some(format!("{} 1", LANES * EVENTS_EACH - 2)), "{lived:?}");
    let [view] = &held[..] else { panic!("one lane is parked: {held:?}") };
    assert_eq!(view.record.lane.to_string(), name(POISONED));
    assert!(matches!(view.record.block, Some(Block::Parked { .. })), "{view:?}");
    assert_eq!((view.record.crashes, view.siding.first().copied()), (LIMIT, view.record.head));
    // A clean start writes nothing down, so its crash counts for nobody; from then on each counts for the killer.
    assert_eq!(lived.crashes, u64::from(LIMIT) + 1);
    assert_eq!(lived.accused_together, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn control_without_a_limit_the_killer_goes_on() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let dir = temporary.path().join("store");
    let jobs = found(&dir).await;
    let mut lived = Lived::default();
    lived.live(&dir, &jobs, u32::MAX);
    assert_eq!((lived.lives, lived.crashes), (LIVES_MAX, LIVES_MAX), "{lived:?}");
}
