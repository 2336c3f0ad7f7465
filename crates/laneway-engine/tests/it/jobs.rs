//! Jobs from their submitter's side: many at once, safe repeats, running again, lists.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use laneway_core::limits::RESULT_BYTES_MAX;
use laneway_core::{Delay, DelayMode, JobId, Key, Mode, StartAfter, Status, StreamSettings, Terminal};
use laneway_engine::ProcessorSettings;
use laneway_engine::handler::{Done, LaneAnswer, LaneRun, OnFailure, Policy, Run};
use laneway_engine::job::{BatchId, By, JobError, JobStatus, ListJobs, Results, Retried, Submit};

use crate::faulty::Faulty;
use crate::seam;
use crate::world::{Answer, SOON, World, draft};

async fn world(on_failure: OnFailure) -> World {
    let world = World::new(Mode::Queue).await;
    let policy = Policy { max_attempts: 2, on_failure, ..Policy::default() };
    world.process(ProcessorSettings { policy, ..ProcessorSettings::default() }).await;
    world
}

fn job(key: &str, data: &str) -> Submit {
    Submit { draft: draft(key, data), processor: None, keep: None }
}

fn key_of(key: &str) -> By {
    By { caller: Some("ann@shop".to_owned()), idempotency_key: Some(key.to_owned().into()) }
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_job_looks_at_it_before_and_after_its_end_and_not_in_between() {
    let before = world(OnFailure::Park).await;
    // What was announced and nobody waited for is all that the store has to say to the next who waits.
    before.settled(before.submit("k1", "ok").await).await;
    before.engine.drain(SOON).await;
    let store = Faulty::new(before.store.clone());
    let world = World::through(store.clone(), before.store.clone(), before.env.clone());
    world.process(ProcessorSettings::default()).await;
    world.settled(world.submit("k1", "ok").await).await;
    let looked = store.looks.load(Ordering::Relaxed);
    world.settled(world.submit("k2", "ok").await).await;
    assert_eq!(store.looks.load(Ordering::Relaxed) - looked, 2);
}

#[tokio::test(start_paused = true)]
async fn batch_finds_all_its_jobs_and_nothing_else() {
    let world = world(OnFailure::Park).await;
    let other = world.submit("k1", "ok").await;
    let mut late = job("k1", "ok");
    late.draft.delay = Some(Delay { until: StartAfter::Delay(SOON), mode: DelayMode::Join });
    let mut jobs: Vec<Submit> = (0..20).map(|number| job(&format!("k{}", number % 5), "ok")).collect();
    jobs.push(late);
    let submitted = world.engine.jobs().submit_many("orders", jobs, &By::default()).await.expect("accepted");
    let ids: BTreeSet<JobId> = submitted.jobs.iter().flatten().map(|job| job.id).collect();
    let batch = submitted.batch.expect("some were accepted").to_string();
    let batch: BatchId = batch.parse().expect("its own text");
    let found = world.engine.jobs().query_batch(&batch, Results::With).await.expect("known");
    assert_eq!(found.iter().map(|(id, _)| *id).collect::<BTreeSet<_>>(), ids);
    assert!(!ids.contains(&other) && ids.len() == 21);
    for (id, _) in &found {
        world.engine.jobs().wait(*id, 2 * SOON).await.expect("known");
    }
    let found = world.engine.jobs().query_batch(&batch, Results::With).await.expect("known");
    for (id, detail) in found {
        let detail = detail.expect("known");
        assert_eq!(detail.job.status.status(), Status::Ended(Terminal::Done), "{id}");
        assert_eq!(detail.job.status.result().map(|result| &result[..]), Some(&b"ok"[..]));
        assert_eq!(detail.processor.as_deref(), Some("charge"));
    }
}

#[tokio::test(start_paused = true)]
async fn batch_is_cancelled_as_a_whole_and_ended_jobs_say_so() {
    let mut world = world(OnFailure::Park).await;
    let jobs = vec![job("ann", "wait"), job("ann", "behind"), job("bob", "ok")];
    let submitted = world.engine.jobs().submit_many("orders", jobs, &By::default()).await.expect("accepted");
    let ids: Vec<JobId> = submitted.jobs.iter().flatten().map(|job| job.id).collect();
    world.nexts(2).await;
    world.settled(ids[2]).await;
    let cancelled = world.engine.jobs().cancel_many(&ids).await;
    assert!(matches!(&cancelled[..], [Ok(()), Ok(()), Err(JobError::AlreadyFinished(_))]), "{cancelled:?}");
    for id in &ids[..2] {
        assert_eq!(world.settled(*id).await.status(), Status::Ended(Terminal::Cancelled));
    }
}

#[tokio::test(start_paused = true)]
async fn same_key_and_body_is_the_same_job_also_while_it_runs_and_another_body_is_refused() {
    let mut world = world(OnFailure::Park).await;
    let jobs = world.engine.jobs().clone();
    let first = jobs.submit_one("orders", job("ann", "slow"), &key_of("a1")).await.expect("accepted").id;
    assert_eq!(world.nexts(1).await, ["slow"]);
    let again = jobs.submit_one("orders", job("ann", "slow"), &key_of("a1")).await.expect("accepted").id;
    assert_eq!(again, first);
    let other = jobs.submit_one("orders", job("ann", "ok"), &key_of("a1")).await;
    assert!(matches!(other, Err(JobError::OtherBody { first: Some(_) })), "{other:?}");
    let stranger = By { caller: Some("bob".to_owned()), ..key_of("a1") };
    let apart = jobs.submit_one("orders", job("ann", "ok"), &stranger).await.expect("accepted").id;
    assert_ne!(apart, first, "a key counts for its caller alone");
    // A caller cannot spell the key of another by moving the border between name and key.
    let near = By { caller: Some("ann@sho".to_owned()), idempotency_key: Some("pa1".into()) };
    let near = jobs.submit_one("orders", job("ann", "slow"), &near).await.expect("accepted").id;
    assert_ne!(near, first);
    let ended = jobs.wait(first, 2 * SOON).await.expect("known").status;
    assert_eq!(ended.status(), Status::Ended(Terminal::Done));
    assert_eq!(
        jobs.submit_one("orders", job("ann", "slow"), &key_of("a1")).await.expect("accepted").id,
        first
    );
    seam::wait(Duration::from_secs(25 * 3_600)).await;
    let next_day = jobs.submit_one("orders", job("ann", "ok"), &key_of("a1")).await.expect("accepted").id;
    assert_ne!(next_day, first, "a key is remembered for a day");
}

#[tokio::test(start_paused = true)]
async fn jobs_of_one_repeated_array_are_the_same_jobs_one_by_one() {
    let world = world(OnFailure::Park).await;
    let submit = |jobs| {
        let all = world.engine.jobs().clone();
        async move { all.submit_many("orders", jobs, &key_of("night")).await.expect("accepted") }
    };
    // Two equal ones in one lane are two jobs.
    let first = submit(vec![job("ann", "ok"), job("ann", "ok")]).await;
    let again = submit(vec![job("ann", "ok"), job("ann", "ok")]).await;
    let ids = |submitted: &laneway_engine::job::Submissions| {
        submitted.jobs.iter().flatten().map(|job| job.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(&first), ids(&again));
    assert_eq!(ids(&first).into_iter().collect::<BTreeSet<_>>().len(), 2);
    assert_eq!(first.batch, again.batch, "the same jobs have the same name");
}

#[tokio::test(start_paused = true)]
async fn handler_sees_who_submitted_and_nobody_else_can_say_so() {
    let world = World::new(Mode::Queue).await;
    let handler = |run: Run| async move {
        let event = &run.lanes[0].events[0];
        let caller = event.headers.get("laneway-caller").map(bytes_of);
        vec![LaneAnswer::done(caller)]
    };
    let settings = ProcessorSettings::default();
    world.engine.process("charge", "orders", settings, Arc::new(handler)).await.expect("a processor");
    let id =
        world.engine.jobs().submit_one("orders", job("ann", "x"), &key_of("a1")).await.expect("accepted").id;
    let JobStatus::Ended { result, .. } = world.settled(id).await else { panic!("it has ended") };
    assert_eq!(result.as_deref(), Some(&b"ann@shop"[..]));
    assert_eq!(world.engine.jobs().detail(id).await.expect("known").caller.as_deref(), Some("ann@shop"));
    let mut forged = job("ann", "x");
    forged.draft.headers = laneway_core::Headers::new([("laneway-caller", "root")]).expect("short");
    let drafts = vec![forged.draft.clone()];
    let refused = world.engine.jobs().submit_one("orders", forged, &By::default()).await.expect_err("forged");
    let said = refused.to_string();
    assert!(
        said.starts_with("header is laneway-caller, must be a name that does not begin with laneway-"),
        "{said}"
    );
    let appending = laneway_engine::log::Appending { drafts, object: None };
    world.engine.producer().append("orders", appending).await.expect_err("forged too");
}

fn bytes_of(value: &[u8]) -> laneway_core::Bytes {
    laneway_core::Bytes::copy_from_slice(value)
}

#[tokio::test(start_paused = true)]
async fn too_long_names_are_refused_by_field_and_limit() {
    let world = world(OnFailure::Park).await;
    let check = |by: By, message: &'static str| {
        let jobs = world.engine.jobs().clone();
        async move {
            let refused = jobs.submit_one("orders", job("ann", "ok"), &by).await.expect_err("too long");
            assert_eq!(refused.to_string(), message);
        }
    };
    check(key_of(&"k".repeat(129)), "idempotency key bytes is 129, must be at most 128").await;
    check(key_of(""), "idempotency key is \"\", must be 1 to 128 bytes").await;
    let caller = By { caller: Some("c".repeat(101)), ..By::default() };
    check(caller, "caller bytes is 101, must be at most 100").await;
    let longest = By { caller: Some("c".repeat(100)), ..key_of(&"k".repeat(128)) };
    world.engine.jobs().submit_many("orders", vec![job("ann", "ok")], &longest).await.expect("it fits");
}

#[tokio::test(start_paused = true)]
async fn ended_job_runs_again_as_a_new_one_and_parked_one_itself() {
    let mut world = world(OnFailure::Park).await;
    let jobs = world.engine.jobs().clone();
    let done = jobs.submit_one("orders", job("ann", "ok"), &key_of("a1")).await.expect("accepted").id;
    world.settled(done).await;
    let Retried::Again(again) = jobs.retry(done, &By::default()).await.expect("ended") else {
        panic!("a new job")
    };
    world.settled(again.id).await;
    let detail = jobs.detail(again.id).await.expect("known");
    assert_eq!((detail.retry_of, detail.caller.as_deref()), (Some(done), Some("ann@shop")));
    assert_eq!(world.nexts(2).await, ["ok", "ok"]);
    let repeated = jobs.retry(done, &key_of("r1")).await.expect("ended");
    assert_eq!(jobs.retry(done, &key_of("r1")).await.expect("ended"), same(repeated), "one key, one retry");
    let parked = world.submit("bob", "fail").await;
    assert_eq!(world.settled(parked).await.status(), Status::Parked);
    world.nexts(3).await;
    let Retried::Now(filed) = jobs.retry(parked, &By::default()).await.expect("parked") else {
        panic!("the job itself")
    };
    assert!(world.engine.operator().wait(&[filed], SOON).await.expect("asked"), "its owner applies it");
    assert_eq!(world.nexts(1).await, ["fail"], "at once");
    let running = world.submit("cid", "slow").await;
    world.next().await;
    let refused = jobs.retry(running, &By::default()).await;
    assert!(matches!(refused, Err(JobError::NotRetryable { .. })), "{refused:?}");
}

/// A repeat is told as one.
fn same(first: Retried) -> Retried {
    let Retried::Again(mut submitted) = first else { return first };
    submitted.receipt = laneway_core::store::Receipt::Duplicate { first: Some(Box::new(submitted.receipt)) };
    Retried::Again(submitted)
}

#[tokio::test(start_paused = true)]
async fn job_names_its_processor_when_there_are_several() {
    let world = world(OnFailure::Park).await;
    let handler = |run: Run| async move { run.lanes.iter().map(LaneAnswer::all_done).collect() };
    let settings = ProcessorSettings::default();
    world.engine.process("audit", "orders", settings, Arc::new(handler)).await.expect("a processor");
    let refused = world.engine.jobs().submit("orders", vec![job("ann", "ok")]).await.expect_err("which one");
    let JobError::ProcessorRequired { processors, .. } = &refused else { panic!("{refused:?}") };
    assert_eq!(processors, &["charge", "audit"]);
    assert!(refused.to_string().contains("charge, audit"), "{refused}");
    let named = Submit { processor: Some("audit".to_owned()), ..job("ann", "ok") };
    let id = world.engine.jobs().submit_one("orders", named, &By::default()).await.expect("accepted").id;
    assert_eq!(world.engine.jobs().detail(id).await.expect("known").processor.as_deref(), Some("audit"));
}

#[tokio::test(start_paused = true)]
async fn responder_of_a_stream_answers_jobs_that_name_no_processor() {
    let world = World::with_settings(StreamSettings {
        responder: Some("audit".to_owned()),
        ..StreamSettings::default()
    })
    .await;
    world.process(ProcessorSettings::default()).await;
    let refused = world.engine.jobs().submit("orders", vec![job("ann", "ok")]).await.expect_err("not there");
    assert!(
        matches!(&refused, JobError::NoResponder { responder, .. } if responder == "audit"),
        "{refused:?}"
    );
    let handler = |run: Run| async move { run.lanes.iter().map(LaneAnswer::all_done).collect() };
    let settings = ProcessorSettings::default();
    world.engine.process("audit", "orders", settings, Arc::new(handler)).await.expect("a processor");
    let (by, jobs) = (By::default(), world.engine.jobs().clone());
    for (named, answers) in [(None, "audit"), (Some("charge"), "charge")] {
        let wanted = Submit { processor: named.map(ToOwned::to_owned), ..job("ann", "ok") };
        let id = jobs.submit_one("orders", wanted, &by).await.expect("accepted").id;
        assert_eq!(jobs.detail(id).await.expect("known").processor.as_deref(), Some(answers));
        world.settled(id).await;
    }
}

/// However a job ends, it tells how often it was tried.
#[tokio::test(start_paused = true)]
async fn every_end_tells_how_often_its_job_was_tried() {
    let policy = |on_failure, backoff: u64| Policy {
        max_attempts: 3,
        backoff: Duration::from_secs(backoff),
        backoff_max: Duration::from_secs(3_600),
        on_failure,
        ..Policy::default()
    };
    let ended = async |world: &World, id, end: Terminal, attempts: u32| {
        // One that is parked is settled too, until its owner has heard what was asked.
        seam::wait(Duration::from_secs(10)).await;
        let JobStatus::Ended { end: told, .. } = world.settled(id).await else { panic!("{end} is an end") };
        assert_eq!((told.end, told.attempts), (end, attempts), "{end}");
    };
    for on_failure in [OnFailure::Drop, OnFailure::DeadLetter] {
        let world = World::new(Mode::Queue).await;
        world.process(ProcessorSettings { policy: policy(on_failure, 1), ..Default::default() }).await;
        let (done, failed) = (world.submit("ann", "fail twice").await, world.submit("bob", "fail").await);
        ended(&world, done, Terminal::Done, 3).await;
        ended(&world, failed, Terminal::Failed, 3).await;
    }
    // Parked after three, then skipped or cancelled; and between two tries.
    for (backoff, waits, tries) in [(1, 60, 3), (3_000, 60, 1)] {
        let world = World::new(Mode::Queue).await;
        let settings = ProcessorSettings { policy: policy(OnFailure::Park, backoff), ..Default::default() };
        world.process(settings).await;
        let (skipped, cancelled) = (world.submit("ann", "fail").await, world.submit("bob", "fail").await);
        let behind = world.submit("bob", "fail").await;
        seam::wait(Duration::from_secs(waits)).await;
        let ann = Key::new("ann").expect("short");
        let lane = world.engine.looker().lane("orders", &ann).await.expect("known");
        let head = lane.processors[0].head.expect("it waits");
        world.engine.operator().skip("charge", &ann, head).await.expect("asked");
        ended(&world, skipped, Terminal::Skipped, tries).await;
        world.engine.jobs().cancel(behind, world.env.token()).await.expect("asked");
        ended(&world, behind, Terminal::Cancelled, 0).await;
        world.engine.jobs().cancel(cancelled, world.env.token()).await.expect("asked");
        ended(&world, cancelled, Terminal::Cancelled, tries).await;
    }
    let world = World::new(Mode::Latest).await;
    world.process(ProcessorSettings { policy: policy(OnFailure::Park, 1), ..Default::default() }).await;
    let superseded = world.submit("ann", "fail").await;
    world.settled(superseded).await;
    let winner = world.submit("ann", "ok").await;
    ended(&world, winner, Terminal::Done, 1).await;
    ended(&world, superseded, Terminal::Superseded, 3).await;
    let world = World::new(Mode::Queue).await;
    world.process(ProcessorSettings { concurrency: 1, ..Default::default() }).await;
    let slow = world.submit("ann", "slow").await;
    let mut late = job("bob", "ok");
    late.draft.ttl = Some(Duration::from_secs(5));
    let late = world.engine.jobs().submit_one("orders", late, &By::default()).await.expect("taken").id;
    ended(&world, late, Terminal::Expired, 0).await;
    world.engine.jobs().cancel(slow, world.env.token()).await.expect("asked");
    ended(&world, slow, Terminal::Cancelled, 1).await;
}

#[tokio::test(start_paused = true)]
async fn gone_and_unknown_jobs_are_told_apart_also_after_their_stream() {
    let world = world(OnFailure::Park).await;
    let jobs = world.engine.jobs().clone();
    let done = world.submit("ann", "ok").await;
    world.settled(done).await;
    jobs.forget(done).await.expect("ended");
    assert!(matches!(jobs.get(done).await, Err(JobError::Gone(_))));
    jobs.forget(done).await.expect("gone already is fine");
    let shard = done.shard();
    let never = JobId::new(
        laneway_core::Timestamp(1),
        shard,
        laneway_core::JobNumber::Event(laneway_core::EventId(99)),
    );
    assert!(matches!(jobs.get(never).await, Err(JobError::Unknown(_))));
    world.engine.remove_stream("orders", SOON).await.expect("removed");
    assert!(matches!(jobs.get(never).await, Err(JobError::Gone(_))), "its stream was there");
    let elsewhere = laneway_core::Shard { stream: laneway_core::StreamId(77), ..shard };
    let nowhere = JobId::new(laneway_core::Timestamp(1), elsewhere, done.number());
    assert!(matches!(jobs.get(nowhere).await, Err(JobError::Unknown(_))));
}

/// Ids of all pages of a list, and how many pages there were.
async fn all(world: &World, wanted: ListJobs) -> (Vec<JobId>, usize) {
    let (mut ids, mut pages, mut cursor) = (Vec::new(), 0, None);
    loop {
        let listed = world.engine.jobs().list(&ListJobs { cursor, ..wanted.clone() }).await.expect("listed");
        assert!(listed.items.len() <= wanted.limit);
        ids.extend(listed.items.iter().map(|detail| detail.job.id));
        pages += 1;
        cursor = listed.next;
        if cursor.is_none() {
            return (ids, pages);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn lists_find_every_job_once_by_status_key_type_time_and_batch() {
    let world = world(OnFailure::Park).await;
    let parked = world.submit("ann", "fail").await;
    let behind = world.submit("ann", "behind").await;
    let slow = world.submit("bob", "slow").await;
    let after_slow = world.submit("bob", "after").await;
    let mut late = job("cid", "late");
    late.draft.delay = Some(Delay { until: StartAfter::Delay(10 * SOON), mode: DelayMode::Join });
    let late = world.engine.jobs().submit_one("orders", late, &By::default()).await.expect("accepted").id;
    let mut typed = job("dan", "ok");
    typed.draft.kind = laneway_core::Kind::new("order.paid").expect("short");
    let typed = world.engine.jobs().submit_one("orders", typed, &By::default()).await.expect("accepted").id;
    let keyless = world.submit("", "ok").await;
    world.settled(parked).await;
    world.settled(typed).await;
    world.settled(keyless).await;
    // Long enough for the slow run to show.
    seam::wait(Duration::from_secs(3)).await;
    let check = |wanted: ListJobs, mut expected: Vec<JobId>| {
        let world = &world;
        async move {
            for limit in [1, 2, 100] {
                let (mut found, _) = all(world, ListJobs { limit, ..wanted.clone() }).await;
                found.sort_unstable();
                expected.sort_unstable();
                assert_eq!(found, expected, "{wanted:?} by {limit}");
            }
        }
    };
    let any = ListJobs::default;
    let with = |status| ListJobs { status: Some(status), ..any() };
    check(any(), vec![parked, behind, slow, after_slow, late, typed, keyless]).await;
    check(ListJobs { stream: Some("orders".to_owned()), ..any() }, all(&world, any()).await.0).await;
    check(with(Status::Scheduled), vec![late]).await;
    check(with(Status::Parked), vec![parked]).await;
    check(with(Status::Running), vec![slow]).await;
    check(with(Status::Waiting), vec![behind, after_slow]).await;
    check(with(Status::Ended(Terminal::Done)), vec![typed, keyless]).await;
    check(with(Status::Ended(Terminal::Failed)), vec![]).await;
    let ann = Key::new("ann").expect("short");
    check(ListJobs { key: Some(ann), ..any() }, vec![parked, behind]).await;
    check(ListJobs { kind: Some("order.*".to_owned()), ..any() }, vec![typed]).await;
    let batch = BatchId::of([slow, late, typed]);
    check(ListJobs { batch: batch.clone(), ..any() }, vec![slow, late, typed]).await;
    check(ListJobs { batch, status: Some(Status::Scheduled), ..any() }, vec![late]).await;
    let now = world.env.clock().calendar();
    check(ListJobs { since: Some(now), ..any() }, vec![]).await;
    let cancelled = world.engine.jobs().cancel(late, world.env.token()).await;
    cancelled.expect("not due yet");
    let listed = world.engine.jobs().list(&with(Status::Ended(Terminal::Cancelled))).await.expect("listed");
    assert_eq!(listed.items.len(), 1, "also one that never joined its lane");
    assert_eq!(listed.items[0].job.id, late, "by the id that its submitter has");
    assert!(!listed.partial);
    assert!(world.engine.jobs().list(&with(Status::Waiting)).await.expect("listed").partial);
}

#[tokio::test(start_paused = true)]
async fn retrying_jobs_are_listed_and_retried_now() {
    let mut world = world(OnFailure::Park).await;
    let failing = world.submit("ann", "fail").await;
    world.next().await;
    seam::wait(Duration::from_millis(10)).await;
    assert_eq!(world.status(failing).await, Status::Retrying);
    let wanted = ListJobs { status: Some(Status::Retrying), ..ListJobs::default() };
    assert_eq!(all(&world, wanted).await.0, [failing]);
    let detail = world.engine.jobs().detail(failing).await.expect("known");
    assert_eq!((detail.job.status.attempts(), detail.job.status.error().as_deref()), (1, Some("as told")));
    let retried = world.engine.jobs().retry(failing, &By::default()).await.expect("waits");
    assert!(matches!(retried, Retried::Now(_)), "{retried:?}");
    assert_eq!(world.next().await.attempt, 2, "now, and no attempt more than allowed");
}

#[tokio::test(start_paused = true)]
async fn cursor_of_one_list_is_refused_by_another() {
    let world = world(OnFailure::Park).await;
    for _ in 0..3 {
        let job = world.submit("ann", "ok").await;
        world.settled(job).await;
    }
    let wanted = ListJobs { limit: 1, ..ListJobs::default() };
    let cursor = world.engine.jobs().list(&wanted).await.expect("listed").next;
    let other = ListJobs { stream: Some("orders".to_owned()), cursor: cursor.clone(), ..wanted.clone() };
    let refused = world.engine.jobs().list(&other).await.expect_err("another filter").to_string();
    assert!(refused.starts_with("cursor is "), "{refused}");
    let more = ListJobs { limit: 2, cursor, ..wanted.clone() };
    assert_eq!(world.engine.jobs().list(&more).await.expect("the limit may change").items.len(), 2);
    let none = ListJobs { limit: 0, ..wanted };
    let refused = world.engine.jobs().list(&none).await.expect_err("no limit").to_string();
    assert_eq!(refused, "limit is 0, must be 1 to 1000");
    let nowhere = ListJobs { stream: Some("nowhere".to_owned()), ..ListJobs::default() };
    assert!(world.engine.jobs().list(&nowhere).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn job_whose_event_was_trimmed_is_still_listed_and_cannot_be_run_again() {
    let world = World::new(Mode::Queue).await;
    let settings =
        StreamSettings { partitions: 2, keep: Duration::from_secs(60), ..StreamSettings::default() };
    world.engine.define_stream("orders", settings).await.expect("changed");
    world.process(ProcessorSettings::default()).await;
    let old = world.submit("ann", "ok").await;
    world.settled(old).await;
    world.engine.start_upkeep();
    seam::wait(Duration::from_secs(600)).await;
    let listed = world.engine.jobs().list(&ListJobs::default()).await.expect("listed");
    let [detail] = &listed.items[..] else { panic!("one job, {listed:?}") };
    assert_eq!((detail.job.id.shard(), detail.job.id.number()), (old.shard(), old.number()));
    assert_eq!(detail.kind, None, "its event is gone");
    let refused = world.engine.jobs().retry(old, &By::default()).await;
    assert!(matches!(refused, Err(JobError::EventGone(_))), "{refused:?}");
    assert_eq!(world.engine.jobs().take(detail.job.id).await.expect("its end is there").status.attempts(), 1);
}

#[tokio::test(start_paused = true)]
async fn result_of_any_size_up_to_the_limit_comes_back_whole_and_a_larger_one_fails() {
    let world = World::new(Mode::Queue).await;
    let answer = |lane: &LaneRun| {
        let bytes: usize = String::from_utf8_lossy(&lane.events[0].data).parse().expect("a number");
        let done = Done { result: Some(vec![7; bytes].into()), emits: Vec::new() };
        Answer::Now(LaneAnswer { done: vec![done], ..LaneAnswer::default() })
    };
    world.process_with(ProcessorSettings::default(), answer).await;
    for bytes in [0, 1 << 20, (1 << 20) + 1, RESULT_BYTES_MAX] {
        let id = world.submit("ann", &bytes.to_string()).await;
        let JobStatus::Ended { result, .. } = world.settled(id).await else { panic!("it has ended") };
        assert_eq!(result.map(|result| result.to_vec()), Some(vec![7; bytes]), "{bytes} bytes");
    }
    let id = world.submit("bob", &(RESULT_BYTES_MAX + 1).to_string()).await;
    let status = world.settled(id).await;
    assert_eq!(status.status(), Status::Parked, "{status:?}");
}
