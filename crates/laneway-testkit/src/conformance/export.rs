//! Cases about the lists that copies read of a shard: clocks and numbers, events, objects, names and sources.
//!
//! Each is read in pages of several sizes: nothing is missing, nothing comes twice, the order stays, and the rows
//! are what was put in. What belongs to jobs and seats is in `export_work`.

use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{
    DedupName, DedupRow, Define, ObjectRow, ObjectWrite, Origin, Promote, Query, Receipt, Source, SourceRow,
};
use laneway_core::{Event, EventId, Mode, StreamSettings, Term};

use super::expect::{paged, rows};
use crate::bench::{Bench, DraftExt, Place, delayed, draft, key, keyless};

const SECOND: Duration = Duration::from_secs(1);
/// More rows than a store reads at a time, and no multiple of a page.
const MANY: usize = 37;

fn ids(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| event.id.0).collect()
}

/// Contract 2, query: a store tells its clocks, and the last numbers given, also to what was removed.
pub async fn the_store_tells_its_clocks_and_numbers(bench: &Bench) {
    let first = bench.place().await;
    let gone = bench.place().await;
    bench.define(Define::RemoveStream { stream: gone.stream.id, expect: gone.stream.version }).await;
    let view = rows!(bench, Query::Store, Store);
    assert_eq!((view.streams, view.processors), (gone.stream.id, gone.seat.processor));
    assert!(view.streams > first.stream.id, "numbers of removed streams count");
    if bench.clock_moves() {
        assert_eq!(view.calendar, bench.now());
        bench.advance(SECOND);
        let later = rows!(bench, Query::Store, Store);
        assert_eq!(later.calendar, view.calendar.after(SECOND));
        assert_eq!(later.steady, view.steady.after(SECOND));
    }
}

/// Contract 2, query: events are listed whole and by id, from the trim on.
pub async fn stored_events_are_listed_by_id(bench: &Bench) {
    let place = bench.place_with(StreamSettings { keep: Duration::ZERO, ..Bench::settings() }).await;
    let sent = bench.fill(&place, "a", MANY).await;
    bench.send(&place, vec![keyless("no lane"), draft("b", "named").dedup("n", 1)]).await;
    let listed = paged!(bench, Events(place.shard, EventId(0)), |event| event.id);
    assert_eq!(listed, bench.events(place.shard).await);
    assert_eq!(ids(&listed), (1..=MANY as u64 + 2).collect::<Vec<_>>());
    bench.pass(place.seat, &sent[..20]).await;
    bench.trim(place.shard).await;
    let left = paged!(bench, Events(place.shard, EventId(0)), |event| event.id);
    assert_eq!(left, listed[20..], "what is trimmed is passed over");
    let after_last = Query::Events(place.shard, EventId(MANY as u64 + 2), 10);
    assert!(rows!(bench, after_last, Events).is_empty());
}

/// Contract 1.14: in latest streams also events that are not their lane's newest are listed, with their payload.
pub async fn superseded_events_are_listed_whole(bench: &Bench) {
    let place = bench.place_with(StreamSettings { mode: Mode::Latest, ..Bench::settings() }).await;
    for generation in 1..=MANY as u64 {
        bench.send_one(&place, draft("a", &generation.to_string()).generation(1, Some(generation))).await;
    }
    let listed = paged!(bench, Events(place.shard, EventId(0)), |event| event.id);
    assert_eq!(listed.len(), MANY);
    for (index, event) in listed.iter().enumerate() {
        assert_eq!(event.generation, Some(index as u64 + 1));
        assert_eq!(event.data, Bytes::from((index + 1).to_string()));
    }
}

/// Contract 1.4: ids that an adoption jumped over are passed over.
pub async fn stored_events_go_on_after_a_gap(bench: &Bench) {
    let place = bench.place().await;
    bench.fill(&place, "a", 3).await;
    let stored = bench.incarnation();
    bench.restore().await;
    bench.define(Define::Adopt { shard: place.shard, stored }).await;
    bench.fill(&place, "a", 3).await;
    let listed = paged!(bench, Events(place.shard, EventId(0)), |event| event.id);
    let jumped = bench.shard_info(place.shard).await.gaps[0].1.0;
    assert_eq!(ids(&listed), [1, 2, 3, jumped + 1, jumped + 2, jumped + 3]);
}

/// Contract 1.6: objects are listed by key, also removed ones, with their versions.
pub async fn objects_are_listed_with_removed_ones(bench: &Bench) {
    let place = bench.place().await;
    bench.send_one(&place, draft("without", "an object")).await;
    let mut expected = Vec::new();
    for index in 0..MANY {
        let name = format!("{index:02}");
        let value = Bytes::from(format!("object of {name}"));
        let mut values = vec![Some(value.clone())];
        match index % 3 {
            1 => values.push(None),
            2 => values.insert(0, Some(Bytes::from_static(b"before"))),
            _ => {}
        }
        let version = values.len() as u64;
        expected.push(ObjectRow { key: key(&name), version, value: values.last().cloned().flatten() });
        for value in values {
            let mut append = bench.append_to(&place, vec![draft(&name, "x")]);
            append.object = Some(ObjectWrite { expect: None, value });
            bench.store().append(append).await.expect("any version is replaced");
        }
    }
    let listed = paged!(bench, Objects(place.shard, None), |row| Some(row.key.clone()));
    assert_eq!(listed, expected);
}

/// Contract 1.13: every remembered dedup id is listed once, with the first receipt and the body's hash.
pub async fn dedup_ids_are_listed_with_their_receipts(bench: &Bench) {
    let place = bench.place().await;
    let now = rows!(bench, Query::Store, Store).calendar;
    let mut expected = Vec::new();
    for index in 0..MANY {
        let (lane, id) = (format!("lane-{}", index % 4), format!("id-{}", index / 2));
        let given = match index % 3 {
            0 => keyless("x"),
            1 => draft(&lane, "x"),
            _ => delayed(&lane, "x", Duration::from_secs(60)),
        };
        let (name_key, body) = (given.key.clone(), 1_000 + index as u128);
        let receipt = bench.send(&place, vec![given.dedup(&id, body)]).await.remove(0);
        let event = match &receipt {
            Receipt::New { id, .. } => Some(*id),
            _ => None,
        };
        let name = DedupName { key: name_key, id: Bytes::from(id) };
        expected.push(DedupRow { name, receipt, body, until: now, event });
    }
    let listed = paged!(bench, Dedup(place.shard, None), |row| Some(row.name.clone()));
    same_but_until(&listed, &expected);
    assert!(listed.iter().all(|row| row.until >= now.after(Duration::from_secs(3_600))), "kept for an hour");
}

fn same_but_until(listed: &[DedupRow], expected: &[DedupRow]) {
    assert_eq!(listed.len(), expected.len(), "{listed:?}");
    for row in expected {
        let found = listed.iter().find(|found| found.name == row.name);
        let found = found.unwrap_or_else(|| panic!("{row:?} is not listed"));
        assert_eq!(*found, DedupRow { until: found.until, ..row.clone() });
    }
}

/// Contract 1.10: the dedup id of a delayed draft names its event once there is one, and keeps its first receipt.
pub async fn the_dedup_id_of_a_joined_draft_names_its_event(bench: &Bench) {
    let place = bench.place().await;
    let given = delayed("a", "x", Duration::ZERO).dedup("d", 7);
    let receipt = bench.send(&place, vec![given]).await.remove(0);
    bench.store().promote(Promote { shard: place.shard, limit: 9 }).await.expect("a shard that exists");
    let listed = paged!(bench, Dedup(place.shard, None), |row| Some(row.name.clone()));
    let name = DedupName { key: Some(key("a")), id: Bytes::from_static(b"d") };
    let row = DedupRow { name, receipt, body: 7, until: listed[0].until, event: Some(EventId(1)) };
    assert_eq!(listed, [row]);
}

/// Contract 1.1 and 1.2: every source is listed once, with its newest term and highest number.
pub async fn sources_are_listed_with_their_numbers(bench: &Bench) {
    let place = bench.place().await;
    let mut expected = Vec::new();
    for index in 0..MANY as u32 {
        let source = if index % 2 == 0 {
            Source::Named(Bytes::from(format!("source-{index}")))
        } else {
            let (shard, processor) = (place.shard, place.seat.processor);
            Source::Outbox { shard, processor, incarnation: index / 4, adoptions: index % 4 }
        };
        let (term, number) = (Term(u64::from(index) + 2), u64::from(index) + 10);
        for (term, number) in [(Term(1), number - 1), (term, number)] {
            send_from(bench, &place, Origin { source: source.clone(), term }, number).await;
        }
        expected.push(SourceRow { source, term, number });
    }
    let mut listed = paged!(bench, Sources(place.shard, None), |row| Some(row.source.clone()));
    listed.sort_by(|left, right| left.source.cmp(&right.source));
    expected.sort_by(|left, right| left.source.cmp(&right.source));
    assert_eq!(listed, expected);
}

async fn send_from(bench: &Bench, place: &Place, origin: Origin, number: u64) {
    let append = bench.append_from(place, origin, vec![draft("a", "x").at_origin(number)]);
    bench.store().append(append).await.expect("terms and numbers grow");
}
