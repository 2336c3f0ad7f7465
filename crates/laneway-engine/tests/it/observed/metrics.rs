//! Every metric by name, with the right value after a known history; and the reference page against the list.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::store::RedriveTo;
use laneway_core::{Delay, DelayMode, Key, Mode, StartAfter, Store, StreamSettings};
use laneway_embedded::MemoryStore;
use laneway_engine::handler::{LaneAnswer, OnFailure, Policy, Retry, Run};
use laneway_engine::log::Appending;
use laneway_engine::observe::METRICS;
use laneway_engine::service::TokioClock;
use laneway_engine::{Engine, Env, ProcessorSettings, Registration, Stores};
use laneway_testkit::fault::LostAnswers;

use super::recorder::Told;
use crate::seam;
use crate::world::{SOON, World, draft};

/// Long enough for every gauge to be told once more.
const TOLD: Duration = Duration::from_secs(3);

fn settings(on_failure: OnFailure) -> ProcessorSettings {
    let policy = Policy { max_attempts: 3, on_failure, ..Policy::default() };
    ProcessorSettings { policy, ..ProcessorSettings::default() }
}

fn check(told: &Told, values: &[(&str, &str, f64)]) {
    let found: Vec<_> =
        values.iter().map(|(name, label, _)| (*name, *label, told.sum(name, label))).collect();
    assert_eq!(found, values);
}

async fn send_delayed(world: &World, key: &str, by: Duration) {
    let delay = Some(Delay { until: StartAfter::Delay(by), mode: DelayMode::Join });
    let drafts = vec![laneway_core::Draft { delay, ..draft(key, "ok") }];
    let sent = world.engine.producer().append("orders", Appending { drafts, object: None }).await;
    sent.expect("the stream exists").pop().expect("one").receipt.expect("the store takes it");
}

#[tokio::test(start_paused = true)]
async fn known_history_is_told_by_every_meter() {
    let told = Told::default();
    let _listening = told.listen();
    let world = World::with_partitions(Mode::Queue, 1).await;
    world.process(settings(OnFailure::Park)).await;
    world.send(&[("ann", "ok"), ("ann", "ok"), ("bob", "fail twice"), ("cat", "broken")]).await;
    let job = world.submit("dan", "ok").await;
    world.settled(job).await;
    send_delayed(&world, "fay", Duration::from_secs(2)).await;
    // Bob is tried again after seconds.
    seam::wait(Duration::from_secs(30)).await;
    world.submit("eve", "slow").await;
    world.submit("eve", "ok").await;
    seam::wait(TOLD).await;
    check(
        &told,
        &[
            ("laneway_events_appended_total", "orders", 8.0),
            ("laneway_events_processed_total", "done", 5.0),
            ("laneway_events_processed_total", "retry", 2.0),
            ("laneway_events_processed_total", "parked", 1.0),
            ("laneway_events_processed_total", "failed", 0.0),
            ("laneway_jobs_ended_total", "done", 1.0),
            ("laneway_jobs", "running", 1.0),
            ("laneway_jobs", "waiting", 1.0),
            ("laneway_lanes_active", "charge", 1.0),
            ("laneway_lanes_blocked", "charge", 1.0),
            ("laneway_lag_events", "charge", 2.0),
            ("laneway_superseded_total", "charge", 0.0),
            ("laneway_dead_letters", "charge", 0.0),
            ("laneway_dead_letters_made_total", "charge", 0.0),
            ("laneway_build_info", env!("CARGO_PKG_VERSION"), 1.0),
        ],
    );
    let count = |name| told.told(name, "charge").len();
    assert_eq!(count("laneway_process_duration_seconds"), 8, "one per call that is over");
    assert_eq!(count("laneway_event_age_seconds"), 5, "one per event that is done");
    assert_eq!(count("laneway_lane_wait_seconds"), 6, "one per event whose first run is over");
    let lag = told.sum("laneway_lag_seconds", "charge");
    assert!((2.0..=4.0).contains(&lag), "the slow one has run for three seconds: {lag}");
    assert!(told.told("laneway_store_op_duration_seconds", "commit").len() > 3);
    // What runs for a minute is over, and one waited for it that long.
    seam::wait(SOON).await;
    check(
        &told,
        &[("laneway_lag_events", "", 0.0), ("laneway_lag_seconds", "", 0.0), ("laneway_jobs", "", 0.0)],
    );
    let longest = |name| told.told(name, "charge").into_iter().fold(0.0, f64::max);
    assert!((60.0..61.0).contains(&longest("laneway_process_duration_seconds")));
    assert!((60.0..61.0).contains(&longest("laneway_lane_wait_seconds")));
    // Whoever does not own a partition tells nothing of it.
    world.engine.drain(SOON).await;
    check(&told, &[("laneway_lanes_blocked", "", 0.0)]);
    let mut listed = listed();
    // Those tell of what did not happen here.
    let silent = [
        "laneway_store_errors_total",
        "laneway_faults_total",
        "laneway_dedup_evicted_total",
        // Retention sets these, and it does not run in this test.
        "laneway_clock_jumps_total",
        "laneway_clock_settled",
        "laneway_clock_offset_seconds",
        "laneway_store_held_bytes",
    ];
    listed.retain(|name, _| !silent.contains(&name.as_str()));
    // Retention tells of the clock, and does not run here.
    listed.retain(|name, _| !name.starts_with("laneway_clock_"));
    assert_eq!(told.names(), listed, "everything that is listed is told, and nothing else");
}

fn listed() -> BTreeMap<String, (String, Vec<String>)> {
    let about = |metric: &laneway_engine::observe::Metric| {
        let labels = metric.labels.iter().map(|label| (*label).to_owned()).collect();
        (metric.name.to_owned(), (metric.kind.to_string(), labels))
    };
    METRICS.iter().map(about).collect()
}

#[tokio::test(start_paused = true)]
async fn dead_letters_that_are_there_are_told_and_each_one_is_counted_as_it_is_made() {
    let told = Told::default();
    let _listening = told.listen();
    let world = World::with_partitions(Mode::Queue, 1).await;
    world.process(settings(OnFailure::DeadLetter)).await;
    world.send(&[("ann", "broken"), ("bob", "broken"), ("cat", "broken"), ("ann", "ok")]).await;
    seam::wait(TOLD).await;
    let there = |count| ("laneway_dead_letters", "charge", count);
    let made = |count| ("laneway_dead_letters_made_total", "charge", count);
    check(&told, &[there(3.0), made(3.0), ("laneway_events_processed_total", "failed", 3.0)]);
    let lane = |key: &str| Key::new(key.to_owned()).expect("a short key");
    let operator = world.engine.operator();
    operator.redrive("charge", &lane("ann"), None, RedriveTo::Tail).await.expect("filed");
    operator.discard("charge", &lane("bob"), None).await.expect("filed");
    seam::wait(TOLD).await;
    // The redriven one failed again.
    check(&told, &[there(2.0), made(4.0), ("laneway_dead_letters_discarded_total", "charge", 1.0)]);
    world.engine.drain(SOON).await;
    check(&told, &[there(0.0)]);
    let again = world.again();
    again.process(settings(OnFailure::DeadLetter)).await;
    seam::wait(TOLD).await;
    check(&told, &[there(2.0), made(4.0)]);
}

#[tokio::test(start_paused = true)]
async fn dead_letters_that_retention_takes_away_are_told_no_more() {
    let told = Told::default();
    let _listening = told.listen();
    let world = World::with_partitions(Mode::Queue, 1).await;
    let kept = Duration::from_secs(3_600);
    let of_stream = StreamSettings { partitions: 1, dead_keep: kept, ..StreamSettings::default() };
    world.engine.define_stream("short", of_stream).await.expect("a new stream");
    let handler = |run: Run| async move {
        run.lanes.iter().map(|_| LaneAnswer::failed("no", Retry::Never)).collect::<Vec<_>>()
    };
    let buries = settings(OnFailure::DeadLetter);
    world.engine.process("bury", "short", buries, Arc::new(handler)).await.expect("a new processor");
    let drafts = vec![draft("ann", "1")];
    world.engine.producer().append("short", Appending { drafts, object: None }).await.expect("it exists");
    seam::wait(TOLD).await;
    check(&told, &[("laneway_dead_letters", "bury", 1.0)]);
    // Nobody tells the owner: it counts every ten minutes.
    world.engine.start_upkeep();
    seam::wait(kept + Duration::from_secs(700)).await;
    check(&told, &[("laneway_dead_letters", "bury", 0.0)]);
}

#[tokio::test(start_paused = true)]
async fn what_a_newer_event_replaced_is_counted() {
    let told = Told::default();
    let _listening = told.listen();
    let mut world = World::with_partitions(Mode::Latest, 1).await;
    world.process(settings(OnFailure::Park)).await;
    for (generation, data) in [(1, "slow"), (2, "two"), (3, "three"), (4, "four")] {
        let drafts = vec![laneway_core::Draft { generation: Some(generation), ..draft("pod", data) }];
        let sent = world.engine.producer().append("orders", Appending { drafts, object: None }).await;
        sent.expect("the stream exists").pop().expect("one").receipt.expect("the store takes it");
        if generation == 1 {
            assert_eq!(world.nexts(1).await, ["slow"]);
        }
    }
    assert_eq!(world.nexts(1).await, ["four"]);
    seam::wait(TOLD).await;
    let superseded = ("laneway_events_processed_total", "superseded", 2.0);
    check(&told, &[("laneway_superseded_total", "charge", 2.0), superseded]);
}

#[tokio::test(start_paused = true)]
async fn answers_that_the_store_did_not_give_are_counted() {
    let told = Told::default();
    let _listening = told.listen();
    let clock = Arc::new(TokioClock::start());
    let inner = Arc::new(MemoryStore::new(clock.clone()));
    let on = |store: Arc<dyn Store>| {
        let stores = Stores { store, documents: inner.clone(), wakeups: inner.clone() };
        Engine::new(stores, Env::seeded(clock.clone(), 7))
    };
    let sound = on(inner.clone());
    let of_stream = StreamSettings { partitions: 1, ..StreamSettings::default() };
    sound.define_stream("orders", of_stream).await.expect("a new stream");
    sound.register(&Registration::new("charge", "orders")).await.expect("a new processor");
    let losing = Arc::new(LostAnswers::new(inner.clone(), 7, 30));
    let engine = on(losing.clone());
    let handler = |run: Run| async move { run.lanes.iter().map(LaneAnswer::all_done).collect::<Vec<_>>() };
    let known = ProcessorSettings::default();
    engine.process("charge", "orders", known, Arc::new(handler)).await.expect("it is registered");
    for number in 0..20 {
        let drafts = vec![draft(&format!("lane-{number}"), "ok")];
        let sent = engine.producer().append("orders", Appending { drafts, object: None }).await;
        sent.expect("the stream exists").pop().expect("one").receipt.expect("it is repeated");
    }
    seam::wait(SOON).await;
    engine.drain(SOON).await;
    let (before, after) = losing.lost();
    assert!(before + after > 5, "some answers were lost: {before} and {after}");
    #[expect(clippy::cast_precision_loss, reason = "small numbers in a test")]
    let lost = (before + after) as f64;
    check(
        &told,
        &[("laneway_store_errors_total", "unknown", lost), ("laneway_store_errors_total", "", lost)],
    );
}

#[test]
fn reference_page_lists_every_metric_of_the_engine() {
    let page = include_str!("../../../../../docs/reference/metrics.md");
    let (page, _) = page.split_once("\nThe server adds ").expect("the page tells them apart");
    let row = |line: &str| {
        let mut cells = line.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', ""));
        Some((cells.next()?, cells.next()?, cells.next()?, cells.next()?))
    };
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| `laneway_")).filter_map(row).collect();
    let listed: Vec<_> = METRICS
        .iter()
        .map(|metric| {
            let labels = metric.labels.join(", ");
            (metric.name.to_owned(), metric.kind.to_string(), labels, metric.help.to_owned())
        })
        .collect();
    assert_eq!(rows, listed);
}
