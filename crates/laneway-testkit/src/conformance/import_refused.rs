//! Cases about what an import refuses, and about who is kept away until it has finished.

use laneway_core::store::{Define, IMPORTING, Import, Promote, Query, Request, RequestOp, Rows, Trim};
use laneway_core::{
    Event, EventId, Incarnation, Partition, ProcessorId, ProcessorInfo, Result, Seat, Shard, ShardInfo,
    StoreError, StreamId, StreamInfo, StreamSettings,
};

use super::expect::{expect_error, expect_refused, rows};
use super::moving::{everything, furnish, import, pieces};
use crate::bench::{Bench, Place, draft};

async fn try_import(bench: &Bench, piece: Import) -> Result<()> {
    bench.store().define(Define::Import(piece)).await.map(drop)
}

/// A stream of three events on another store, and on this one a shard that waits for them.
async fn begun(bench: &Bench) -> (Place, Vec<Event>, ShardInfo) {
    let from = bench.another().await;
    let place = from.place().await;
    from.fill(&place, "a", 3).await;
    import(bench, &Import::Stream(place.stream.clone())).await;
    let (info, seats) = from.seats(place.shard).await;
    import(bench, &Import::Shard(place.shard, Rows::Seats(info.clone(), seats))).await;
    let info = ShardInfo { incarnation: bench.incarnation(), ..info };
    (place.clone(), from.events(place.shard).await, info)
}

/// Seam, import: until a shard has finished nobody appends, seizes, promotes, requests, trims or adopts there.
pub async fn nobody_works_on_a_shard_that_is_being_imported(bench: &Bench) {
    let (place, events, info) = begun(bench).await;
    let (store, shard, seat) = (bench.store(), place.shard, place.seat);
    import(bench, &Import::Shard(shard, Rows::Events(events.clone()))).await;
    let before = everything(bench, shard).await;
    expect_refused!(bench.try_send(&place, vec![draft("a", "early")]).await);
    for incarnation in [bench.incarnation(), IMPORTING] {
        let mut append = bench.append_to(&place, vec![draft("a", "early")]);
        append.incarnation = incarnation;
        assert!(store.append(append).await.is_err(), "an append as of {incarnation:?}");
        let mut seize = bench.seize_of(seat, None);
        seize.incarnation = incarnation;
        assert!(store.seize(seize).await.is_err(), "a seizure as of {incarnation:?}");
    }
    expect_refused!(store.promote(Promote { shard, limit: 1 }).await);
    expect_refused!(store.trim(Trim { shard }).await);
    expect_refused!(store.define(Define::Adopt { shard, stored: IMPORTING }).await);
    let request = Request { seat, token: bench.token(), op: RequestOp::Resume { lane: None } };
    expect_refused!(store.request(request).await);
    assert_eq!(everything(bench, shard).await, before, "nothing of all this was written");
    import(bench, &Import::Finish(shard, info)).await;
    assert_eq!(bench.events(shard).await, events);
    assert_eq!(bench.send_one(&place, draft("a", "next")).await, EventId(4));
}

/// Seam, import: numbers and names that were given here are not taken by an import, also those of removed streams.
pub async fn numbers_and_names_in_use_are_not_imported(bench: &Bench) {
    let gone = bench.place().await;
    bench.define(Define::RemoveStream { stream: gone.stream.id, expect: gone.stream.version }).await;
    let place = bench.place().await;
    let free_stream = StreamId(place.stream.id.0 + 1);
    let free = ProcessorId(place.seat.processor.0 + 1);
    let processor = |id: ProcessorId, name: &str| ProcessorInfo {
        id,
        name: name.to_owned(),
        ..place.stream.processors[0].clone()
    };
    let good = StreamInfo {
        id: free_stream,
        name: "imported".to_owned(),
        processors: vec![processor(free, "imported-processor")],
        ..place.stream.clone()
    };
    let taken = place.stream.processors[0].name.clone();
    let none = StreamSettings { partitions: 0, ..good.settings.clone() };
    let faulty = [
        StreamInfo { id: gone.stream.id, ..good.clone() },
        StreamInfo { id: place.stream.id, ..good.clone() },
        StreamInfo { id: StreamId(u32::MAX), ..good.clone() },
        StreamInfo { name: place.stream.name.clone(), ..good.clone() },
        StreamInfo {
            processors: vec![processor(place.seat.processor, "imported-processor")],
            ..good.clone()
        },
        StreamInfo { processors: vec![processor(free, &taken)], ..good.clone() },
        StreamInfo { settings: none, ..good.clone() },
    ];
    let before = (bench.streams().await, bench.query(Query::Store).await);
    for stream in faulty {
        expect_refused!(try_import(bench, Import::Stream(stream)).await);
    }
    assert_eq!(bench.streams().await, before.0, "nothing was written");
    if bench.clock_moves() {
        assert_eq!(bench.query(Query::Store).await, before.1, "no number was taken");
    }
    import(bench, &Import::Stream(good.clone())).await;
    assert!(bench.streams().await.contains(&good));
}

/// Seam, import: a shard in use takes no piece, whether it was imported before or never.
pub async fn a_shard_in_use_takes_no_piece(bench: &Bench) {
    let from = bench.another().await;
    let made = furnish(&from).await;
    let (place, shard) = (&made.place, made.place.shard);
    let pieces = pieces(&from, bench.incarnation(), &place.stream).await;
    for piece in &pieces {
        import(bench, piece).await;
    }
    bench.fill(place, "busy", 2).await;
    let before = everything(bench, shard).await;
    let mut refused = 0;
    for piece in &pieces {
        // Numbers below those given change nothing; the shard's head is above the one it was opened with.
        if !matches!(piece, Import::Numbers(..)) {
            expect_refused!(try_import(bench, piece.clone()).await);
            refused += 1;
        }
    }
    assert!(refused > 20, "only {refused} pieces");
    assert_eq!(everything(bench, shard).await, before);
    let own = bench.place().await;
    bench.fill(&own, "a", 1).await;
    let events = bench.events(own.shard).await;
    for piece in [
        Import::Shard(own.shard, Rows::Events(events)),
        Import::Shard(own.shard, Rows::Objects(Vec::new())),
        Import::Seat(own.seat, Rows::Tokens(Vec::new())),
        Import::Lanes(own.seat, Vec::new()),
    ] {
        expect_refused!(try_import(bench, piece).await);
    }
}

/// Seam, import: events come in order and without a hole, and nothing of a piece that has one is written.
pub async fn events_with_a_hole_are_not_imported(bench: &Bench) {
    let (place, events, _) = begun(bench).await;
    let piece = |events: &[Event]| Import::Shard(place.shard, Rows::Events(events.to_vec()));
    let hole = [events[0].clone(), events[2].clone()];
    let turned = [events[1].clone(), events[0].clone()];
    for wrong in [&events[1..], &hole[..], &turned[..]] {
        expect_refused!(try_import(bench, piece(wrong)).await);
        assert_eq!(bench.shard_info(place.shard).await.head, EventId(0));
        assert!(rows!(bench, Query::Events(place.shard, EventId(0), 10), Events).is_empty());
    }
    import(bench, &piece(&events[..2])).await;
    import(bench, &piece(&events)).await;
    assert_eq!(rows!(bench, Query::Events(place.shard, EventId(0), 10), Events), events);
}

/// Seam, import: a shard is opened only when its events have reached the head it had.
pub async fn an_import_does_not_finish_before_its_events(bench: &Bench) {
    let (place, events, info) = begun(bench).await;
    let finish = |info: &ShardInfo| Import::Finish(place.shard, info.clone());
    expect_refused!(try_import(bench, finish(&info)).await);
    import(bench, &Import::Shard(place.shard, Rows::Events(events[..2].to_vec()))).await;
    expect_refused!(try_import(bench, finish(&info)).await);
    import(bench, &Import::Shard(place.shard, Rows::Events(events))).await;
    let lower = ShardInfo { head: EventId(2), ..info.clone() };
    let higher = ShardInfo { head: EventId(4), ..info.clone() };
    let never = ShardInfo { incarnation: IMPORTING, ..info.clone() };
    for wrong in [lower, higher, never] {
        expect_refused!(try_import(bench, finish(&wrong)).await);
    }
    assert_eq!(bench.shard_info(place.shard).await.incarnation, IMPORTING);
    import(bench, &finish(&info)).await;
    assert_ne!(bench.shard_info(place.shard).await.incarnation, IMPORTING);
}

/// Seam, import: rows of a shard go to shards and rows of a seat to seats; both must be there.
pub async fn pieces_must_fit_their_place(bench: &Bench) {
    let (place, _, info) = begun(bench).await;
    let (shard, seat) = (place.shard, place.seat);
    for rows in [Rows::Tokens(Vec::new()), Rows::Sided(Vec::new()), Rows::Streams(Vec::new())] {
        expect_refused!(try_import(bench, Import::Shard(shard, rows)).await);
    }
    for rows in [Rows::Events(Vec::new()), Rows::Ends(Vec::new()), Rows::Streams(Vec::new())] {
        expect_refused!(try_import(bench, Import::Seat(seat, rows)).await);
    }
    let no_shard = Shard { partition: Partition(8), ..shard };
    let no_seat = Seat { processor: ProcessorId(9_999), ..seat };
    let nowhere = Seat { shard: no_shard, ..seat };
    for piece in [
        Import::Shard(no_shard, Rows::Events(Vec::new())),
        Import::Seat(no_seat, Rows::Tokens(Vec::new())),
        Import::Seat(nowhere, Rows::Tokens(Vec::new())),
        Import::Lanes(no_seat, Vec::new()),
        Import::Finish(no_shard, ShardInfo { incarnation: Incarnation(1), ..info.clone() }),
    ] {
        expect_error!(try_import(bench, piece).await, StoreError::NotFound { .. });
    }
    let mut seats = bench.seats(shard).await.1;
    seats[0].progress.window = laneway_core::Window::at(EventId(9));
    expect_refused!(try_import(bench, Import::Shard(shard, Rows::Seats(info, seats))).await);
}
