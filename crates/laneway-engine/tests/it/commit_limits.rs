//! Whatever a handler gives back and whatever a lane holds, the commit that settles it is within what a store takes: no
//! seat is lost by a commit, which would be the same again after that.

use std::time::Duration;

use bytes::Bytes;
use laneway_core::event::Dedup;
use laneway_core::store::{Query, RedriveTo, Rows};
use laneway_core::{
    Delay, DelayMode, Draft, EventId, Headers, JobId, Key, Kind, Mode, Partition, Seat, StartAfter, Status,
    Terminal, Timestamp,
};
use laneway_engine::handler::{Done, Emission, LaneAnswer, LaneRun, OnFailure, Policy, Retry, StateChange};
use laneway_engine::job::{JobStatus, Submit};
use laneway_engine::lane::{Answer as Told, Filed};
use laneway_engine::log::Appending;
use laneway_engine::{Batch, ProcessorSettings};

use crate::seam;
use crate::world::{Answer, SOON, World, draft};

const MIB: usize = 1 << 20;

/// One partition, so that one seat has it all.
async fn world(mode: Mode) -> World {
    World::with_partitions(mode, 1).await
}

async fn seat(world: &World) -> Seat {
    let (stream, processor) = world.engine.catalogue().processor("charge").await.expect("it exists");
    Seat { shard: stream.shard(Partition(0)), processor }
}

/// The term of the seat: another one after the seat was lost.
async fn term(world: &World) -> u64 {
    let seat = seat(world).await;
    let Rows::Seats(_, seats) = world.store_query(Query::Seats(seat.shard)).await else { panic!("seats") };
    let found = seats.iter().find(|view| view.processor == seat.processor).expect("it is there");
    found.progress.fence.term.0
}

async fn dead(world: &World) -> usize {
    let query = Query::Dead(seat(world).await, EventId(0), 10_000);
    let Rows::Dead(rows) = world.store_query(query).await else { panic!("dead letters") };
    rows.len()
}

fn settings(on_failure: OnFailure, batch: Batch) -> ProcessorSettings {
    let policy = Policy { max_attempts: 2, on_failure, ..Policy::default() };
    ProcessorSettings { policy, batch, ..ProcessorSettings::default() }
}

/// Sends events of one lane that begin with a word and are filled up to a size.
async fn send_sized(world: &World, key: &str, count: usize, word: &str, size: usize) {
    let data = format!("{word}{}", ".".repeat(size.saturating_sub(word.len())));
    for _ in 0..count {
        let drafts = vec![draft(key, &data)];
        let sent = world.engine.producer().append("orders", Appending { drafts, object: None }).await;
        sent.expect("the stream exists")[0].receipt.as_ref().expect("the store takes it");
    }
}

async fn submit_many(world: &World, keys: impl Iterator<Item = String>) -> Vec<JobId> {
    let jobs = keys.map(|key| Submit { draft: draft(&key, "ok"), processor: None, keep: None }).collect();
    let submitted = world.engine.jobs().submit("orders", jobs).await.expect("the stream exists");
    submitted.into_iter().map(|job| job.expect("the store takes it").id).collect()
}

async fn ended(world: &World, job: JobId) -> (Terminal, String) {
    let JobStatus::Ended { end, .. } = world.settled(job).await else { panic!("{job} has ended") };
    (end.end, String::from_utf8_lossy(&end.error).into_owned())
}

/// Events that begin with `broken` fail, unless they were redriven.
fn broken_once(lane: &LaneRun) -> Answer {
    let event = &lane.events[0];
    let redriven = event.headers.get("laneway-redriven-from").is_some();
    Answer::Now(if event.data.starts_with(b"broken") && !redriven {
        LaneAnswer::failed("broken", Retry::ByPolicy)
    } else {
        LaneAnswer::all_done(lane)
    })
}

#[tokio::test(start_paused = true)]
async fn lane_of_any_size_diverts_and_holds_up_no_other() {
    let world = world(Mode::Queue).await;
    // More than memory has of a lane at a time, and each of those parts more than a commit.
    send_sized(&world, "ann", 600, "broken", 100_000).await;
    send_sized(&world, "bob", 60, "broken", MIB).await;
    world.process_with(settings(OnFailure::DeadLetterLane, Batch::One), broken_once).await;
    let other = world.submit("eve", "ok").await;
    assert_eq!(world.settled(other).await.status(), Status::Ended(Terminal::Done));
    let before = term(&world).await;
    seam::wait(SOON).await;
    assert_eq!(dead(&world).await, 660);
    assert_eq!(term(&world).await, before, "the seat was never lost");
}

#[tokio::test(start_paused = true)]
async fn dead_letters_of_any_size_are_redriven_once_each() {
    let mut world = world(Mode::Queue).await;
    world.process_with(settings(OnFailure::DeadLetter, Batch::One), broken_once).await;
    send_sized(&world, "ann", 40, "broken", MIB).await;
    send_sized(&world, "ann", 500, "broken", 6).await;
    world.nexts(2 * 540).await;
    seam::wait(SOON).await;
    assert_eq!(dead(&world).await, 540);
    let before = term(&world).await;
    let ann = Key::new("ann").expect("a short key");
    let redrive = || world.engine.operator().redrive("charge", &ann, None, RedriveTo::Tail);
    // Asked for twice at once: the second one finds nothing left.
    let (first, second) = (redrive().await.expect("it exists"), redrive().await.expect("it exists"));
    assert_eq!(told(&world, first).await, Told::Applied);
    assert_eq!(told(&world, second).await, Told::Already);
    world.nexts(540).await;
    seam::wait(SOON).await;
    assert!(world.ran.try_recv().is_err(), "each of them once");
    assert_eq!((dead(&world).await, term(&world).await), (0, before));
}

async fn told(world: &World, filed: Filed) -> Told {
    let told = world.engine.operator().answer(filed, SOON).await.expect("the store answers");
    told.expect("its owner decides soon")
}

fn emits(count: usize, data: usize, headers: usize) -> Vec<Emission> {
    let headers = if headers > 0 { vec![("x", vec![b'h'; headers])] } else { Vec::new() };
    let mut draft = Draft::new(None, Kind::default(), vec![b'd'; data]);
    draft.headers = Headers::new(headers).expect("within their limit");
    vec![Emission { stream: "other".to_owned(), draft }; count]
}

/// An emit of each kind that no stream takes, and what names it.
fn impossible(what: &str) -> (Emission, &'static str) {
    let mut emission = Emission { stream: "other".to_owned(), draft: draft("ann", "") };
    let draft = &mut emission.draft;
    let names = match what {
        "dedup" => {
            draft.dedup = Some(Dedup { id: "d".into(), body: 0, window: Duration::from_secs(1) });
            "dedup_id is set, must be absent in an emit"
        }
        "expect_prev" => {
            draft.expect_prev = Some(None);
            "expect_prev is set, must be absent in an emit"
        }
        "held for long" => {
            let until = StartAfter::At(Timestamp(u64::MAX / 2));
            draft.delay = Some(Delay { until, mode: DelayMode::Hold });
            "from now with delay_mode hold"
        }
        _ => {
            (draft.key, emission.stream) = (None, "newest".to_owned());
            "key is absent, must be set in a stream of mode latest"
        }
    };
    (emission, names)
}

const IMPOSSIBLE: [&str; 4] = ["dedup", "expect_prev", "held for long", "without a key"];

/// Does as the first event of its key says.
fn emitting(lane: &LaneRun) -> Answer {
    let each = |emits: Vec<Emission>| Done { result: None, emits };
    let done = |done: Done| LaneAnswer { done: vec![done; lane.events.len()], ..LaneAnswer::default() };
    let state = StateChange::Set(Bytes::from_static(b"state"));
    let text = vec![b'r'; 300_000];
    let result = Done { result: Some(text.into()), emits: Vec::new() };
    let key = lane.events[0].key.as_ref().map_or(String::new(), ToString::to_string);
    Answer::Now(match key.as_str() {
        "large emits" => done(each(emits(30, MIB, 0))),
        key if IMPOSSIBLE.contains(&key) => done(each(vec![impossible(key).0])),
        "one emit" => done(each(emits(1, 1, 0))),
        "large headers" => done(each(emits(450, 0, 16_000))),
        "many emits" => done(each(emits(4_000, 0, 0))),
        "many emits with a state" => LaneAnswer { state, ..done(each(emits(2_000, 0, 0))) },
        "results" => done(result),
        "results with a state" => LaneAnswer { state, ..done(result) },
        "nowhere" => {
            let stream = "x".repeat(20_000);
            done(each(vec![Emission { stream, draft: draft("", "") }]))
        }
        "long error" => LaneAnswer::failed("e".repeat(100_000), Retry::ByPolicy),
        key if key.starts_with("lane-") => done(result),
        _ => LaneAnswer::all_done(lane),
    })
}

async fn emitting_world(settings: ProcessorSettings) -> World {
    let world = world(Mode::Queue).await;
    let other = laneway_core::StreamSettings { partitions: 2, ..laneway_core::StreamSettings::default() };
    world.engine.define_stream("other", other.clone()).await.expect("a new stream");
    let newest = laneway_core::StreamSettings { mode: Mode::Latest, ..other };
    world.engine.define_stream("newest", newest).await.expect("a new stream");
    world.process_with(settings, emitting).await;
    let pause = world.engine.operator().pause("charge", "anna").await.expect("it exists");
    assert!(world.engine.operator().wait(&pause, SOON).await.expect("the store answers"));
    world
}

/// Everything that was submitted meanwhile is there when the processor goes on.
async fn go_on(world: &World) {
    let resumed = world.engine.operator().resume("charge").await.expect("it exists");
    assert!(world.engine.operator().wait(&resumed, SOON).await.expect("the store answers"));
}

async fn emitted(world: &World) -> u64 {
    seam::wait(SOON).await;
    let other = world.engine.catalogue().stream("other").await.expect("it exists");
    let mut count = 0;
    for partition in 0..2 {
        let Rows::Seats(info, _) = world.store_query(Query::Seats(other.shard(Partition(partition)))).await
        else {
            panic!("seats")
        };
        count += info.head.0;
    }
    count
}

#[tokio::test(start_paused = true)]
async fn emits_beyond_what_one_step_commits_fail_their_event_with_the_limit() {
    let world = emitting_world(settings(OnFailure::DeadLetter, Batch::One)).await;
    let large = world.submit("large emits", "ok").await;
    let headers = world.submit("large headers", "ok").await;
    go_on(&world).await;
    let before = term(&world).await;
    let limit = "at most 6291456";
    for (job, bytes) in [(large, 30 * MIB), (headers, 450 * 16_000)] {
        let (end, error) = ended(&world, job).await;
        assert_eq!(end, Terminal::Failed);
        let names = error.contains("bytes of the emits of one event") && error.contains(limit);
        assert!(names && bytes > 6 * MIB, "{error}");
    }
    assert_eq!((emitted(&world).await, term(&world).await), (0, before));
}

#[tokio::test(start_paused = true)]
async fn emit_that_no_stream_takes_fails_its_event_and_holds_up_no_other_emit() {
    let world = emitting_world(settings(OnFailure::DeadLetter, Batch::One)).await;
    go_on(&world).await;
    for what in IMPOSSIBLE {
        let job = world.submit(what, "ok").await;
        let (end, error) = ended(&world, job).await;
        assert_eq!(end, Terminal::Failed);
        assert!(error.contains(impossible(what).1), "{what}: {error}");
    }
    let job = world.submit("one emit", "ok").await;
    assert_eq!(ended(&world, job).await.0, Terminal::Done);
    assert_eq!(emitted(&world).await, 1);
}

#[tokio::test(start_paused = true)]
async fn answer_of_a_lane_that_is_too_much_for_one_commit_goes_with_several() {
    let mut world = emitting_world(settings(OnFailure::Park, Batch::lane(100))).await;
    let many = submit_many(&world, (0..5).map(|_| "many emits".to_owned())).await;
    let results = submit_many(&world, (0..100).map(|_| "results".to_owned())).await;
    go_on(&world).await;
    let before = term(&world).await;
    for job in many.into_iter().chain(results) {
        assert_eq!(world.settled(job).await.status(), Status::Ended(Terminal::Done));
    }
    assert_eq!((emitted(&world).await, term(&world).await), (20_000, before));
    assert_eq!(world.nexts(105).await.len(), 105);
    assert!(world.ran.try_recv().is_err(), "nothing ran twice");
}

#[tokio::test(start_paused = true)]
async fn answer_with_a_state_is_committed_in_one_step_or_not_at_all() {
    let world = emitting_world(settings(OnFailure::DeadLetter, Batch::lane(100))).await;
    let results = submit_many(&world, (0..100).map(|_| "results with a state".to_owned())).await;
    let many = submit_many(&world, (0..3).map(|_| "many emits with a state".to_owned())).await;
    go_on(&world).await;
    let before = term(&world).await;
    for job in results {
        let JobStatus::Ended { end, .. } = world.settled(job).await else { panic!("it has ended") };
        assert_eq!(end.end, Terminal::Done);
    }
    // Three times 2,000 are too many together; the two after the first fit.
    let (end, error) = ended(&world, many[0]).await;
    assert_eq!(
        (end, error.contains("emits of an answer with a state is 6000")),
        (Terminal::Failed, true),
        "{error}"
    );
    assert_eq!(ended(&world, many[2]).await.0, Terminal::Done);
    assert_eq!((emitted(&world).await, term(&world).await), (4_000, before));
}

#[tokio::test(start_paused = true)]
async fn lanes_of_one_answer_go_with_several_commits() {
    let world = emitting_world(settings(OnFailure::Park, Batch::lanes(100))).await;
    let jobs = submit_many(&world, (0..100).map(|number| format!("lane-{number}"))).await;
    go_on(&world).await;
    let before = term(&world).await;
    for job in jobs {
        assert_eq!(world.settled(job).await.status(), Status::Ended(Terminal::Done));
    }
    assert_eq!(term(&world).await, before);
}

#[tokio::test(start_paused = true)]
async fn longest_errors_are_cut_wherever_they_come_from() {
    let world = emitting_world(settings(OnFailure::Drop, Batch::One)).await;
    let long = world.submit("long error", "ok").await;
    let nowhere = world.submit("nowhere", "ok").await;
    go_on(&world).await;
    let before = term(&world).await;
    for job in [long, nowhere] {
        let (end, error) = ended(&world, job).await;
        assert_eq!((end, error.len()), (Terminal::Failed, 16 << 10), "{}", &error[..100]);
        assert!(error.starts_with("dropped: "));
    }
    seam::wait(Duration::from_secs(5)).await;
    assert_eq!(term(&world).await, before);
}
