//! Seats without work: they leave the store alone, and work that comes starts at once all the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use laneway_core::store::{Query, Rows};
use laneway_core::{Clock, Delay, DelayMode, Mode, Partition, StartAfter, Steady, StreamSettings, Timestamp};
use laneway_embedded::MemoryStore;
use laneway_engine::handler::{Done, Emission, LaneAnswer, LaneRun, Run};
use laneway_engine::log::Appending;
use laneway_engine::service::TokioClock;
use laneway_engine::{Env, ProcessorSettings};

use crate::faulty::Faulty;
use crate::observed::recorder::Told;
use crate::seam;
use crate::world::{Answer, SOON, World, draft};

const HOUR: Duration = Duration::from_secs(3_600);
const SEATS: u32 = 10;

/// How often a seat may ask for the time when it wakes up.
const READINGS_PER_WAKE: u64 = 20;

/// A clock that counts how often it is read: every task that wakes up reads it.
#[derive(Debug)]
struct CountedClock {
    clock: TokioClock,
    readings: AtomicU64,
}

impl Clock for CountedClock {
    fn calendar(&self) -> Timestamp {
        self.clock.calendar()
    }

    fn steady(&self) -> Steady {
        self.readings.fetch_add(1, Ordering::Relaxed);
        self.clock.steady()
    }

    fn epoch(&self) -> u128 {
        self.clock.epoch()
    }
}

/// A world in which nothing has happened for an hour, and its store.
async fn idle_for_an_hour(shared: bool) -> (World, Arc<Faulty>) {
    idle_by(Arc::new(TokioClock::start()), shared).await
}

async fn idle_by(clock: Arc<dyn Clock>, shared: bool) -> (World, Arc<Faulty>) {
    idle_by_with(clock, shared, SEATS).await
}

async fn idle_by_with(clock: Arc<dyn Clock>, shared: bool, seats: u32) -> (World, Arc<Faulty>) {
    let store_clock = Arc::new(TokioClock::start());
    let (env, memory) = (Env::seeded(clock, 7), Arc::new(MemoryStore::new(store_clock)));
    let store = Faulty::new(memory.clone());
    store.shared.store(shared, Ordering::Relaxed);
    let world = World::through(store.clone(), memory, env);
    let settings = StreamSettings { partitions: seats, ..StreamSettings::default() };
    world.engine.define_stream("orders", settings).await.expect("a new stream");
    world.process(ProcessorSettings::default()).await;
    seam::wait(HOUR).await;
    (world, store)
}

#[tokio::test(start_paused = true)]
async fn seat_without_work_reads_less_and_less_often() {
    // Once a minute, and on a store that others change every five seconds.
    for (shared, reads_max) in [(false, 70), (true, 740)] {
        let (_world, store) = idle_for_an_hour(shared).await;
        let reads = store.reads.load(Ordering::Relaxed) / u64::from(SEATS);
        assert!(reads <= reads_max, "{reads} reads of each seat in an hour; shared: {shared}");
    }
}

#[tokio::test(start_paused = true)]
async fn seat_without_work_does_not_wake_on_its_own() {
    let clock = Arc::new(CountedClock { clock: TokioClock::start(), readings: AtomicU64::new(0) });
    let (_world, _store) = idle_by(clock.clone(), false).await;
    let before = clock.readings.load(Ordering::Relaxed);
    seam::wait(HOUR).await;
    let readings = (clock.readings.load(Ordering::Relaxed) - before) / u64::from(SEATS);
    assert!(readings <= 60 * READINGS_PER_WAKE, "{readings} readings of each seat in an hour");
}

#[tokio::test(start_paused = true)]
async fn event_for_a_seat_that_was_idle_for_long_runs_at_once() {
    let (mut world, _store) = idle_for_an_hour(false).await;
    let sent = world.env.clock().steady();
    world.send(&[("ann", "ok")]).await;
    assert_eq!(world.nexts(1).await, ["ok"]);
    assert!(world.env.clock().steady().since(sent) < Duration::from_millis(10));
}

#[tokio::test(start_paused = true)]
async fn draft_that_is_due_soon_runs_in_time_after_a_long_rest() {
    let (mut world, _store) = idle_for_an_hour(false).await;
    let (sent, delay) = (world.env.clock().steady(), Duration::from_secs(2));
    let delayed = Delay { until: StartAfter::Delay(delay), mode: DelayMode::Join };
    let drafts = vec![laneway_core::Draft { delay: Some(delayed), ..draft("ann", "ok") }];
    let sent_it = world.engine.producer().append("orders", Appending { drafts, object: None }).await;
    assert!(sent_it.is_ok_and(|sent| sent.iter().all(|sent| sent.receipt.is_ok())));
    assert_eq!(world.nexts(1).await, ["ok"]);
    let took = world.env.clock().steady().since(sent);
    assert!(took >= delay && took < delay + Duration::from_millis(100), "after {took:?}");
}

#[tokio::test(start_paused = true)]
async fn request_to_a_seat_that_was_idle_for_long_is_decided_at_once() {
    let (world, _store) = idle_for_an_hour(false).await;
    let operator = world.engine.operator();
    let filed = operator.pause("charge", "test").await.expect("it exists");
    assert!(operator.wait(&filed, Duration::from_secs(1)).await.expect("the store answers"));
}

/// Seats that are dormant.
fn dormant(told: &Told) -> f64 {
    told.sum("laneway_leases_dormant", "")
}

#[tokio::test(start_paused = true)]
async fn seat_of_a_store_that_others_change_does_not_become_dormant() {
    let told = Told::default();
    let _listening = told.listen();
    let _idle = idle_for_an_hour(true).await;
    assert_eq!(dormant(&told), 0.0, "it must notice that another node has taken it");
}

#[tokio::test(start_paused = true)]
async fn dormant_processor_is_removed_at_once() {
    let (world, _store) = idle_for_an_hour(false).await;
    let before = world.env.clock().steady();
    world.engine.remove_processor("charge", SOON).await.expect("it exists");
    assert!(world.env.clock().steady().since(before) < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn seat_becomes_dormant_again_and_again_and_each_event_runs_once() {
    let told = Told::default();
    let _listening = told.listen();
    let (mut world, _store) = idle_for_an_hour(false).await;
    for _ in 0..3 {
        assert_eq!(dormant(&told), f64::from(SEATS));
        world.send(&[("ann", "ok"), ("bob", "fail twice"), ("cat", "ok")]).await;
        let ran = world.nexts(5).await;
        assert_eq!(ran.iter().filter(|data| *data == "ok").count(), 2, "{ran:?}");
        let awake = f64::from(SEATS) - dormant(&told);
        assert!((1.0..=3.0).contains(&awake), "{awake} for three lanes");
        seam::wait(HOUR).await;
    }
    assert!(world.ran.try_recv().is_err(), "nothing runs twice");
}

#[tokio::test(start_paused = true)]
async fn emits_of_a_seat_that_rested_in_between_arrive_once_each() {
    let (world, _store) = idle_for_an_hour(false).await;
    world.engine.remove_processor("charge", SOON).await.expect("it exists");
    let one = StreamSettings { partitions: 1, ..StreamSettings::default() };
    let receipts = world.engine.define_stream("receipts", one).await.expect("a new stream");
    world.process_with(ProcessorSettings::default(), receipt).await;
    for sent in 1..=3 {
        world.send(&[("ann", "ok")]).await;
        seam::wait(HOUR).await;
        let Rows::Seats(info, _) = world.store_query(Query::Seats(receipts.shard(Partition(0)))).await else {
            panic!("seats")
        };
        assert_eq!(info.head.0, sent);
    }
}

/// Done, with one event for the stream `receipts`.
fn receipt(_: &LaneRun) -> Answer {
    let emit = Emission { stream: "receipts".to_owned(), draft: draft("ann", "paid") };
    let done = vec![Done { result: None, emits: vec![emit] }];
    Answer::Now(LaneAnswer { done, ..LaneAnswer::default() })
}

#[tokio::test(start_paused = true)]
async fn all_seats_are_taken_although_few_are_at_a_time() {
    const MANY: u32 = 300;
    for shared in [false, true] {
        let (mut world, _store) = idle_by_with(Arc::new(TokioClock::start()), shared, MANY).await;
        let keys: Vec<String> = (0..10 * MANY).map(|number| format!("key-{number}")).collect();
        let texts: Vec<(&str, &str)> = keys.iter().map(|key| (&key[..], "ok")).collect();
        world.send(&texts).await;
        assert_eq!(world.nexts(texts.len()).await.len(), texts.len(), "shared: {shared}");
    }
}

#[tokio::test(start_paused = true)]
async fn seats_that_wait_for_a_place_hold_up_no_seat_of_another_processor() {
    const MANY: u32 = 300;
    let mut world = World::with_partitions(Mode::Queue, MANY).await;
    let keys: Vec<String> = (0..10 * MANY).map(|number| format!("key-{number}")).collect();
    let texts: Vec<(&str, &str)> = keys.iter().map(|key| (&key[..], "slow")).collect();
    world.send(&texts).await;
    let one = StreamSettings { partitions: 1, ..StreamSettings::default() };
    world.engine.define_stream("receipts", one).await.expect("a new stream");
    let drafts = vec![draft("ann", "paid")];
    let sent = world.engine.producer().append("receipts", Appending { drafts, object: None }).await;
    sent.expect("the stream exists");
    let begun = world.env.clock().steady();
    world.process(ProcessorSettings { concurrency: 1, ..ProcessorSettings::default() }).await;
    let (ran_by, ran) = tokio::sync::oneshot::channel();
    let ran_by = parking_lot::Mutex::new(Some(ran_by));
    let handler = move |run: Run| {
        if let Some(ran_by) = ran_by.lock().take() {
            ran_by.send(()).expect("the test listens");
        }
        std::future::ready(run.lanes.iter().map(LaneAnswer::all_done).collect::<Vec<_>>())
    };
    let settings = ProcessorSettings::default();
    world.engine.process("mail", "receipts", settings, Arc::new(handler)).await.expect("a new processor");
    seam::within(SOON, ran).await.expect("it runs");
    let took = world.env.clock().steady().since(begun);
    assert!(took < Duration::from_millis(500), "the event waited {took:?} for seats that have no place");
    assert_eq!(world.next().await.data, "slow");
}
