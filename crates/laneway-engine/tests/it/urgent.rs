//! Urgent events behind a backlog: they start long before it, with what stands before them in their lane, and nothing of
//! it runs twice.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use laneway_core::store::{LaneSelect, LaneView, Lanes};
use laneway_core::{Draft, JobId, Key, LaneName, Mode, Partition, Seat, Status, Store, Terminal};
use laneway_engine::ProcessorSettings;
use laneway_engine::handler::{LaneAnswer, LaneRun, OnFailure, Policy, Retry};
use laneway_engine::job::Submit;
use laneway_engine::log::Appending;

use crate::world::{Answer, Ran, SOON, World, draft};

/// More than a window, so that what is sent after it is beyond it.
const FAR: usize = 66_000;
/// Long before the backlog: what is in memory when the urgent event is found, and some more.
const EARLY: usize = 20_000;

fn urgent(key: &str, data: &str) -> Draft {
    Draft { priority: 2, ..draft(key, data) }
}

/// A world whose processor is paused, with a backlog of keyless events.
async fn backlog(settings: ProcessorSettings) -> World {
    let world = World::with_partitions(Mode::Queue, 1).await;
    world.process_with(settings, work).await;
    let operator = world.engine.operator();
    let paused = operator.pause("charge", "anna").await.expect("it exists");
    assert!(operator.wait(&paused, SOON).await.expect("the store answers"));
    for from in (0..FAR).step_by(1_000) {
        send(&world, (from..from + 1_000).map(|number| draft("", &number.to_string())).collect()).await;
    }
    world
}

async fn send(world: &World, drafts: Vec<Draft>) {
    let sent = world.engine.producer().append("orders", Appending { drafts, object: None }).await;
    assert!(sent.expect("the stream exists").iter().all(|sent| sent.receipt.is_ok()));
}

async fn submit(world: &World, draft: Draft) -> JobId {
    let job = Submit { draft, processor: None, keep: None };
    let submitted = world.engine.jobs().submit("orders", vec![job]).await.expect("the stream exists");
    submitted.into_iter().next().expect("one answer").expect("the store takes it").id
}

async fn resume(world: &World) {
    let resumed = world.engine.operator().resume("charge").await.expect("it exists");
    assert!(world.engine.operator().wait(&resumed, SOON).await.expect("the store answers"));
}

/// The backlog takes its time, and one event of a lane more of it: thousands of others run meanwhile.
fn work(lane: &LaneRun) -> Answer {
    let data = String::from_utf8_lossy(&lane.events[0].data).into_owned();
    match data.as_str() {
        "long" => Answer::After(Duration::from_millis(100)),
        "broken" => Answer::Now(LaneAnswer::failed("broken for good", Retry::Never)),
        "fail once" if lane.attempt == 1 => Answer::Now(LaneAnswer::failed("as told", Retry::ByPolicy)),
        _ if lane.events[0].key.is_none() => Answer::After(Duration::from_millis(1)),
        _ => Answer::Now(LaneAnswer::all_done(lane)),
    }
}

/// Runs until this one has started, and with it.
async fn until(world: &mut World, key: &str, data: &str) -> Vec<Ran> {
    let mut runs = Vec::new();
    loop {
        let ran = world.next().await;
        let is_it = ran.key == key && ran.data == data;
        runs.push(ran);
        if is_it {
            return runs;
        }
    }
}

/// Everything that runs until the log is done.
async fn rest(world: &mut World) -> Vec<Ran> {
    let last = submit(world, draft("last", "last")).await;
    world.settled(last).await;
    world.engine.drain(SOON).await;
    std::iter::from_fn(|| world.ran.try_recv().ok()).collect()
}

fn of<'a>(runs: &'a [Ran], key: &str) -> Vec<&'a str> {
    runs.iter().filter(|ran| ran.key == key).map(|ran| ran.data.as_str()).collect()
}

/// How often each event of the backlog ran.
fn counts(runs: &[Ran]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    of(runs, "").into_iter().for_each(|data| *counts.entry(data).or_default() += 1);
    counts
}

fn assert_all_ran_once(runs: &[Ran]) {
    let counts = counts(runs);
    assert_eq!(counts.len(), FAR, "all of the backlog ran");
    let twice: BTreeSet<_> = counts.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "these ran more than once: {twice:?}");
}

/// All lanes that have a record.
async fn records(world: &World) -> Vec<LaneView> {
    let (stream, processor) = world.engine.catalogue().processor("charge").await.expect("it exists");
    let seat = Seat { shard: stream.shard(Partition(0)), processor };
    let select = LaneSelect::Blocked { kind: None, after: None, limit: 100 };
    world.store.lanes(Lanes { seat, select, siding: 10, states: true }).await.expect("the store answers")
}

fn lane(key: &str) -> LaneName {
    LaneName::Key(Key::new(key.to_owned()).expect("a short key"))
}

#[tokio::test(start_paused = true)]
async fn urgent_event_behind_a_backlog_starts_long_before_it_in_the_order_of_its_lane() {
    let mut world = backlog(ProcessorSettings::default()).await;
    send(&world, vec![draft("far", "one")]).await;
    let two = submit(&world, draft("far", "two")).await;
    let three = submit(&world, urgent("far", "three")).await;
    send(&world, vec![draft("far", "four"), urgent("", "alone")]).await;
    resume(&world).await;
    let ended = world.settled(three).await;
    assert_eq!(ended.status(), Status::Ended(Terminal::Done));
    let mut runs = until(&mut world, "far", "three").await;
    assert!(runs.len() < EARLY, "{} ran before it", runs.len());
    assert_eq!(of(&runs, "far"), ["one", "two", "three"]);
    assert_eq!(world.status(two).await, Status::Ended(Terminal::Done));

    runs.extend(rest(&mut world).await);
    assert_eq!(of(&runs, "far"), ["one", "two", "three", "four"]);
    let alone = runs.iter().position(|ran| ran.data == "alone").expect("it ran");
    assert!(alone < EARLY, "a keyless one is a lane of its own; {alone} ran before it");
    runs.remove(alone);
    assert_all_ran_once(&runs);
    assert_eq!(records(&world).await, [], "no lane is ahead of the floor any more");
}

#[tokio::test(start_paused = true)]
async fn urgent_event_lifts_what_of_its_lane_is_in_memory() {
    let mut world = World::with_partitions(Mode::Queue, 1).await;
    world.process_with(ProcessorSettings { concurrency: 1, ..ProcessorSettings::default() }, work).await;
    // Its first event holds the one place while the rest is sent; two more are in memory behind a crowd.
    send(&world, vec![draft("far", "long")]).await;
    assert_eq!(world.nexts(1).await, ["long"]);
    for from in (0..20_000).step_by(1_000) {
        send(&world, (from..from + 1_000).map(|number| draft("", &number.to_string())).collect()).await;
        if from == 0 {
            send(&world, vec![draft("far", "two")]).await;
        }
    }
    let three = submit(&world, urgent("far", "three")).await;
    world.settled(three).await;
    let runs = until(&mut world, "far", "three").await;
    assert!(runs.len() < 1_000, "{} ran before it", runs.len());
    assert_eq!(of(&runs, "far"), ["two", "three"]);
    let after = rest(&mut world).await;
    assert_eq!(of(&after, "far"), [""; 0]);
    assert_eq!(counts(&[runs, after].concat()).values().sum::<usize>(), 20_000);
}

#[tokio::test(start_paused = true)]
async fn what_ran_ahead_does_not_run_again_after_a_clean_restart() {
    let mut world = backlog(ProcessorSettings::default()).await;
    send(&world, ["one", "long", "three"].map(|data| draft("far", data)).to_vec()).await;
    send(&world, vec![urgent("far", "four")]).await;
    resume(&world).await;
    let mut runs = until(&mut world, "far", "long").await;
    world.engine.drain(SOON).await;
    runs.extend(std::iter::from_fn(|| world.ran.try_recv().ok()));
    assert!(runs.len() < EARLY, "{} ran before the restart", runs.len());
    assert_eq!(of(&runs, "far"), ["one", "long"]);
    let found = records(&world).await;
    assert!(found.iter().any(|view| view.record.lane == lane("far") && view.siding.len() == 2), "{found:?}");

    let mut world = world.again();
    world.process_with(ProcessorSettings::default(), work).await;
    runs.extend(until(&mut world, "far", "four").await);
    assert!(runs.len() < 2 * EARLY, "{} ran before it", runs.len());
    runs.extend(rest(&mut world).await);
    assert_eq!(of(&runs, "far"), ["one", "long", "three", "four"]);
    assert_all_ran_once(&runs);
    assert_eq!(records(&world).await, []);
}

#[tokio::test(start_paused = true)]
async fn crash_in_the_middle_of_an_urgent_lane_keeps_its_order_and_suspects_its_head() {
    let mut world = backlog(ProcessorSettings::default()).await;
    let one = submit(&world, draft("far", "one")).await;
    send(&world, ["long", "three"].map(|data| draft("far", data)).to_vec()).await;
    send(&world, vec![urgent("far", "four")]).await;
    resume(&world).await;
    let mut runs = until(&mut world, "far", "long").await;
    assert_eq!(of(&runs, "far"), ["one", "long"]);
    let before = world.settled(one).await;
    let mut next = world.again();
    drop(world.engine);

    next.process_with(ProcessorSettings::default(), work).await;
    let again = until(&mut next, "far", "long").await;
    assert_eq!(of(&again, "far"), ["long"], "what had ended does not run again");
    let found = records(&next).await;
    let far = found.iter().find(|view| view.record.lane == lane("far")).expect("it is ahead");
    assert!(far.record.started, "its start is durable before it runs: {:?}", far.record);
    runs.extend(again);
    runs.extend(rest(&mut next).await);
    assert_eq!(of(&runs, "far"), ["one", "long", "long", "three", "four"]);
    assert_eq!(counts(&runs).len(), FAR, "nothing of the backlog is lost");
    assert_eq!(next.settled(one).await, before, "the job has ended once");
    assert_eq!(records(&next).await, []);
}

#[tokio::test(start_paused = true)]
async fn urgent_lane_fails_beyond_the_window_as_anywhere() {
    let policy = Policy { on_failure: OnFailure::DeadLetterLane, ..Policy::default() };
    let mut world = backlog(ProcessorSettings { policy, ..ProcessorSettings::default() }).await;
    send(&world, vec![draft("far", "broken"), draft("off", "fail once")]).await;
    let behind = submit(&world, urgent("far", "behind")).await;
    let last = submit(&world, urgent("off", "last")).await;
    resume(&world).await;
    assert_eq!(world.settled(behind).await.status(), Status::Ended(Terminal::Failed));
    let mut runs: Vec<Ran> = std::iter::from_fn(|| world.ran.try_recv().ok()).collect();
    assert!(runs.len() < EARLY, "{} ran before it", runs.len());
    assert_eq!(of(&runs, "far"), ["broken"]);
    assert_eq!(world.settled(last).await.status(), Status::Ended(Terminal::Done));
    runs.extend(rest(&mut world).await);
    assert_eq!(of(&runs, "far"), ["broken"], "its lane diverts");
    assert_eq!(of(&runs, "off"), ["fail once", "fail once", "last"]);
    assert_all_ran_once(&runs);
}

#[tokio::test(start_paused = true)]
async fn urgent_event_of_a_lane_that_is_too_long_waits_for_the_reader() {
    let mut world = backlog(ProcessorSettings::default()).await;
    for steps in [1_024, 1_025] {
        let key = format!("{steps} steps");
        send(&world, (0..steps / 2).map(|number| draft(&key, &number.to_string())).collect()).await;
        send(&world, (steps / 2..steps).map(|number| draft(&key, &number.to_string())).collect()).await;
        send(&world, vec![urgent(&key, "last")]).await;
    }
    resume(&world).await;
    let mut early = until(&mut world, "1024 steps", "0").await;
    assert!(early.len() < EARLY, "{} ran before it", early.len());
    early.extend(until(&mut world, "1024 steps", "last").await);
    assert!(early.len() < FAR, "it runs beside the backlog, not behind it");
    assert_eq!(of(&early, "1025 steps"), [""; 0], "too long");
    let late = until(&mut world, "1025 steps", "last").await;
    let all = [early, late, rest(&mut world).await].concat();
    for steps in [1_024, 1_025] {
        let mut expected: Vec<String> = (0..steps).map(|number| number.to_string()).collect();
        expected.push("last".to_owned());
        assert_eq!(of(&all, &format!("{steps} steps")), expected);
    }
    assert_all_ran_once(&all);
}

/// What would be run as another priority than it says is refused, by whatever way it comes.
#[tokio::test(start_paused = true)]
async fn priority_beyond_the_highest_is_refused_with_the_limit() {
    let world = World::new(Mode::Queue).await;
    world.process(ProcessorSettings::default()).await;
    let draft = Draft { priority: 3, ..draft("ann", "ok") };
    let appending = Appending { drafts: vec![draft.clone()], object: None };
    let refused = world.engine.producer().append("orders", appending).await.expect_err("too urgent");
    assert!(refused.to_string().contains("priority is 3, must be 0 to 2"), "{refused}");
    let job = Submit { draft, processor: None, keep: None };
    let refused = world.engine.jobs().submit("orders", vec![job]).await.expect_err("too urgent");
    assert!(refused.to_string().contains("priority is 3, must be 0 to 2"), "{refused}");
}
