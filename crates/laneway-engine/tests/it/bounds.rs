//! What a stream bounds: how much waits, how long events and ends of jobs are kept.

use std::time::Duration;

use laneway_core::store::ObjectWrite;
use laneway_core::{FullReason, Mode, StoreError, StreamSettings};
use laneway_engine::ProcessorSettings;
use laneway_engine::job::{By, JobError, Submit};
use laneway_engine::log::Appending;

use crate::seam;
use crate::world::{SOON, World, draft};

async fn world(settings: StreamSettings) -> World {
    let world = World::new(Mode::Queue).await;
    world.engine.remove_stream("orders", Duration::ZERO).await.expect("empty");
    world.engine.define_stream("orders", settings).await.expect("a new stream");
    world
}

#[tokio::test(start_paused = true)]
async fn full_stream_refuses_events_and_jobs_by_its_limit_until_something_has_ended() {
    let settings = StreamSettings { partitions: 1, max_pending: Some(2), ..StreamSettings::default() };
    let mut world = world(settings).await;
    world.process(ProcessorSettings::default()).await;
    world.send(&[("ann", "slow"), ("ann", "behind")]).await;
    assert_eq!(world.nexts(1).await, ["slow"]);
    let appending = Appending { drafts: vec![draft("bob", "third")], object: None };
    let sent = world.engine.producer().append("orders", appending.clone()).await.expect("the stream exists");
    let Err(refused) = &sent[0].receipt else { panic!("it is full") };
    assert!(
        matches!(&**refused, StoreError::Full(FullReason::Pending { pending: 2, limit: 2 })),
        "{refused:?}"
    );
    assert_eq!(refused.to_string(), "full: max_pending: 2 events wait in this partition, its limit is 2");
    let job = Submit { draft: draft("bob", "third"), processor: None, keep: None };
    let job = world.engine.jobs().submit_one("orders", job, &By::default()).await.expect_err("it is full");
    assert!(matches!(&job, JobError::Shared(error) if matches!(**error, StoreError::Full(_))), "{job:?}");
    assert_eq!(world.nexts(1).await, ["behind"], "the slow one has ended");
    seam::wait(SOON).await;
    let sent = world.engine.producer().append("orders", appending).await.expect("the stream exists");
    assert!(sent[0].receipt.is_ok(), "there is room again: {sent:?}");
}

#[tokio::test(start_paused = true)]
async fn more_of_one_partition_than_a_call_may_carry_is_refused_before_anything_is_appended() {
    let world = world(StreamSettings { partitions: 2, ..StreamSettings::default() }).await;
    world.process(ProcessorSettings::default()).await;
    let job = |key: &str, data: &str| Submit { draft: draft(key, data), processor: None, keep: None };
    let others = ["bob", "eve", "joe", "sue", "tim"];
    let mut jobs: Vec<Submit> = others.iter().map(|key| job(key, "ok")).collect();
    jobs.extend(std::iter::repeat_with(|| job("ann", "ok")).take(1_001));
    let refused = world.engine.jobs().submit_many("orders", jobs, &By::default()).await;
    let told = refused.expect_err("too many").to_string();
    assert!(told.contains("events of one partition is") && told.ends_with("must be at most 1000"), "{told}");
    let data = "x".repeat(1 << 20);
    let mut jobs: Vec<Submit> = others.iter().map(|key| job(key, "ok")).collect();
    jobs.extend(std::iter::repeat_with(|| job("ann", &data)).take(17));
    let refused = world.engine.jobs().submit_many("orders", jobs, &By::default()).await;
    let told = refused.expect_err("too large").to_string();
    assert!(told.contains("data bytes of one partition is") && told.ends_with("at most 16777216"), "{told}");
    let info = world.engine.catalogue().stream("orders").await.expect("it exists");
    for partition in [0, 1].map(laneway_core::Partition) {
        let page = world.engine.looker().events(&info.name, partition, laneway_core::EventId(0), 10).await;
        assert_eq!(page.expect("readable").events, [], "nothing was appended");
    }
}

#[tokio::test(start_paused = true)]
async fn event_of_another_key_than_the_object_is_named() {
    let world = world(StreamSettings::default()).await;
    let object = ObjectWrite { expect: None, value: Some("{}".into()) };
    let refused = |drafts| {
        let (producer, object) = (world.engine.producer(), Some(object.clone()));
        async move {
            let sent = producer.append("orders", Appending { drafts, object }).await;
            sent.expect_err("it could never be appended").to_string()
        }
    };
    let other = refused(vec![draft("k1", ""), draft("k2", "1")]).await;
    assert_eq!(other, "event 1: key is k2, must be k1 as in event 0, because the call writes an object");
    let none = refused(vec![draft("k1", ""), draft("", "1")]).await;
    assert_eq!(none, "event 1: key is absent, must be k1 as in event 0, because the call writes an object");
    let first = refused(vec![draft("", ""), draft("k2", "1")]).await;
    assert_eq!(first, "event 0: key is absent, must be given, because the call writes an object");
}

#[tokio::test(start_paused = true)]
async fn end_of_a_job_is_kept_as_long_as_its_submitter_says_and_then_gone() {
    let world = world(StreamSettings { partitions: 1, ..StreamSettings::default() }).await;
    world.process(ProcessorSettings::default()).await;
    let submit = |keep| Submit { draft: draft("ann", "ok"), processor: None, keep };
    let jobs = world.engine.jobs().clone();
    let brief = jobs.submit_one("orders", submit(Some(SOON)), &By::default()).await.expect("accepted").id;
    let plain = jobs.submit_one("orders", submit(None), &By::default()).await.expect("accepted").id;
    world.settled(brief).await;
    world.settled(plain).await;
    seam::wait(2 * SOON).await;
    assert!(matches!(jobs.get(brief).await, Err(JobError::Gone(_))), "kept for a minute");
    jobs.get(plain).await.expect("kept for a day");
    seam::wait(Duration::from_secs(25 * 3_600)).await;
    assert!(matches!(jobs.get(plain).await, Err(JobError::Gone(_))));
}

#[tokio::test(start_paused = true)]
async fn appends_to_a_store_of_one_process_leave_no_names_of_producers_behind() {
    use laneway_core::store::{Query, Rows};
    let world = world(StreamSettings { partitions: 1, ..StreamSettings::default() }).await;
    world.send(&[("ann", "one"), ("bob", "two")]).await;
    world.again().send(&[("ann", "three")]).await;
    let shard =
        world.engine.catalogue().stream("orders").await.expect("there").shard(laneway_core::Partition(0));
    let rows = world.engine.stores().store.query(Query::Sources(shard, None, 100)).await.expect("listed");
    assert_eq!(rows, Rows::Sources(Vec::new()));
}
