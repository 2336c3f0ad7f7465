//! Claims that outlive their node, are settled on another one, repeated, or taken away.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::store::RequestOp;
use laneway_core::{Draft, Key, Mode, Status, Terminal};
use laneway_engine::ProcessorSettings;
use laneway_engine::handler::{
    Claim, ClaimError, ClaimToken, ClaimWish, Desk, Done, LaneAnswer, Outcome, Policy, Retry, Settlement,
};
use laneway_engine::job::{By, Submit};
use laneway_engine::observe::Why;

use crate::faulty::Faulty;
use crate::seam;
use crate::world::{SOON, World, draft};

const LEASE: Duration = Duration::from_secs(30);

fn wish(events: usize) -> ClaimWish {
    let wait = Duration::from_secs(20);
    ClaimWish { lanes: 10, events, lease: LEASE, wait, worker: "w1".to_owned(), request: None }
}

async fn desk(world: &World) -> Arc<Desk> {
    let desk = world.engine.process_at_desk("charge", "orders", ProcessorSettings::default()).await;
    desk.expect("a new processor")
}

async fn claim(desk: &Desk, events: usize) -> Claim {
    let mut claims = desk.claim(wish(events)).await;
    assert_eq!(claims.len(), 1, "one lane has events");
    claims.remove(0)
}

fn data(claim: &Claim) -> Vec<String> {
    claim.run.events.iter().map(|event| String::from_utf8_lossy(&event.data).into_owned()).collect()
}

async fn why(world: &World) -> Why {
    let key = Key::new("ann").expect("a short key");
    world.engine.looker().lane("orders", &key).await.expect("known").processors.remove(0).why
}

#[tokio::test(start_paused = true)]
async fn worker_gets_as_many_events_of_a_lane_as_it_asks_for_and_settles_a_part() {
    let world = World::new(Mode::Queue).await;
    let desk = desk(&world).await;
    let jobs =
        [world.submit("ann", "a").await, world.submit("ann", "b").await, world.submit("ann", "c").await];
    let first = claim(&desk, 2).await;
    assert_eq!(data(&first), ["a", "b"]);
    let partly = LaneAnswer { done: vec![Done::default()], ..LaneAnswer::failed("b is bad", Retry::Never) };
    assert_eq!(desk.settle(&first.token, partly).await.expect("ours"), Settlement::Accepted);
    assert_eq!(world.settled(jobs[0]).await.status(), Status::Ended(Terminal::Done));
    assert_eq!(world.settled(jobs[1]).await.status(), Status::Parked);
    assert_eq!(world.status(jobs[2]).await, Status::Waiting);
}

#[tokio::test(start_paused = true)]
async fn same_call_again_gets_the_same_claims_while_they_are_open() {
    let world = World::new(Mode::Queue).await;
    let desk = desk(&world).await;
    world.submit("ann", "a").await;
    world.submit("bob", "b").await;
    let named = ClaimWish { lanes: 1, request: Some("call-1".to_owned()), ..wish(1) };
    let tokens = |claims: &[Claim]| claims.iter().map(|claim| claim.token.clone()).collect::<Vec<_>>();
    let first = desk.claim(named.clone()).await;
    let again = desk.claim(named.clone()).await;
    assert_eq!((first.len(), tokens(&first)), (1, tokens(&again)));
    desk.settle(&first[0].token, LaneAnswer::done(None)).await.expect("ours");
    let other = desk.claim(named).await;
    assert_ne!(tokens(&first), tokens(&other), "what was settled is not handed out again");
}

#[tokio::test(start_paused = true)]
async fn two_calls_of_one_name_at_once_get_one_batch() {
    let world = World::new(Mode::Queue).await;
    let desk = desk(&world).await;
    let named = ClaimWish { lanes: 1, request: Some("call-1".to_owned()), ..wish(1) };
    let submit = async {
        world.submit("ann", "a").await;
        world.submit("bob", "b").await;
    };
    let (first, second, ()) = tokio::join!(desk.claim(named.clone()), desk.claim(named.clone()), submit);
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_eq!(first[0].token, second[0].token);
}

#[tokio::test(start_paused = true)]
async fn claim_survives_a_clean_restart_and_is_settled_with_its_old_token() {
    let world = World::new(Mode::Queue).await;
    let before = desk(&world).await;
    let jobs =
        [world.submit("ann", "a").await, world.submit("ann", "b").await, world.submit("ann", "c").await];
    let claimed = claim(&before, 2).await;
    world.engine.drain(SOON).await;

    let world = world.again();
    let after = desk(&world).await;
    // Nobody else gets the lane while the lease lasts.
    let impatient = ClaimWish { wait: Duration::from_secs(5), ..wish(1) };
    assert!(after.claim(impatient).await.is_empty());
    assert!(matches!(why(&world).await, Why::Claimed { worker, .. } if &worker[..] == b"w1"));
    let mut forged: ClaimToken = claimed.token.parse().expect("a token");
    forged.nonce.0 ^= 1;
    let (forged, done) = (forged.to_string(), LaneAnswer::done(None));
    assert!(matches!(after.extend(&forged, LEASE).await, Err(ClaimError::Lost)));
    assert!(matches!(after.settle(&forged, done).await, Err(ClaimError::Lost)));
    after.extend(&claimed.token, LEASE).await.expect("still ours");
    let done = LaneAnswer {
        done: vec![Done { result: Some("paid".into()), ..Done::default() }; 2],
        ..LaneAnswer::default()
    };
    assert_eq!(after.settle(&claimed.token, done.clone()).await.expect("still ours"), Settlement::Accepted);
    for job in &jobs[..2] {
        assert_eq!(world.settled(*job).await.status(), Status::Ended(Terminal::Done));
    }
    assert!(matches!(after.settle(&claimed.token, done).await, Ok(Settlement::Already(_))));
    let rest = claim(&after, 5).await;
    assert_eq!((data(&rest), rest.run.attempt), (vec!["c".to_owned()], 1));
}

#[tokio::test(start_paused = true)]
async fn lease_of_a_claim_that_was_handed_over_ends_by_the_stores_clock() {
    let world = World::new(Mode::Queue).await;
    let before = desk(&world).await;
    let job = world.submit("ann", "a").await;
    let lost = claim(&before, 1).await;
    world.engine.drain(SOON).await;
    let world = world.again();
    let after = desk(&world).await;
    seam::wait(LEASE).await;
    assert!(matches!(after.settle(&lost.token, LaneAnswer::done(None)).await, Err(ClaimError::Lost)));
    let again = claim(&after, 1).await;
    assert_eq!((lost.run.attempt, again.run.attempt), (1, 2));
    assert!(lost.run.fence.to_string() < again.run.fence.to_string());
    after.settle(&again.token, LaneAnswer::done(None)).await.expect("ours");
    assert_eq!(world.settled(job).await.status(), Status::Ended(Terminal::Done));
}

#[tokio::test(start_paused = true)]
async fn claim_that_was_handed_over_is_about_its_own_event_after_the_ttl_of_that() {
    for answers in [true, false] {
        let world = World::new(Mode::Queue).await;
        let before = desk(&world).await;
        let brief = Draft { ttl: Some(Duration::from_secs(10)), ..draft("ann", "a") };
        let brief = Submit { draft: brief, processor: None, keep: None };
        let jobs = world.engine.jobs().clone();
        let brief = jobs.submit_one("orders", brief, &By::default()).await.expect("accepted").id;
        let behind = world.submit("ann", "b").await;
        let claimed = claim(&before, 1).await;
        world.engine.drain(SOON).await;
        let world = world.again();
        let after = desk(&world).await;
        // It was started in time, so it does not expire any more, and nothing else is taken for it.
        seam::wait(Duration::from_secs(20)).await;
        if answers {
            let settled = after.settle(&claimed.token, LaneAnswer::done(None)).await;
            assert_eq!(settled.expect("still ours"), Settlement::Accepted);
            assert_eq!(world.settled(brief).await.status(), Status::Ended(Terminal::Done));
        } else {
            seam::wait(LEASE).await;
        }
        let next = claim(&after, 1).await;
        assert_eq!((data(&next), next.run.attempt), (vec!["b".to_owned()], 1));
        assert!(!world.status(behind).await.is_terminal());
        after.settle(&next.token, LaneAnswer::done(None)).await.expect("ours");
        assert_eq!(world.settled(behind).await.status(), Status::Ended(Terminal::Done));
        assert!(world.status(brief).await.is_terminal());
    }
}

#[tokio::test(start_paused = true)]
async fn old_claim_survives_a_crash_and_a_young_one_is_lost() {
    for (age, survives) in [(Duration::from_secs(7), true), (Duration::from_secs(2), false)] {
        let world = World::new(Mode::Queue).await;
        let before = desk(&world).await;
        let job = world.submit("ann", "a").await;
        let claimed = claim(&before, 1).await;
        seam::wait(age).await;
        assert!(matches!(why(&world).await, Why::Claimed { .. }), "its node knows it from the first moment");
        // Another node goes by what is written.
        assert_eq!(matches!(why(&Faulty::elsewhere(&world)).await, Why::Claimed { .. }), survives);
        let (crashed, world) = (world.again(), world);
        drop((before, world));
        let world = crashed;
        let after = desk(&world).await;
        let settled = after.settle(&claimed.token, LaneAnswer::done(None)).await;
        if survives {
            assert_eq!(settled.expect("still ours"), Settlement::Accepted);
            assert_eq!(world.settled(job).await.status(), Status::Ended(Terminal::Done));
        } else {
            assert!(matches!(settled, Err(ClaimError::Lost)), "{settled:?}");
        }
    }
}

/// A restart in good order, and a crash: nothing of the claim is known any more but how its events have ended.
#[tokio::test(start_paused = true)]
async fn claim_that_was_settled_is_told_so_after_a_restart_of_its_owner() {
    for drains in [true, false] {
        let world = World::new(Mode::Queue).await;
        let before = desk(&world).await;
        for data in ["a", "b", "c"] {
            world.submit("ann", data).await;
        }
        let partly = claim(&before, 3).await;
        let answer = LaneAnswer { done: vec![Done::default()], ..LaneAnswer::failed("b", Retry::Never) };
        before.settle(&partly.token, answer.clone()).await.expect("ours");
        let open = world.submit("bob", "d").await;
        let lost = claim(&before, 1).await;
        if drains {
            world.engine.drain(SOON).await;
        }
        let (again, world) = (world.again(), world);
        drop((before, world));
        let world = again;
        let after = desk(&world).await;
        let told = after.settle(&partly.token, answer).await.expect("it was ours");
        assert_eq!(told, Settlement::Already(Some(Outcome { done: 1, failed: true })));
        if !drains {
            // Fenced with its owner, before anybody has ended its event.
            let told = after.settle(&lost.token, LaneAnswer::done(None)).await;
            assert!(matches!(told, Err(ClaimError::Lost)), "{told:?}");
            assert!(!world.status(open).await.is_terminal());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn another_node_settles_and_extends_by_requests() {
    let world = World::new(Mode::Queue).await;
    let desk = desk(&world).await;
    let job = world.submit("ann", "a").await;
    let claimed = claim(&desk, 1).await;
    // A node that owns nothing.
    let other = world.again();
    seam::wait(Duration::from_secs(20)).await;
    other.engine.operator().extend(&claimed.token, LEASE).await.expect("still ours");
    seam::wait(Duration::from_secs(20)).await;
    let done = LaneAnswer::done(Some("paid".into()));
    let settled = other.engine.operator().settle(&claimed.token, &done).await.expect("still ours");
    assert_eq!(settled, Settlement::Accepted);
    assert_eq!(world.settled(job).await.status(), Status::Ended(Terminal::Done));
    let again = other.engine.operator().settle(&claimed.token, &done).await.expect("it was ours");
    assert_eq!(again, Settlement::Already(Some(Outcome { done: 1, failed: false })));
}

#[tokio::test(start_paused = true)]
async fn forged_token_settles_nothing() {
    let world = World::new(Mode::Queue).await;
    let desk = desk(&world).await;
    let job = world.submit("ann", "a").await;
    let claimed = claim(&desk, 1).await;
    let mut forged: ClaimToken = claimed.token.parse().expect("a token");
    forged.nonce.0 ^= 1;
    let settled = desk.settle(&forged.to_string(), LaneAnswer::done(None)).await;
    assert!(matches!(settled, Err(ClaimError::Lost)), "{settled:?}");
    // A request that says it is about another lane's claim, and one that is not readable.
    let seat = forged.seat;
    for claim in ["nonsense".to_owned(), forged.to_string()] {
        let op = RequestOp::Settle { claim: claim.into(), answer: "nonsense".into() };
        let filed = world.engine.operator().file(seat, world.env.token(), op).await.expect("filed");
        let answer = world.engine.operator().answer(filed, SOON).await.expect("answered");
        assert!(matches!(answer, Some(laneway_engine::lane::Answer::Refused(_))), "{answer:?}");
    }
    assert!(!world.status(job).await.is_terminal());
    desk.settle(&claimed.token, LaneAnswer::done(None)).await.expect("still ours");
}

#[tokio::test(start_paused = true)]
async fn worker_learns_that_its_job_was_cancelled() {
    let world = World::new(Mode::Queue).await;
    let desk = desk(&world).await;
    let job = world.submit("ann", "a").await;
    let claimed = claim(&desk, 1).await;
    world.engine.jobs().cancel(job, world.env.token()).await.expect("it runs");
    assert_eq!(world.settled(job).await.status(), Status::Ended(Terminal::Cancelled));
    assert!(matches!(desk.extend(&claimed.token, LEASE).await, Err(ClaimError::Lost)));
    let settled = desk.settle(&claimed.token, LaneAnswer::done(None)).await.expect("it has ended");
    assert_eq!(settled, Settlement::Already(Some(Outcome { done: 0, failed: false })));
}

#[tokio::test(start_paused = true)]
async fn worker_that_is_out_of_time_loses_its_claim_and_a_lane_without_workers_does_not() {
    let world = World::new(Mode::Queue).await;
    let policy = Policy { backoff: Duration::ZERO, ..Policy::default() };
    let settings = ProcessorSettings {
        timeout: Some(Duration::from_millis(500)),
        policy,
        ..ProcessorSettings::default()
    };
    let desk = world.engine.process_at_desk("charge", "orders", settings).await.expect("a new processor");
    world.submit("ann", "a").await;
    let late = claim(&desk, 1).await;
    seam::wait(Duration::from_secs(1)).await;
    assert!(matches!(desk.settle(&late.token, LaneAnswer::done(None)).await, Err(ClaimError::Lost)));
    assert_eq!(claim(&desk, 1).await.run.attempt, 2);
}

#[tokio::test(start_paused = true)]
async fn long_claim_that_was_handed_over_is_settled_whole() {
    let world = World::new(Mode::Queue).await;
    let before = desk(&world).await;
    let mut jobs = Vec::new();
    for number in 0..400 {
        jobs.push(world.submit("ann", &number.to_string()).await);
    }
    seam::wait(Duration::from_secs(2)).await;
    let claimed = claim(&before, 300).await;
    assert_eq!(claimed.run.events.len(), 300, "more than is loaded of a siding at a time");
    world.engine.drain(SOON).await;

    let world = world.again();
    let after = desk(&world).await;
    let done = LaneAnswer::all_done(&claimed.run);
    assert_eq!(after.settle(&claimed.token, done).await.expect("still ours"), Settlement::Accepted);
    for job in &jobs[..300] {
        assert_eq!(world.settled(*job).await.status(), Status::Ended(Terminal::Done));
    }
    assert_eq!(data(&claim(&after, 1).await), ["300"], "the lane goes on behind it");
}
