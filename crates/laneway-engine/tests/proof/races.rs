//! Cancel races on paused time: whatever a job is doing when it is cancelled, it ends once, and its lane goes on.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use laneway_core::event::{Delay, DelayMode, StartAfter};
use laneway_core::{Draft, JobId, Key, Kind, Status, StreamSettings, Terminal};
use laneway_embedded::MemoryStore;
use laneway_engine::handler::{LaneAnswer, Policy, Retry, Run};
use laneway_engine::job::{JobError, Submit};
use laneway_engine::service::TokioClock;
use laneway_engine::{Engine, Env, ProcessorSettings, Stores};
use parking_lot::Mutex;

use crate::print::print;
use crate::seam;

const WORLDS: u64 = 20;
const RACES_EACH: u64 = 25;
/// Few lanes and places, so that jobs wait behind each other.
const LANES: u64 = 6;
const PLACES: usize = 3;
/// Longer than anything takes, on paused time.
const LONG: Duration = Duration::from_secs(3_600);

/// What a job does when it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Quick,
    Slow,
    UntilCancelled,
    /// Takes no notice of a cancel.
    Stubborn,
    Fails,
    Broken,
}

const ALL: [Does; 6] =
    [Does::Quick, Does::Slow, Does::UntilCancelled, Does::Stubborn, Does::Fails, Does::Broken];

/// One job and its cancel.
#[derive(Clone, Copy, Debug)]
struct Race {
    number: u64,
    lane: u64,
    does: Does,
    delay: Option<(Duration, DelayMode)>,
    submit_after: Duration,
    cancel_after: Duration,
    cancels: u32,
}

impl Race {
    fn draw(number: u64, rng: &mut fastrand::Rng) -> Self {
        let mut millis = |most: u64| Duration::from_millis(rng.u64(0..most));
        let (submit_after, cancel_after, wait) = (millis(400), millis(600), millis(300));
        let mode = if rng.bool() { DelayMode::Join } else { DelayMode::Hold };
        Self {
            number,
            lane: rng.u64(0..LANES),
            does: ALL[rng.usize(0..ALL.len())],
            delay: (rng.u8(0..4) == 0).then_some((wait, mode)),
            submit_after,
            // Some cancels come at once, and some long after everything else.
            cancel_after: [Duration::ZERO, cancel_after, cancel_after, 20 * cancel_after][rng.usize(0..4)],
            cancels: rng.u32(1..3),
        }
    }

    fn draft(&self) -> Draft {
        let key = Key::new(format!("lane-{}", self.lane)).expect("a short key");
        let data = format!("{} {:?}", self.number, self.does);
        let delay = self.delay.map(|(wait, mode)| Delay { until: StartAfter::Delay(wait), mode });
        Draft { delay, ..Draft::new(Some(key), Kind::default(), data) }
    }
}

/// What handlers did, by number of the job.
#[derive(Debug, Default)]
struct Seen {
    started: BTreeSet<u64>,
    completed: BTreeSet<u64>,
    /// Jobs that somebody was told have ended: they must not run any more.
    ended: BTreeSet<u64>,
    late: Vec<u64>,
}

async fn handle(run: Run, seen: Arc<Mutex<Seen>>) -> Vec<LaneAnswer> {
    let lane = &run.lanes[0];
    let text = String::from_utf8_lossy(&lane.events[0].data).into_owned();
    let (number, does) = text.split_once(' ').expect("a number and what to do");
    let number: u64 = number.parse().expect("a number");
    {
        let mut seen = seen.lock();
        seen.started.insert(number);
        if seen.ended.contains(&number) {
            seen.late.push(number);
        }
    }
    let does = ALL.into_iter().find(|known| format!("{known:?}") == does).expect("one of them");
    match does {
        Does::Quick => {}
        Does::Slow => seam::wait(Duration::from_millis(40 + number % 60)).await,
        Does::UntilCancelled => {
            run.cancel.cancelled().await;
            return vec![LaneAnswer::failed("stopped", Retry::ByPolicy)];
        }
        Does::Stubborn => seam::wait(Duration::from_secs(9)).await,
        Does::Fails => return vec![LaneAnswer::failed("as planned", Retry::ByPolicy)],
        Does::Broken => return vec![LaneAnswer::failed("broken for good", Retry::Never)],
    }
    seen.lock().completed.insert(number);
    vec![LaneAnswer::all_done(lane)]
}

struct World {
    engine: Engine,
    env: Env,
    seen: Arc<Mutex<Seen>>,
}

impl World {
    async fn new(seed: u64) -> Self {
        let clock = Arc::new(TokioClock::start());
        let env = Env::seeded(clock.clone(), seed);
        let store = Arc::new(MemoryStore::new(clock));
        let stores = Stores { store: store.clone(), documents: store.clone(), wakeups: store };
        let engine = Engine::new(stores, env.clone());
        let settings = StreamSettings { partitions: 2, ..StreamSettings::default() };
        engine.define_stream("orders", settings).await.expect("a new stream");
        let policy = Policy {
            max_attempts: 3,
            backoff: Duration::from_millis(300),
            backoff_max: Duration::from_millis(900),
            ..Policy::default()
        };
        let settings = ProcessorSettings { policy, concurrency: PLACES, ..ProcessorSettings::default() };
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let of_handler = Arc::clone(&seen);
        let handler = move |run: Run| handle(run, Arc::clone(&of_handler));
        engine.process("charge", "orders", settings, Arc::new(handler)).await.expect("a new processor");
        Self { engine, env, seen }
    }

    async fn submit(&self, draft: Draft) -> JobId {
        let submit = vec![Submit { draft, processor: None, keep: None }];
        let submitted = self.engine.jobs().submit("orders", submit).await.expect("the stream exists");
        submitted.into_iter().next().expect("one answer").expect("the store takes it").id
    }

    /// Waits for the end of a job; being parked is none.
    async fn end_of(&self, id: JobId) -> Option<Terminal> {
        let ended = async {
            loop {
                let job = self.engine.jobs().wait(id, LONG).await.expect("the job exists");
                match job.status.status() {
                    Status::Ended(terminal) => return terminal,
                    // A wait returns at once on a parked job.
                    _ => seam::wait(Duration::from_millis(100)).await,
                }
            }
        };
        seam::within(LONG, ended).await
    }

    /// Submits, cancels, and waits for the end.
    async fn race(&self, race: Race) -> Result<Raced, String> {
        seam::wait(race.submit_after).await;
        let id = self.submit(race.draft()).await;
        seam::wait(race.cancel_after).await;
        let before = self.engine.jobs().get(id).await.map_err(|error| error.to_string())?.status.status();
        for _ in 0..race.cancels {
            match self.engine.jobs().cancel(id, self.env.token()).await {
                Ok(()) | Err(JobError::AlreadyFinished(_)) => {}
                Err(error) => return Err(format!("{race:?}: {error}")),
            }
        }
        let end =
            self.end_of(id).await.ok_or_else(|| format!("{race:?}, {before} when cancelled, never ended"))?;
        let (started, completed) = {
            let mut seen = self.seen.lock();
            seen.ended.insert(race.number);
            (seen.started.contains(&race.number), seen.completed.contains(&race.number))
        };
        match end {
            Terminal::Done if !completed => Err(format!("{race:?} is done and never completed")),
            Terminal::Done | Terminal::Cancelled => Ok(Raced { id, before, started, end }),
            other => Err(format!("{race:?} ended {other}")),
        }
    }
}

/// What came of a race.
#[derive(Debug)]
struct Raced {
    id: JobId,
    /// How the job stood when it was cancelled.
    before: Status,
    started: bool,
    end: Terminal,
}

async fn one_world(seed: u64) -> Result<Vec<Raced>, String> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let world = World::new(seed).await;
    let races: Vec<Race> = (0..RACES_EACH).map(|number| Race::draw(number, &mut rng)).collect();
    let raced = join_all(races.iter().map(|race| world.race(*race))).await;
    let raced = raced.into_iter().collect::<Result<Vec<_>, _>>()?;
    for lane in 0..LANES {
        let number = RACES_EACH + lane;
        let after = Race { number, lane, does: Does::Quick, delay: None, ..races[0] };
        let id = world.submit(after.draft()).await;
        let end = world.end_of(id).await.ok_or_else(|| format!("lane {lane} does not go on"))?;
        assert_eq!(end, Terminal::Done, "nobody cancelled the last job of lane {lane}");
    }
    for race in &raced {
        let now = world.engine.jobs().get(race.id).await.map_err(|error| error.to_string())?.status.status();
        if now != Status::Ended(race.end) {
            return Err(format!("{race:?} is {now} in the end"));
        }
    }
    let late = world.seen.lock().late.clone();
    if late.is_empty() { Ok(raced) } else { Err(format!("jobs {late:?} ran after their end was told")) }
}

#[tokio::test(start_paused = true)]
async fn cancelled_job_ends_once_and_its_lane_goes_on() {
    let mut all = Vec::new();
    for seed in 1..=WORLDS {
        let raced = one_world(seed).await;
        all.extend(raced.unwrap_or_else(|wrong| panic!("replay: one_world({seed}): {wrong}")));
    }
    let count = |chosen: fn(&&Raced) -> bool| all.iter().filter(chosen).count();
    let done = count(|race| race.end == Terminal::Done);
    let cancelled_running = count(|race| race.end == Terminal::Cancelled && race.started);
    let cancelled_waiting = count(|race| race.end == Terminal::Cancelled && !race.started);
    let parked = count(|race| race.before == Status::Parked);
    let retrying = count(|race| race.before == Status::Retrying);
    let scheduled = count(|race| race.before == Status::Scheduled);
    let over = count(|race| race.before.is_terminal());
    print(&format!(
        "{} cancel races: {cancelled_waiting} cancelled before they ran, {cancelled_running} after, {done} done all the \
         same ({over} before the cancel); {parked} were parked, {retrying} in back-off, {scheduled} scheduled; each ended \
         once",
        all.len()
    ));
    assert!(all.len() >= 500 && cancelled_waiting > 50 && cancelled_running > 50 && done > 50);
    assert!(parked > 5 && retrying > 5 && scheduled > 5 && over > 5);
}
