//! One folder whose worker is killed again and again, drained by a last one, and looked through.

use std::collections::BTreeMap;
use std::path::Path;

use laneway_core::store::{LaneSelect, Lanes, Query, Rows};
use laneway_core::{Key, LaneName, Partition, Seat, Status, Store, Terminal};
use laneway_engine::Engine;
use laneway_engine::job::JobStatus;

use super::ledger::Ledger;
use super::plan::{self, Sum};
use super::worker::{Orders, STREAMS, TEST, found};
use crate::child::Working;
use crate::open::open;

/// What happened in one folder.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) kills: u64,
    pub(super) in_opening: u64,
    pub(super) events: u64,
    pub(super) emits: u64,
    pub(super) lanes: u64,
    pub(super) jobs: u64,
    pub(super) runs: u64,
    pub(super) repeats: u64,
}

impl Tally {
    pub(super) fn add(&mut self, other: &Self) {
        self.kills += other.kills;
        self.in_opening += other.in_opening;
        self.events += other.events;
        self.emits += other.emits;
        self.lanes += other.lanes;
        self.jobs += other.jobs;
        self.runs += other.runs;
        self.repeats += other.repeats;
    }
}

/// Lives and dies with a folder. Answers what was heard, to be judged further.
pub(super) async fn one_folder(seed: u64, kills: u64) -> Result<(Tally, Ledger), String> {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let dir = temporary.path().join("store");
    let mut rng = fastrand::Rng::with_seed(seed);
    let (mut tally, mut ledger) = (Tally::default(), Ledger::default());
    found(&dir).await;
    for life in 1..=kills {
        let orders = Orders { dir: dir.clone(), life: seed * 1_000 + life, from: ledger.next, until: None };
        run_and_kill(&orders, &mut rng, &mut ledger, &mut tally)?;
    }
    let until = ledger.next.map(|next| next + 1);
    let orders = Orders { dir: dir.clone(), life: seed * 1_000, from: ledger.next, until: Some(until) };
    drain(&orders, &mut ledger)?;
    look_through(&dir, &ledger, &mut tally).await?;
    tally.runs = ledger.runs;
    tally.repeats = ledger.repeats(STREAMS[0].0);
    Ok((tally, ledger))
}

/// Lets a worker run until so many effects and answers were reported, or while it opens the folder, and kills it.
fn run_and_kill(
    orders: &Orders,
    rng: &mut fastrand::Rng,
    ledger: &mut Ledger,
    tally: &mut Tally,
) -> Result<(), String> {
    let mut working = Working::start(TEST, &orders.encode());
    let wanted = if rng.u8(0..12) == 0 { 0 } else { rng.usize(1..400) };
    let mut reports = 0;
    loop {
        let line = working.line().ok_or("the worker ended by itself")?;
        ledger.hear(&line)?;
        reports += usize::from(["ran", "sent", "ended"].iter().any(|word| line.starts_with(word)));
        if (wanted == 0 && line == "opening") || (wanted > 0 && reports >= wanted) {
            break;
        }
    }
    tally.in_opening += u64::from(wanted == 0);
    tally.kills += 1;
    working.kill().iter().try_for_each(|line| ledger.hear(line))
}

/// The last worker: nobody kills it, and it is told to end when everything was run.
fn drain(orders: &Orders, ledger: &mut Ledger) -> Result<(), String> {
    let until = orders.until.expect("the last worker knows where to stop");
    let mut working = Working::start(TEST, &orders.encode());
    let is_sent = |ledger: &Ledger| ledger.next.iter().zip(until).all(|(next, until)| *next >= until);
    let mut expected = None;
    loop {
        let line = working.line().ok_or("the last worker ended by itself")?;
        ledger.hear(&line)?;
        if expected.is_none() && is_sent(ledger) {
            expected = Some(ledger.expected(STREAMS.map(|(stream, ..)| stream)));
        }
        if expected.as_ref().is_some_and(|expected| ledger.ran_all(expected)) {
            break;
        }
    }
    let (rest, status) = working.finish();
    rest.iter().try_for_each(|line| ledger.hear(line))?;
    let closed = rest.iter().any(|line| line == "closed");
    if status.success() && closed { Ok(()) } else { Err(format!("the last worker ended with {status}")) }
}

/// Opens what the last worker left and compares it with everything that was acknowledged.
async fn look_through(dir: &Path, ledger: &Ledger, tally: &mut Tally) -> Result<(), String> {
    let expected = ledger.expected(STREAMS.map(|(stream, ..)| stream));
    ledger.check_order(&expected)?;
    let (store, engine) = open(dir, u64::MAX);
    for (stream, processor, _) in STREAMS {
        check_settled(&store, &engine, stream, processor).await?;
    }
    for ((stream, lane), numbers) in &expected {
        let state = state_of(&store, &engine, stream, lane).await?;
        Ledger::check_state(numbers, state).map_err(|wrong| format!("{stream} {lane}: {wrong}"))?;
        let settled = numbers.len() as u64;
        *(if *stream == STREAMS[0].0 { &mut tally.events } else { &mut tally.emits }) += settled;
        tally.lanes += 1;
    }
    check_jobs(&engine, ledger, &expected).await?;
    tally.jobs = ledger.jobs.len() as u64;
    store.close().map_err(|error| error.to_string())
}

/// Nothing waits any more: every event is passed, every emit forwarded, no lane is held up.
async fn check_settled(
    store: &impl Store,
    engine: &Engine,
    stream: &str,
    processor: &str,
) -> Result<(), String> {
    let info = engine.catalogue().stream(stream).await.map_err(|error| error.to_string())?;
    let (_, processor) = engine.catalogue().processor(processor).await.map_err(|error| error.to_string())?;
    for partition in 0..info.settings.partitions {
        let shard = info.shard(Partition(partition));
        let Ok(Rows::Seats(about, seats)) = store.query(Query::Seats(shard)).await else {
            return Err(format!("the seats of {shard} cannot be read"));
        };
        let progress = &seats.first().ok_or("a seat is missing")?.progress;
        let (floor, head) = (progress.window.floor(), about.head);
        if floor != head || !progress.clean || progress.emitted != progress.forwarded {
            return Err(format!("{shard}: settled up to {floor} of {head}: {progress:?}"));
        }
        let select = LaneSelect::Blocked { kind: None, after: None, limit: 10 };
        let seat = Seat { shard, processor };
        let held = store
            .lanes(Lanes { seat, select, siding: 1, states: false })
            .await
            .map_err(|error| error.to_string())?;
        if !held.is_empty() {
            return Err(format!("{shard}: lanes are held up: {held:?}"));
        }
    }
    Ok(())
}

async fn state_of(store: &impl Store, engine: &Engine, stream: &str, lane: &str) -> Result<Sum, String> {
    let key = Key::new(lane.to_owned()).map_err(|error| error.to_string())?;
    let info = engine.catalogue().stream(stream).await.map_err(|error| error.to_string())?;
    let shard = info.shard(key.partition(info.settings.partitions));
    let seat = Seat { shard, processor: info.processors.first().ok_or("no processor")?.id };
    let select = LaneSelect::Names(vec![LaneName::Key(key)]);
    let views = store
        .lanes(Lanes { seat, select, siding: 0, states: true })
        .await
        .map_err(|error| error.to_string())?;
    let state = views.into_iter().next().and_then(|view| view.state);
    Ok(state.map_or(Sum::default(), |state| Sum::from_bytes(&state.bytes)))
}

/// Every job that was acknowledged ended done, with the result of the run that was settled, as was reported before.
async fn check_jobs(
    engine: &Engine,
    ledger: &Ledger,
    expected: &BTreeMap<(String, String), Vec<u64>>,
) -> Result<(), String> {
    for (job, (producer, number)) in &ledger.jobs {
        let id = job.parse().map_err(|error| format!("job {job}: {error}"))?;
        let found = engine.jobs().get(id).await.map_err(|error| error.to_string())?;
        let (JobStatus::Ended { result: Some(result), .. }, Status::Ended(Terminal::Done)) =
            (&found.status, found.status.status())
        else {
            return Err(format!("job {job} is {:?}", found.status));
        };
        let lane = (STREAMS[0].0.to_owned(), plan::lane(*producer, *number));
        let place = expected.get(&lane).and_then(|numbers| numbers.iter().position(|sent| sent == number));
        let numbers = &expected[&lane][..=place.ok_or("a job was never sent")?];
        Ledger::check_state(numbers, Sum::from_bytes(result))
            .map_err(|wrong| format!("job {job}: {wrong}"))?;
        let told = ledger.ended.get(job);
        if told.is_some_and(|told| *told != ("done".to_owned(), numbers.len() as u64)) {
            return Err(format!("job {job} was reported as {told:?} and is {:?}", found.status));
        }
    }
    Ok(())
}
