//! Cases about `define`: streams, processors and sealed shards.

use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{Define, Import, JobState, Query, ReadFrom, Receipt};
use laneway_core::{
    ConflictReason, Draft, EventId, JobId, Mode, Partition, ProcessorId, Seat, Shard, StartAt, StoreError,
    StreamId, StreamSettings, limits,
};

use super::expect::{expect_conflict, expect_error, expect_refused};
use crate::bench::{Bench, Place, delayed, draft, job_draft, keyless, passed};

fn stream(name: &str, expect: Option<u64>, settings: StreamSettings) -> Define {
    Define::Stream { name: name.to_owned(), expect, settings }
}

fn processor(stream: StreamId, name: &str, start: StartAt) -> Define {
    Define::Processor { stream, name: name.to_owned(), start, settings: Bytes::new() }
}

/// Contract 2, define: a stream exists with all of its shards and is listed with what it was asked to be.
pub async fn a_created_stream_is_listed_with_its_shards(bench: &Bench) {
    let settings =
        StreamSettings { partitions: 3, keep: Duration::from_secs(5), ..StreamSettings::default() };
    let info = bench.define(stream("orders.new_v-1", None, settings.clone())).await.stream.expect("created");
    assert_eq!((info.name.as_str(), &info.settings), ("orders.new_v-1", &settings));
    assert!(info.processors.is_empty());
    assert_eq!(bench.streams().await, vec![info.clone()]);
    for partition in 0..3 {
        let shard = bench.shard_info(info.shard(Partition(partition))).await;
        assert_eq!((shard.head, shard.trimmed), (EventId(0), EventId(0)));
        assert_eq!((shard.layout, shard.sealed, shard.adoptions), (info.layout, false, 0));
        assert_eq!((shard.scheduled, shard.incarnation), (0, bench.incarnation()));
    }
    let missing = bench.store().query(Query::Seats(info.shard(Partition(3)))).await;
    expect_error!(missing, StoreError::NotFound { .. });
}

/// Contract 2, define: creation is conditional, so a repeat is told by its conflict.
pub async fn creating_a_stream_twice_conflicts(bench: &Bench) {
    let info = bench.define(stream("orders", None, Bench::settings())).await.stream.expect("created");
    let again = bench.store().define(stream("orders", None, Bench::settings())).await;
    expect_conflict!(again, ConflictReason::Version { actual: Some(version) } if version == info.version);
    assert_eq!(bench.streams().await, vec![info]);
}

/// Contract 2, define: a change names the version it is made against.
pub async fn changing_a_stream_needs_its_version(bench: &Bench) {
    let info = bench.define(stream("orders", None, Bench::settings())).await.stream.expect("created");
    let settings = StreamSettings { keep: Duration::from_secs(9), max_pending: Some(4), ..Bench::settings() };
    let wrong = bench.store().define(stream("orders", Some(info.version + 1), settings.clone())).await;
    expect_conflict!(wrong, ConflictReason::Version { actual: Some(version) } if version == info.version);
    let changed =
        bench.define(stream("orders", Some(info.version), settings.clone())).await.stream.expect("there");
    assert_eq!((changed.id, &changed.settings), (info.id, &settings));
    assert_eq!(changed.version, info.version + 1);
    let repeat = bench.store().define(stream("orders", Some(info.version), settings)).await;
    expect_conflict!(repeat, ConflictReason::Version { actual: Some(version) } if version == changed.version);
}

/// Contract 2, define: a stream that does not exist has no version to change.
pub async fn changing_a_missing_stream_conflicts(bench: &Bench) {
    let answer = bench.store().define(stream("nothing", Some(1), Bench::settings())).await;
    expect_conflict!(answer, ConflictReason::Version { actual: None });
    assert!(bench.streams().await.is_empty());
}

/// Contract 1.3: the partition count and the mode never change by a definition.
pub async fn partitions_and_mode_never_change(bench: &Bench) {
    let info = bench.define(stream("orders", None, Bench::settings())).await.stream.expect("created");
    let partitions = StreamSettings { partitions: 2, ..Bench::settings() };
    expect_refused!(bench.store().define(stream("orders", Some(info.version), partitions)).await);
    let mode = StreamSettings { mode: Mode::Latest, ..Bench::settings() };
    expect_refused!(bench.store().define(stream("orders", Some(info.version), mode)).await);
    assert_eq!(bench.streams().await, vec![info]);
}

/// Design section 2: bad names get an error that names field, value and limit; names at the limit are fine.
pub async fn stream_and_processor_names_are_checked(bench: &Bench) {
    let long = "n".repeat(limits::NAME_BYTES_MAX + 1);
    for name in ["", "with space", "slash/ed", "ümlaut", "line\nbreak", long.as_str()] {
        expect_refused!(bench.store().define(stream(name, None, Bench::settings())).await);
    }
    assert!(bench.streams().await.is_empty());
    let longest = &long[1..];
    let info = bench.define(stream(longest, None, Bench::settings())).await.stream.expect("created");
    for name in ["", "with space", "slash/ed", long.as_str()] {
        expect_refused!(bench.store().define(processor(info.id, name, StartAt::End)).await);
    }
    bench.define(processor(info.id, longest, StartAt::End)).await;
}

/// Invariant C1: settings that no store can be are refused; the bounds themselves are fine.
pub async fn stream_settings_are_checked(bench: &Bench) {
    for partitions in [0, limits::PARTITIONS_MAX + 1] {
        let settings = StreamSettings { partitions, ..StreamSettings::default() };
        expect_refused!(bench.store().define(stream("orders", None, settings)).await);
    }
    for (partitions, max) in [(1, 0), (16, 15)] {
        let too_little = StreamSettings { partitions, max_pending: Some(max), ..StreamSettings::default() };
        expect_refused!(bench.store().define(stream("orders", None, too_little)).await);
    }
    let most = StreamSettings { partitions: limits::PARTITIONS_MAX, ..StreamSettings::default() };
    let info = bench.define(stream("orders", None, most)).await.stream.expect("created");
    bench.shard_info(info.shard(Partition(limits::PARTITIONS_MAX - 1))).await;
}

/// Contract 2, ids: a stream's number is never given again, also not after removal.
pub async fn stream_numbers_are_never_reused(bench: &Bench) {
    let first = bench.stream(Bench::settings()).await;
    bench.define(Define::RemoveStream { stream: first.id, expect: first.version }).await;
    let name = first.name.clone();
    let second = bench.define(stream(&name, None, Bench::settings())).await.stream.expect("created");
    assert!(second.id > first.id, "{} after {}", second.id, first.id);
}

/// Contract 1.11: a store may create far more streams than it has at a time, and their jobs are found by their ids.
pub async fn jobs_of_the_ten_thousandth_stream_are_found_by_their_id(bench: &Bench) {
    for last in [8_190, 8_191, 9_999, limits::STREAMS_MAX - 1] {
        // As if so many had been created and removed.
        bench.define(Define::Import(Import::Numbers(StreamId(last), ProcessorId(0)))).await;
        let place = bench.place().await;
        assert_eq!(place.stream.id, StreamId(last + 1));
        let responder = place.seat.processor;
        let delayed = Draft {
            delay: delayed("a", "x", Duration::from_secs(60)).delay,
            ..job_draft("a", "x", responder)
        };
        let receipts = bench.send(&place, vec![job_draft("a", "x", responder), delayed]).await;
        for receipt in receipts {
            let (Receipt::New { job: Some(job), .. } | Receipt::Scheduled { job: Some(job), .. }) = receipt
            else {
                panic!("{receipt:?}");
            };
            let job: JobId = job.to_string().parse().expect("it was written so");
            assert_eq!(job.shard(), place.shard);
            let found = bench.job(place.shard, job.number()).await;
            assert!(matches!(found, JobState::Pending { .. } | JobState::Scheduled { .. }), "{found:?}");
        }
        let marked = bench.events(place.shard).await.remove(0).job.expect("a job");
        assert_eq!(marked.id.shard(), place.shard);
        assert_eq!(
            marked.id,
            JobId::new(marked.id.created(), place.shard, marked.id.number()),
            "as others make it"
        );
        bench
            .define(Define::RemoveStream {
                stream: place.stream.id,
                expect: bench.stream_info(place.stream.id).await.expect("there").version,
            })
            .await;
    }
    let one_more = bench.store().define(stream("one-more", None, Bench::settings())).await;
    expect_refused!(one_more);
}

/// Contract 2, define: a removed stream is gone with its events and seats.
pub async fn a_removed_stream_is_gone(bench: &Bench) {
    let place = bench.place().await;
    bench.fill(&place, "a", 2).await;
    let wrong = Define::RemoveStream { stream: place.stream.id, expect: place.stream.version + 7 };
    expect_conflict!(
        bench.store().define(wrong).await,
        ConflictReason::Version { actual: Some(version) } if version == place.stream.version
    );
    let remove = Define::RemoveStream { stream: place.stream.id, expect: place.stream.version };
    assert_eq!(bench.define(remove).await.stream, None);
    assert!(bench.streams().await.is_empty());
    expect_error!(bench.try_send(&place, vec![draft("a", "late")]).await, StoreError::NotFound { .. });
    let read = bench.try_read(place.shard, ReadFrom::After(EventId(0))).await;
    expect_error!(read, StoreError::NotFound { .. });
    expect_error!(bench.store().seize(bench.seize_of(place.seat, None)).await, StoreError::NotFound { .. });
}

/// Contract 3.7: a processor is registered in the store and listed with its stream, whose version grows.
pub async fn a_processor_is_listed_with_its_stream(bench: &Bench) {
    let info = bench.stream(StreamSettings { partitions: 2, ..StreamSettings::default() }).await;
    let settings = Bytes::from_static(b"policy");
    let define = Define::Processor {
        stream: info.id,
        name: "mailer".into(),
        start: StartAt::End,
        settings: settings.clone(),
    };
    let after = bench.define(define).await.stream.expect("there");
    assert!(after.version > info.version);
    assert_eq!(after.processors.len(), 1);
    assert_eq!((after.processors[0].name.as_str(), &after.processors[0].settings), ("mailer", &settings));
    assert_eq!(bench.stream_info(info.id).await, Some(after.clone()));
    for partition in 0..2 {
        let seats = bench.seats(after.shard(Partition(partition))).await.1;
        assert_eq!(seats.len(), 1, "a processor has a seat on every shard");
        assert_eq!((seats[0].processor, seats[0].progress.fence.term.0), (after.processors[0].id, 0));
        assert!(seats[0].progress.clean, "a new seat has nothing to suspect");
    }
}

/// Contract 2, define: registering the same processor again changes its settings and not its progress.
pub async fn registering_again_changes_the_settings_only(bench: &Bench) {
    let place = bench.place().await;
    let ids = bench.fill(&place, "a", 3).await;
    bench.pass(place.seat, &ids[..2]).await;
    let name = place.stream.processors[0].name.clone();
    let settings = Bytes::from_static(b"other policy");
    let again = Define::Processor {
        stream: place.stream.id,
        name,
        start: StartAt::Beginning,
        settings: settings.clone(),
    };
    let info = bench.define(again).await.stream.expect("there");
    assert_eq!(info.processors.len(), 1);
    assert_eq!((info.processors[0].id, &info.processors[0].settings), (place.seat.processor, &settings));
    assert_eq!(bench.seat_view(place.seat).await.progress.window.floor(), ids[1]);
}

/// Contract 3.5: processor names are unique in the store.
pub async fn a_processor_name_belongs_to_one_stream(bench: &Bench) {
    let first = bench.stream(Bench::settings()).await;
    let second = bench.stream(Bench::settings()).await;
    bench.define(processor(first.id, "mailer", StartAt::End)).await;
    expect_refused!(bench.store().define(processor(second.id, "mailer", StartAt::End)).await);
    assert!(bench.stream_info(second.id).await.expect("there").processors.is_empty());
}

/// Contract 2, define: a processor needs its stream.
pub async fn a_processor_of_a_missing_stream_is_not_found(bench: &Bench) {
    let answer = bench.store().define(processor(StreamId(77), "mailer", StartAt::End)).await;
    expect_error!(answer, StoreError::NotFound { .. });
}

/// Contract 2, ids: removal takes the progress with it, and the number never comes back.
pub async fn a_removed_processor_begins_anew(bench: &Bench) {
    let place = bench.place().await;
    let ids = bench.fill(&place, "a", 2).await;
    bench.pass(place.seat, &ids).await;
    let remove = Define::RemoveProcessor { processor: place.seat.processor };
    let info = bench.define(remove.clone()).await.stream.expect("there");
    assert!(info.processors.is_empty() && info.version > place.stream.version);
    assert!(bench.seats(place.shard).await.1.is_empty());
    expect_error!(bench.store().seize(bench.seize_of(place.seat, None)).await, StoreError::NotFound { .. });
    expect_error!(bench.store().define(remove).await, StoreError::NotFound { .. });
    let name = place.stream.processors[0].name.clone();
    let info = bench.define(processor(info.id, &name, StartAt::Beginning)).await.stream.expect("there");
    assert!(info.processors[0].id > place.seat.processor);
    let seat = Seat { shard: place.shard, processor: info.processors[0].id };
    assert_eq!(bench.seat_view(seat).await.progress.window.floor(), EventId(0));
}

/// Invariant L1: a fence from before the removal of a processor never works for the one registered after it.
pub async fn a_fence_does_not_outlive_its_processor(bench: &Bench) {
    let place = bench.place().await;
    let ids = bench.fill(&place, "a", 1).await;
    let old = bench.seize(place.seat).await.progress.fence;
    bench.define(Define::RemoveProcessor { processor: place.seat.processor }).await;
    let name = place.stream.processors[0].name.clone();
    let info =
        bench.define(processor(place.stream.id, &name, StartAt::Beginning)).await.stream.expect("there");
    let seat = Seat { shard: place.shard, processor: info.processors[0].id };
    let resume = bench.seize(seat).await;
    assert!(resume.progress.fence.term > old.term, "terms only grow");
    let mut commit = bench.commit_of(seat, old);
    commit.passed = passed(&ids);
    expect_error!(bench.store().commit(commit).await, StoreError::Fenced { .. });
}

async fn floor_of(bench: &Bench, place: &Place, start: StartAt) -> EventId {
    let processor = bench.processor(place.stream.id, start).await;
    bench.seat_view(Seat { shard: place.shard, processor }).await.progress.window.floor()
}

/// Design 3: a processor begins at the beginning, the end, an id or a time.
pub async fn a_processor_begins_where_it_is_told(bench: &Bench) {
    let place = bench.place().await;
    let ids = bench.fill(&place, "a", 3).await;
    assert_eq!(floor_of(bench, &place, StartAt::Beginning).await, EventId(0));
    assert_eq!(floor_of(bench, &place, StartAt::End).await, ids[2]);
    assert_eq!(floor_of(bench, &place, StartAt::Id(ids[1])).await, ids[0]);
    assert_eq!(floor_of(bench, &place, StartAt::Id(EventId(0))).await, EventId(0));
    assert_eq!(floor_of(bench, &place, StartAt::Id(EventId(1_000))).await, ids[2], "not above the head");
}

/// Starts at a time, each with the floor it gives to a shard with two events that are ten seconds apart.
pub(super) async fn starts_at_times(bench: &Bench, place: &Place) -> [(StartAt, EventId); 4] {
    let second = Duration::from_secs(1);
    let first_id = bench.send_one(place, draft("a", "1")).await;
    let early = bench.now();
    bench.advance(10 * second);
    let late = bench.now();
    let second_id = bench.send_one(place, draft("b", "2")).await;
    [
        (StartAt::Time(early), EventId(0)),
        (StartAt::Time(early.after(second)), first_id),
        (StartAt::Time(late), first_id),
        (StartAt::Time(late.after(second)), second_id),
    ]
}

/// Design 3: beginning at a time means the first event of that time or a later one.
pub async fn a_processor_begins_at_a_time(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let place = bench.place().await;
    for (start, floor) in starts_at_times(bench, &place).await {
        assert_eq!(floor_of(bench, &place, start).await, floor, "{start:?}");
    }
}

/// Contract 3.8: a processor that joins after a trim begins above what is gone.
pub async fn a_late_processor_begins_above_the_trim(bench: &Bench) {
    let settings = StreamSettings { keep: Duration::ZERO, ..Bench::settings() };
    let place = bench.place_with(settings).await;
    let ids = bench.fill(&place, "a", 4).await;
    bench.pass(place.seat, &ids[..2]).await;
    bench.trim(place.shard).await;
    assert_eq!(bench.shard_info(place.shard).await.trimmed, ids[1]);
    assert_eq!(floor_of(bench, &place, StartAt::Beginning).await, ids[1]);
    assert_eq!(floor_of(bench, &place, StartAt::Id(ids[0])).await, ids[1]);
}

/// Contract 1.3: a sealed shard answers appends with the layout to read; what is in it stays readable.
pub async fn a_sealed_shard_refuses_appends(bench: &Bench) {
    let place = bench.place().await;
    bench.send_one(&place, draft("a", "before")).await;
    bench.define(Define::Seal { shard: place.shard }).await;
    let info = bench.shard_info(place.shard).await;
    assert!(info.sealed && info.layout > place.stream.layout, "{info:?}");
    let answer = bench.try_send(&place, vec![keyless("after")]).await;
    expect_error!(answer, StoreError::Moved { shard, layout } if shard == place.shard && layout == info.layout);
    let mut append = bench.append_to(&place, vec![keyless("after")]);
    append.layout = info.layout;
    expect_error!(bench.store().append(append).await, StoreError::Moved { .. });
    assert_eq!(bench.events(place.shard).await.len(), 1);
    let missing = Define::Seal { shard: Shard { stream: StreamId(99), partition: Partition(0) } };
    expect_error!(bench.store().define(missing).await, StoreError::NotFound { .. });
}

/// Contract 3.7: a processor that was never registered is not found.
pub async fn removing_a_missing_processor_is_not_found(bench: &Bench) {
    let remove = Define::RemoveProcessor { processor: ProcessorId(4_711) };
    expect_error!(bench.store().define(remove).await, StoreError::NotFound { .. });
}
