//! Every waiting job has one reason, and it is the true one.

use laneway_core::{Key, Mode, Status};
use laneway_engine::ProcessorSettings;
use laneway_engine::handler::{OnFailure, Policy};
use laneway_engine::observe::{Limit, Why};

use crate::faulty::Faulty;
use crate::world::World;

fn settings() -> ProcessorSettings {
    let policy = Policy { max_attempts: 2, on_failure: OnFailure::Park, ..Policy::default() };
    ProcessorSettings { policy, ..ProcessorSettings::default() }
}

#[tokio::test(start_paused = true)]
async fn job_behind_a_run_names_it_and_the_run_says_that_it_runs() {
    let mut world = World::new(Mode::Queue).await;
    world.process(settings()).await;
    let running = world.submit("ann", "slow").await;
    let behind = world.submit("ann", "behind").await;
    assert_eq!(world.nexts(1).await, ["slow"]);
    let looker = world.engine.looker().clone();
    // Before it shows in the store, its own node knows it.
    assert_eq!(world.status(running).await, Status::Waiting);
    let standing = looker.job(running).await.expect("known");
    assert!(matches!(standing.why, Why::Running { since: Some(_) }), "{standing:?}");
    assert_eq!((standing.status, standing.attempts), (Status::Running, 1));
    assert!(standing.started_at.is_some());
    let why = looker.why_job(behind).await.expect("known");
    assert!(matches!(why, Why::Behind { since: Some(_), .. }), "{why:?}");
    assert_eq!(looker.job(behind).await.expect("known").status, Status::Waiting);
    // Long enough to show.
    crate::seam::wait(std::time::Duration::from_secs(3)).await;
    assert!(matches!(looker.why_job(running).await.expect("known"), Why::Running { since: Some(_) }));
    assert_eq!(world.status(running).await, Status::Running);
    let why = looker.why_job(behind).await.expect("known");
    assert!(matches!(why, Why::Behind { since: Some(_), .. }), "{why:?}");
}

#[tokio::test(start_paused = true)]
async fn lane_tells_its_head_and_why_it_stands() {
    let mut world = World::new(Mode::Queue).await;
    world.process(settings()).await;
    let parked = world.submit("ann", "fail").await;
    let behind = world.submit("ann", "behind").await;
    world.settled(parked).await;
    assert_eq!(world.nexts(2).await, ["fail", "fail"]);
    let looker = world.engine.looker().clone();
    let ann = Key::new("ann").expect("short");
    let standing = looker.lane("orders", &ann).await.expect("known");
    let charge = &standing.processors[0];
    assert!(matches!(&charge.why, Why::Parked { cause, .. } if &cause[..] == b"as told"), "{charge:?}");
    assert_eq!(charge.record.as_ref().map(|record| record.attempts), Some(2));
    assert!(matches!(looker.why_job(behind).await.expect("known"), Why::Parked { .. }));
    let head = charge.head.expect("it has one");
    world.engine.operator().retry("charge", &ann, head).await.expect("asked");
    assert_eq!(world.nexts(2).await, ["fail", "fail"], "it has all its attempts again");
    let nobody = looker.lane("orders", &Key::new("nobody").expect("short")).await.expect("known");
    assert_eq!((nobody.tail, &nobody.processors[0].why), (None, &Why::Idle));
}

#[tokio::test(start_paused = true)]
async fn paused_processor_and_missing_processor_are_told_apart() {
    let world = World::new(Mode::Queue).await;
    world.process(settings()).await;
    world.engine.operator().pause("charge", "op").await.expect("asked");
    crate::seam::wait(std::time::Duration::from_secs(3)).await;
    let job = world.submit("ann", "ok").await;
    let looker = world.engine.looker().clone();
    let why = looker.why_job(job).await.expect("known");
    let Why::ProcessorPaused { by, at } = why.clone() else { panic!("{why:?}") };
    assert_eq!((&by[..], why.to_string().as_str()), (&b"op"[..], "its processor was paused by op"));
    let stopped = looker.stopped("charge").await.expect("known");
    let paused = Some(laneway_engine::Paused { by, at });
    assert!(stopped.len() == 2 && stopped.iter().all(|seat| seat.paused == paused), "{stopped:?}");
    // Who comes second did not do it, and it is known after a restart too.
    world.engine.operator().pause("charge", "another").await.expect("asked");
    crate::seam::wait(std::time::Duration::from_secs(3)).await;
    world.engine.drain(crate::world::SOON).await;
    let again = world.again();
    again.process(settings()).await;
    crate::seam::wait(std::time::Duration::from_secs(3)).await;
    assert_eq!(again.engine.looker().why_job(job).await.expect("known"), why);
    again.engine.operator().resume("charge").await.expect("asked");
    again.settled(job).await;
    assert!(again.engine.looker().stopped("charge").await.expect("known").is_empty());
}

#[tokio::test(start_paused = true)]
async fn parked_lanes_and_failed_jobs_are_reported_on_the_system_stream() {
    use laneway_core::store::{Entry, Read, ReadFrom};
    let world = World::new(Mode::Queue).await;
    world.engine.start_reports().await.expect("a new stream");
    world.process(settings()).await;
    let parked = world.submit("ann", "fail").await;
    world.settled(parked).await;
    let info = world.engine.catalogue().stream("_laneway").await.expect("it is there");
    let read = Read {
        shard: info.shard(laneway_core::Partition(0)),
        from: ReadFrom::After(laneway_core::EventId(0)),
        limit: 10,
        bytes: 1 << 20,
        processor: None,
        states: false,
    };
    // The report leaves the outbox soon after the commit that made it.
    crate::seam::wait(std::time::Duration::from_secs(2)).await;
    let page = world.engine.stores().store.read(read).await.expect("readable");
    let [Entry::Event(report)] = &page.entries[..] else { panic!("one report, {:?}", page.entries) };
    assert_eq!(report.kind.as_str(), "lane.parked");
    let text = String::from_utf8_lossy(&report.data);
    assert!(text.contains(r#""key":"ann""#) && text.contains(r#""cause":"as told""#), "{text}");
}

#[tokio::test(start_paused = true)]
async fn head_that_finds_no_place_names_the_limit_and_another_node_does_not_know() {
    let mut world = World::new(Mode::Queue).await;
    world.process(ProcessorSettings { concurrency: 1, ..settings() }).await;
    let running = world.submit("ann", "slow").await;
    world.next().await;
    crate::seam::wait(std::time::Duration::from_secs(3)).await;
    let waits = world.submit("bob", "ok").await;
    let looker = world.engine.looker().clone();
    assert_eq!(
        looker.why_job(waits).await.expect("known"),
        Why::LimitReached { limit: Limit::Concurrency(1) }
    );
    assert!(matches!(looker.why_job(running).await.expect("known"), Why::Running { .. }));
    let other = Faulty::elsewhere(&world);
    let elsewhere = other.engine.looker().why_job(waits).await.expect("known");
    assert!(matches!(elsewhere, Why::Waiting { .. }), "{elsewhere:?}");
    world.engine.drain(2 * crate::world::SOON).await;
    assert_eq!(looker.why_job(waits).await.expect("known"), Why::NoOwner, "nothing runs here any more");
    let elsewhere = other.engine.looker().why_job(waits).await.expect("known");
    assert_eq!(elsewhere, Why::NoOwner, "its owner ended in good order");
}

/// An owner that came to a bad end does not say so. Only where no other process reaches the store is it known to be gone.
#[tokio::test(start_paused = true)]
async fn processor_that_nobody_runs_after_a_crash_has_no_owner() {
    let mut world = World::new(Mode::Queue).await;
    world.process(settings()).await;
    let running = world.submit("ann", "wait").await;
    world.next().await;
    let again = world.again();
    let other = Faulty::elsewhere(&world);
    drop(world);
    let told = again.engine.looker().why_job(running).await.expect("known");
    assert_eq!(told, Why::NoOwner, "it is registered, and runs nowhere");
    let told = other.engine.looker().why_job(running).await.expect("known");
    assert!(matches!(told, Why::Waiting { .. }), "another process may run it, {told:?}");
}

#[tokio::test(start_paused = true)]
async fn head_that_a_rate_holds_back_names_it_and_when_it_may_start() {
    let mut world = World::with_partitions(Mode::Queue, 1).await;
    world.process(ProcessorSettings { rate: Some(1), ..settings() }).await;
    let mut jobs = Vec::new();
    // Ten may start at once after a quiet time.
    for number in 0..12 {
        jobs.push(world.submit(&format!("key {number}"), "ok").await);
    }
    world.nexts(10).await;
    let looker = world.engine.looker().clone();
    for waits in &jobs[10..] {
        let why = looker.why_job(*waits).await.expect("known");
        let Why::LimitReached { limit: Limit::Rate { per_second: 1, until } } = why else {
            panic!("{why:?}")
        };
        let left = until.0 - world.env.clock().steady().0;
        assert!((1..=1_000_000).contains(&left), "{left} us");
    }
    world.settled(jobs[10]).await;
    world.settled(jobs[11]).await;
}

#[tokio::test(start_paused = true)]
async fn head_that_the_rate_of_its_key_holds_back_names_it_and_others_go_on() {
    let mut world = World::new(Mode::Queue).await;
    world.process(ProcessorSettings { rate_per_key: Some(2), ..settings() }).await;
    let first = world.submit("ann", "ok").await;
    world.settled(first).await;
    let started = world.env.clock().steady();
    let waits = world.submit("ann", "ok").await;
    let behind = world.submit("ann", "ok").await;
    let other = world.submit("bob", "ok").await;
    world.settled(other).await;
    let looker = world.engine.looker().clone();
    let why = looker.why_job(waits).await.expect("known");
    let Why::LimitReached { limit: Limit::RatePerKey { per_second: 2, until } } = why else {
        panic!("{why:?}")
    };
    assert!(until <= started.after(std::time::Duration::from_millis(500)));
    let lane = looker.lane("orders", &Key::new("ann").expect("short")).await.expect("known");
    assert_eq!(lane.processors[0].why, why, "the lane stands for the same reason");
    assert!(matches!(looker.why_job(behind).await.expect("known"), Why::Behind { .. }));
    assert_eq!(world.nexts(2).await.len(), 2);
    world.settled(waits).await;
    assert!(world.env.clock().steady() >= until, "it did not start before");
}

#[tokio::test(start_paused = true)]
async fn head_whose_batch_is_not_full_says_until_when_it_waits() {
    use std::time::Duration;

    use laneway_engine::Batch;

    let within = Duration::from_secs(10);
    for batch in [Batch::Lane { max: 2, within }, Batch::Lanes { max: 2, within }] {
        let world = World::with_partitions(Mode::Queue, 1).await;
        world.process(ProcessorSettings { batch, ..settings() }).await;
        let looker = world.engine.looker().clone();
        let first = world.submit("ann", "ok").await;
        crate::seam::wait(Duration::from_secs(1)).await;
        let why = looker.why_job(first).await.expect("known");
        let Why::BatchNotFull { until } = why else { panic!("{batch:?}: {why:?}") };
        let left = Duration::from_micros(until.0 - world.env.clock().steady().0);
        assert!(left <= within && left >= within - Duration::from_secs(2), "{left:?}");
        let key = if matches!(batch, Batch::Lane { .. }) { "ann" } else { "bob" };
        let second = world.submit(key, "ok").await;
        world.settled(first).await;
        world.settled(second).await;
        assert!(world.env.clock().steady() < until, "a full batch waits no more");
    }
}

#[tokio::test(start_paused = true)]
async fn head_that_no_worker_claims_says_so_until_one_asks() {
    use laneway_engine::handler::{ClaimWish, LaneAnswer};
    let world = World::new(Mode::Queue).await;
    let settings = ProcessorSettings { concurrency: 1, ..settings() };
    let desk = world.engine.process_at_desk("charge", "orders", settings).await.expect("a processor");
    let first = world.submit("ann", "ok").await;
    // Long enough for the seats to be taken.
    crate::seam::wait(std::time::Duration::from_secs(1)).await;
    let looker = world.engine.looker().clone();
    assert_eq!(looker.why_job(first).await.expect("known"), Why::NoWorker);
    let second = std::time::Duration::from_secs(1);
    let wish = ClaimWish {
        lanes: 1,
        events: 1,
        lease: 30 * second,
        wait: second,
        worker: "w1".to_owned(),
        request: None,
    };
    let claim = desk.claim(wish).await.remove(0);
    let other = world.submit("bob", "ok").await;
    assert_eq!(
        looker.why_job(other).await.expect("known"),
        Why::LimitReached { limit: Limit::Concurrency(1) }
    );
    desk.settle(&claim.token, LaneAnswer::done(None)).await.expect("it is ours");
    assert_eq!(looker.why_job(other).await.expect("known"), Why::NoWorker);
    world.engine.stop_processor("charge", crate::world::SOON).await.expect("it runs");
    assert_eq!(looker.why_job(other).await.expect("known"), Why::NoOwner, "nobody could claim it any more");
}

/// Without a worker nothing runs, whatever the lane has been through; with one it runs from the first moment.
#[tokio::test(start_paused = true)]
async fn lane_of_a_desk_is_running_exactly_while_a_worker_has_it() {
    use std::time::Duration;

    use laneway_engine::handler::{Claim, ClaimWish, Desk, LaneAnswer, Retry};

    let world = World::new(Mode::Queue).await;
    let policy = Policy { backoff: Duration::from_secs(1), ..settings().policy };
    let settings = ProcessorSettings { policy, ..settings() };
    let desk = world.engine.process_at_desk("charge", "orders", settings).await.expect("a processor");
    let (looker, operator) = (world.engine.looker().clone(), world.engine.operator().clone());
    let ann = Key::new("ann").expect("short");
    let claim = async |desk: &Desk| -> Claim {
        let (lease, wait) = (Duration::from_secs(3), Duration::from_secs(20));
        let wish = ClaimWish { lanes: 1, events: 2, lease, wait, worker: "w1".to_owned(), request: None };
        desk.claim(wish).await.remove(0)
    };
    let jobs =
        [world.submit("ann", "a").await, world.submit("ann", "b").await, world.submit("ann", "c").await];
    let claimed = claim(&desk).await;
    let expires = claimed.expires;
    let check_claimed = async |job, attempts| {
        let standing = looker.job(job).await.expect("known");
        assert_eq!((standing.status, standing.attempts), (Status::Running, attempts), "{standing:?}");
        let Why::Claimed { worker, .. } = standing.why else { panic!("{standing:?}") };
        assert_eq!(&worker[..], b"w1");
    };
    check_claimed(jobs[0], 1).await;
    check_claimed(jobs[1], 1).await;
    let lane = looker.lane("orders", &ann).await.expect("known").processors.remove(0);
    assert!(matches!(lane.why, Why::Claimed { expires: until, .. } if until == expires), "{lane:?}");
    assert_eq!(looker.job(jobs[2]).await.expect("known").status, Status::Waiting);

    let check_free = async |job, attempts| {
        let standing = looker.job(job).await.expect("known");
        assert_eq!((standing.status, &standing.why), (Status::Waiting, &Why::NoWorker), "{standing:?}");
        assert_eq!((standing.attempts, standing.started_at), (attempts, None));
        let lane = looker.lane("orders", &ann).await.expect("known").processors.remove(0);
        assert_eq!(lane.why, Why::NoWorker, "{lane:?}");
    };
    // The worker goes silent, the attempt fails, and its retry is due.
    crate::seam::wait(Duration::from_secs(20)).await;
    check_free(jobs[0], 1).await;

    // It comes again alone and is done; the next one failed and is due.
    let again = claim(&desk).await;
    check_claimed(jobs[0], 2).await;
    assert_eq!(looker.job(jobs[1]).await.expect("known").status, Status::Waiting);
    desk.settle(&again.token, LaneAnswer::done(None)).await.expect("ours");
    let next = claim(&desk).await;
    check_claimed(jobs[2], 1).await;
    desk.settle(&next.token, LaneAnswer::failed("no", Retry::ByPolicy)).await.expect("ours");
    crate::seam::wait(Duration::from_secs(20)).await;
    check_free(jobs[1], 1).await;

    // It is parked, and somebody asks for it to be tried again, and then passes it over.
    let again = claim(&desk).await;
    desk.settle(&again.token, LaneAnswer::failed("never", Retry::Never)).await.expect("ours");
    assert_eq!(looker.job(jobs[1]).await.expect("known").status, Status::Parked);
    let head = looker.lane("orders", &ann).await.expect("known").processors.remove(0).head.expect("one");
    operator.retry("charge", &ann, head).await.expect("asked");
    crate::seam::wait(Duration::from_secs(2)).await;
    check_free(jobs[1], 0).await;
    operator.skip("charge", &ann, head).await.expect("asked");
    crate::seam::wait(Duration::from_secs(2)).await;
    check_free(jobs[2], 0).await;
}
