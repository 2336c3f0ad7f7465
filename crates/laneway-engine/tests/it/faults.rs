//! Supervision: a fault of the engine in one loop is told, ends that loop's turn and nobody else's, and the loop goes on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use laneway_core::store::{Entry, Held, HeldBy, Read, ReadFrom, Receipt};
use laneway_core::{
    Key, Mode, Partition, Shard, Status, Store, StoreError, StreamSettings, Terminal, Topic, Wakeups,
};
use laneway_embedded::MemoryStore;
use laneway_engine::handler::{ClaimWish, Done, Emission, LaneAnswer, LaneRun, Retry, Run};
use laneway_engine::job::Submit;
use laneway_engine::log::{Appending, CatalogueError};
use laneway_engine::service::TokioClock;
use laneway_engine::upkeep::schedule::{CatchUp, Firing, Overlap, Schedule, Spec};
use laneway_engine::{DefineError, Engine, Env, ProcessorSettings, Stores};
use metrics::{Counter, Gauge, Histogram, KeyName, Metadata, Recorder, SharedString, Unit};
use parking_lot::Mutex;

use crate::faulty::{Call, Faulty};
use crate::seam;
use crate::world::{SOON, draft};

/// Counts faults by part, for the whole process: every part is broken by one test only.
#[derive(Default)]
struct Counted(Mutex<Vec<(String, Arc<AtomicU64>)>>);

struct Shared(Arc<Counted>);

impl Recorder for Shared {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &metrics::Key, _: &Metadata<'_>) -> Counter {
        let part = key.labels().find(|label| label.key() == "part");
        let (true, Some(part)) = (key.name() == "laneway_faults_total", part) else { return Counter::noop() };
        let mut counts = self.0.0.lock();
        let found = counts.iter().find(|(name, _)| name == part.value()).map(|(_, count)| Arc::clone(count));
        Counter::from_arc(found.unwrap_or_else(|| {
            let count = Arc::new(AtomicU64::new(0));
            counts.push((part.value().to_owned(), Arc::clone(&count)));
            count
        }))
    }

    fn register_gauge(&self, _: &metrics::Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &metrics::Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

fn faults(part: &str) -> u64 {
    static COUNTED: OnceLock<Arc<Counted>> = OnceLock::new();
    let counted = COUNTED.get_or_init(|| {
        let counted = Arc::new(Counted::default());
        metrics::set_global_recorder(Shared(Arc::clone(&counted))).expect("the only recorder of these tests");
        counted
    });
    let counts = counted.0.lock();
    counts.iter().find(|(name, _)| name == part).map_or(0, |(_, count)| count.load(Ordering::Relaxed))
}

struct Bench {
    engine: Engine,
    store: Arc<Faulty>,
    shards: Vec<Shard>,
}

/// Every event is done; one that says `big` has a large result, one that says `emit` sends an event to `other`, and one that
/// says `fail once` is done at its second attempt.
fn obey(lane: &LaneRun) -> LaneAnswer {
    if lane.attempt == 1 && &lane.events[0].data[..] == b"fail once" {
        return LaneAnswer::failed("as told", Retry::ByPolicy);
    }
    let done = lane.events.iter().map(|event| match &event.data[..] {
        b"big" => Done { result: Some(vec![7; 2 << 20].into()), ..Done::default() },
        b"emit" => {
            let emits = vec![Emission { stream: "other".to_owned(), draft: draft("ann", "emitted") }];
            Done { emits, ..Done::default() }
        }
        _ => Done::default(),
    });
    LaneAnswer { done: done.collect(), ..LaneAnswer::default() }
}

/// A store without streams, and an engine on it.
fn empty() -> (Arc<Faulty>, Engine) {
    let clock = Arc::new(TokioClock::start());
    let env = Env::seeded(clock.clone(), 7);
    let memory = Arc::new(MemoryStore::new(clock));
    let store = Faulty::new(memory.clone());
    let stores = Stores { store: store.clone(), documents: store.clone(), wakeups: memory };
    (store, Engine::new(stores, env))
}

async fn bench() -> Bench {
    faults("none");
    let (store, engine) = empty();
    engine.start_reports().await.expect("a new stream");
    let settings = StreamSettings { partitions: 2, mode: Mode::Queue, ..StreamSettings::default() };
    engine.define_stream("other", settings.clone()).await.expect("a new stream");
    let info = engine.define_stream("orders", settings).await.expect("a new stream");
    let handler = |run: Run| async move { run.lanes.iter().map(obey).collect::<Vec<_>>() };
    let settings = ProcessorSettings::default();
    engine.process("charge", "orders", settings, Arc::new(handler)).await.expect("a new processor");
    let shards = (0..2).map(|partition| info.shard(Partition(partition))).collect();
    Bench { engine, store, shards }
}

impl Bench {
    /// A key of this partition.
    fn key(&self, partition: u32) -> String {
        self.keys(partition).next().expect("some key lies there")
    }

    /// And another one.
    fn other_key(&self, partition: u32) -> String {
        self.keys(partition).nth(1).expect("some keys lie there")
    }

    fn keys(&self, partition: u32) -> impl Iterator<Item = String> {
        let count = self.shards.len() as u32;
        let keys = (0..).map(|number| format!("key-{number}"));
        keys.filter(move |key| Key::new(key.clone()).expect("short").partition(count) == Partition(partition))
    }

    async fn done(&self, key: &str, data: &str) {
        let job = Submit { draft: draft(key, data), processor: Some("charge".to_owned()), keep: None };
        let submitted = self.engine.jobs().submit("orders", vec![job]).await.expect("the stream exists");
        let id = submitted.into_iter().next().expect("one answer").expect("the store takes it").id;
        let status = self.engine.jobs().wait(id, 5 * SOON).await.expect("the job exists").status;
        assert_eq!(status.status(), Status::Ended(Terminal::Done), "{key} {data}");
    }

    async fn data_of(&self, stream: &str) -> Vec<String> {
        let info = self.engine.catalogue().stream(stream).await.expect("it exists");
        let mut found = Vec::new();
        for partition in 0..info.settings.partitions {
            let from = ReadFrom::After(laneway_core::EventId(0));
            let shard = info.shard(Partition(partition));
            let read = Read { shard, from, limit: 100, bytes: 1 << 20, processor: None, states: false };
            for entry in self.store.read(read).await.expect("the store answers").entries {
                let Entry::Event(event) = entry else { continue };
                found.push(format!("{} {}", event.kind.as_str(), String::from_utf8_lossy(&event.data)));
            }
        }
        found
    }
}

#[tokio::test(start_paused = true)]
async fn fault_in_the_loop_of_a_seat_ends_no_other_and_is_reported() {
    let bench = bench().await;
    bench.store.arm(Call::Read(bench.shards[0]));
    // The other seat goes on, and so does this one once it has begun again.
    bench.done(&bench.key(1), "ok").await;
    bench.done(&bench.key(0), "ok").await;
    assert!(bench.store.has_panicked());
    seam::wait(Duration::from_secs(5)).await;
    let reports = bench.data_of("_laneway").await;
    assert!(reports.iter().any(|report| report.starts_with("seat.failed")), "{reports:?}");
}

#[tokio::test(start_paused = true)]
async fn processor_does_not_start_without_knowing_where_to_report() {
    let (store, engine) = empty();
    engine.define_stream("orders", StreamSettings::default()).await.expect("a new stream");
    // Another node makes the stream of reports, and this one does not know it yet.
    let other = Engine::new(engine.stores().clone(), engine.env().clone());
    other.start_reports().await.expect("a new stream");
    let start = async || {
        let handler = |run: Run| async move { run.lanes.iter().map(obey).collect::<Vec<_>>() };
        engine.process("charge", "orders", ProcessorSettings::default(), Arc::new(handler)).await
    };
    store.unlisted.store(true, Ordering::Relaxed);
    let refused = start().await;
    assert!(matches!(refused, Err(DefineError::Catalogue(CatalogueError::Store(_)))), "{refused:?}");
    store.unlisted.store(false, Ordering::Relaxed);
    start().await.expect("it is tried again");
}

#[tokio::test(start_paused = true)]
async fn lane_that_cannot_be_loaded_keeps_none_from_its_next_attempt() {
    let bench = bench().await;
    let (stuck, other) = (bench.key(0), bench.other_key(0));
    let lane = Key::new(stuck.clone()).expect("a short key");
    let operator = bench.engine.operator();
    let paused = operator.pause_lane("charge", &lane, "anna").await.expect("it exists");
    assert!(operator.wait(&[paused], SOON).await.expect("the store answers"));
    let sent = Appending { drafts: vec![draft(&stuck, "ok")], object: None };
    let sent = bench.engine.producer().append("orders", sent).await.expect("the stream exists").remove(0);
    let Ok(Receipt::New { id, .. }) = sent.receipt else { panic!("{sent:?}") };
    // It is in its siding when the one behind it in the log is done.
    bench.done(&other, "ok").await;
    // The request itself is looked up; what it lets go on is not loaded.
    *bench.store.unreadable.lock() = Some((id, 1));
    let resumed = operator.resume_lane("charge", &lane).await.expect("it exists");
    assert!(operator.wait(&[resumed], SOON).await.expect("the store answers"));
    bench.done(&other, "fail once").await;
    assert!(bench.store.unread.load(Ordering::Relaxed) > 1, "it is tried again and again");
    *bench.store.unreadable.lock() = None;
    bench.done(&stuck, "ok").await;
}

#[tokio::test(start_paused = true)]
async fn fault_in_a_run_is_a_failure_of_that_run_alone() {
    let bench = bench().await;
    bench.store.arm(Call::Stash);
    let (first, second) = (bench.key(0), bench.key(1));
    // It fails once by the fault, and its next attempt is done.
    tokio::join!(bench.done(&first, "big"), bench.done(&second, "ok"));
    assert!(bench.store.has_panicked());
    assert_eq!(faults("run"), 1);
}

#[tokio::test(start_paused = true)]
async fn fault_while_emits_are_forwarded_loses_none_and_sends_none_twice() {
    let bench = bench().await;
    let target = bench.engine.catalogue().stream("other").await.expect("it exists");
    let key = Key::new("ann").expect("a short key");
    bench.store.arm(Call::Append(target.shard(key.partition(2))));
    bench.done(&bench.key(0), "emit").await;
    bench.done(&bench.key(1), "ok").await;
    seam::wait(SOON).await;
    assert!(bench.store.has_panicked());
    assert_eq!(bench.data_of("other").await, [" emitted"]);
}

#[tokio::test(start_paused = true)]
async fn fault_in_retention_stops_neither_schedules_nor_runs_nor_itself() {
    let bench = bench().await;
    bench.store.arm(Call::Trim);
    bench.engine.start_upkeep();
    seam::wait(SOON).await;
    assert!(bench.store.has_panicked());
    assert!(bench.store.again.load(Ordering::Relaxed) > 0, "it trims again");
    assert_eq!(faults("retention"), 1);
    bench.done(&bench.key(0), "ok").await;
}

#[tokio::test(start_paused = true)]
async fn fault_in_the_schedules_stops_neither_runs_nor_itself() {
    let bench = bench().await;
    let anchor = bench.engine.env().clock().calendar();
    let schedule = Schedule {
        name: "tick".to_owned(),
        spec: Spec::Every { length: Duration::from_secs(10), anchor },
        overlap: Overlap::Queue,
        catch_up: CatchUp::Last,
        paused: false,
        since: anchor,
        firing: Firing { data: "tick".into(), ..Firing::new("other") },
    };
    bench.engine.schedules().put(schedule).await.expect("it can be");
    bench.store.arm(Call::List);
    bench.engine.start_upkeep();
    bench.done(&bench.key(0), "ok").await;
    seam::wait(Duration::from_secs(25)).await;
    assert!(bench.store.has_panicked());
    assert_eq!(faults("schedules"), 1);
    assert_eq!(bench.data_of("other").await.len(), 2, "once per due time");
}

#[tokio::test(start_paused = true)]
async fn fault_in_the_seat_of_a_desk_leaves_the_desk_to_its_workers() {
    let bench = bench().await;
    let desk = bench.engine.process_at_desk("remote", "orders", ProcessorSettings::default()).await;
    let desk = desk.expect("a new processor");
    seam::wait(Duration::from_secs(1)).await;
    let wish = ClaimWish { lanes: 1, events: 1, lease: SOON, wait: SOON, ..ClaimWish::default() };
    bench.store.arm(Call::Read(bench.shards[0]));
    bench.done(&bench.key(1), "ok").await;
    let claim = desk.claim(wish.clone()).await.remove(0);
    desk.settle(&claim.token, LaneAnswer::done(None)).await.expect("it is ours");
    bench.done(&bench.key(0), "ok").await;
    assert!(bench.store.has_panicked());
    let claim = desk.claim(wish).await.remove(0);
    desk.settle(&claim.token, LaneAnswer::done(None)).await.expect("it is ours");
}

#[tokio::test(start_paused = true)]
async fn seat_that_cannot_be_had_holds_up_no_drain() {
    let bench = bench().await;
    bench.store.silent.store(true, Ordering::Relaxed);
    let handler = |run: Run| async move { run.lanes.iter().map(obey).collect::<Vec<_>>() };
    let settings = ProcessorSettings::default();
    bench.engine.process("late", "orders", settings, Arc::new(handler)).await.expect("a new processor");
    seam::wait(Duration::from_secs(1)).await;
    seam::within(Duration::from_secs(20), bench.engine.drain(Duration::from_secs(5))).await;
}

/// Wake-ups that always fail, and count how often they were asked.
struct Deaf(AtomicU64);

#[async_trait::async_trait]
impl Wakeups for Deaf {
    async fn announce(&self, _: Topic) -> laneway_core::Result<()> {
        Ok(())
    }

    async fn wait(&self, _: Topic, _: u64) -> laneway_core::Result<u64> {
        if self.0.fetch_add(1, Ordering::Relaxed) > 1_000 {
            // Whoever spins would never let time pass.
            std::future::pending::<()>().await;
        }
        Err(StoreError::Down { reason: "nobody is there".to_owned() })
    }
}

#[tokio::test(start_paused = true)]
async fn without_wake_ups_work_goes_on_and_nobody_spins() {
    let clock = Arc::new(TokioClock::start());
    let memory = Arc::new(MemoryStore::new(clock.clone()));
    let deaf = Arc::new(Deaf(AtomicU64::new(0)));
    let stores = Stores { store: memory.clone(), documents: memory, wakeups: deaf.clone() };
    let engine = Engine::new(stores, Env::seeded(clock, 7));
    let settings = StreamSettings { partitions: 1, ..StreamSettings::default() };
    engine.define_stream("orders", settings).await.expect("a new stream");
    let handler = |run: Run| async move { run.lanes.iter().map(obey).collect::<Vec<_>>() };
    let settings = ProcessorSettings::default();
    engine.process("charge", "orders", settings, Arc::new(handler)).await.expect("a new processor");
    for _ in 0..10 {
        let job = Submit { draft: draft("ann", "ok"), processor: None, keep: None };
        let job = engine.jobs().submit("orders", vec![job]).await.expect("the stream exists").remove(0);
        let id = job.expect("the store takes it").id;
        let status = engine.jobs().wait(id, SOON).await.expect("the job exists").status;
        assert_eq!(status.status(), Status::Ended(Terminal::Done));
    }
    let asked = deaf.0.load(Ordering::Relaxed);
    assert!(asked < 100, "asked {asked} times");
}

#[tokio::test(start_paused = true)]
async fn processor_that_keeps_many_old_files_is_reported_once() {
    let bench = bench().await;
    bench.done(&bench.key(0), "ok").await;
    let info = bench.engine.catalogue().stream("orders").await.expect("it exists");
    let by = HeldBy::Lane(info.processors[0].id);
    let held = |partition, bytes| {
        let shard = info.shard(Partition(partition));
        Held { shard, event: laneway_core::EventId(17), by, bytes }
    };
    *bench.store.held.lock() = vec![held(0, 3 << 30), held(1, 1 << 20)];
    bench.engine.start_upkeep();
    seam::wait(Duration::from_secs(60)).await;
    let mut reports = bench.data_of("_laneway").await;
    reports.retain(|report| report.starts_with("store.held"));
    let [report] = &reports[..] else { panic!("one report, for partition 0: {reports:?}") };
    for field in [r#""processor":"charge""#, r#""partition":"0""#, r#""event":"17""#, r#""by":"lane""#] {
        assert!(report.contains(field), "{field} in {report}");
    }
    let words = bench.engine.held().await.expect("the store answers")[0].to_string();
    assert_eq!(
        words,
        "3072 MiB of the log since event 17 of orders/0: it waits in a stopped lane of processor charge"
    );
}
