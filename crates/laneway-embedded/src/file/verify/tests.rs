//! Every kind of finding, provoked by frames that no store would write.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::executor::block_on;
use laneway_core::store::{Append, Define, JobEnd, JobResult};
use laneway_core::{
    Bytes, Draft, Event, EventId, Key, Kind, ManualClock, Nonce, Partition, ProcessorId, Seat, Seq, Shard,
    StartAt, Store, StreamId, StreamSettings, Terminal, Timestamp, Window,
};

use super::{FindingKind, VerifyReport, verify};
use crate::file::disk::RealDisk;
use crate::file::log::{FrameBuffer, Log, Options, Replay, Space, Stamp, Upkeep};
use crate::file::state::Records;
use crate::file::{FileOptions, FileStore};
use crate::machine::{SeatHead, SeatState, StoredEnd};

const SHARD: Shard = Shard { stream: StreamId(1), partition: Partition(0) };

fn key(name: &str) -> Key {
    Key::new(name.to_owned()).unwrap()
}

/// A closed store with three events in lane `a` and two in lane `b`: ids 1 to 5.
fn healthy() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open_with(folder.path(), FileOptions::default(), Arc::new(ManualClock::default()))
        .unwrap();
    let settings = StreamSettings { partitions: 1, ..StreamSettings::default() };
    let stream = Define::Stream { name: "orders".to_owned(), expect: None, settings };
    let processor = Define::Processor {
        stream: SHARD.stream,
        name: "ship".to_owned(),
        start: StartAt::Beginning,
        settings: Bytes::new(),
    };
    let drafts = ["a", "a", "b", "a", "b"].map(|name| Draft::new(Some(key(name)), Kind::default(), "order"));
    let append = Append {
        shard: SHARD,
        incarnation: store.about().incarnation,
        layout: 1,
        origin: None,
        drafts: drafts.to_vec(),
        object: None,
    };
    block_on(async {
        store.define(stream).await.unwrap();
        store.define(processor).await.unwrap();
        store.append(append).await.unwrap();
    });
    store.close().unwrap();
    folder
}

fn event(id: u64, prev: Option<u64>, seq: u64, lane: &str) -> Event {
    Event {
        id: EventId(id),
        prev: prev.map(EventId),
        seq: Some(Seq(seq)),
        key: Some(key(lane)),
        kind: Kind::default(),
        data: Bytes::from_static(b"crafted"),
        headers: laneway_core::Headers::default(),
        time: Timestamp(1),
        generation: None,
        incarnation: 0,
        delete: false,
        priority: 0,
        expires_at: None,
        hold_until: None,
        job: None,
    }
}

/// Writes one more frame into the log of a closed store.
fn write(dir: &Path, fill: impl FnOnce(&mut Records, &mut Vec<u8>)) {
    let options = Options { upkeep: Upkeep::Caller, ..Options::default() };
    let opened = Log::open(Arc::new(RealDisk), dir, options, Replay::default(), &mut |_| Ok(())).unwrap();
    let (mut writer, mut frame, mut records) = (opened.writer, FrameBuffer::default(), Records::default());
    fill(&mut records, frame.body_mut());
    records.close(frame.body_mut());
    writer.write(&mut frame, Stamp { calendar: 2_000_000_000_000_000, steady: 9 }, Space::Ordinary).unwrap();
    writer.close().unwrap();
}

fn after(events: &[Event]) -> VerifyReport {
    let folder = healthy();
    write(folder.path(), |records, out| {
        for event in events {
            records.event(out, SHARD, event);
        }
    });
    verify(folder.path()).unwrap()
}

/// The findings must be exactly these, in this order, and the first must name all of this.
#[track_caller]
fn check(report: &VerifyReport, kinds: &[FindingKind], lane: Option<&str>, ids: &[u64], text: &str) {
    let found: Vec<FindingKind> = report.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(found, kinds, "{report}");
    let first = &report.findings[0];
    assert_eq!((first.shard, first.key.clone()), (Some(SHARD), lane.map(key)), "{report}");
    assert_eq!(first.ids, ids.iter().copied().map(EventId).collect::<Vec<_>>(), "{report}");
    let place = first.place.as_ref().expect("it has a place");
    assert!(place.file.starts_with("log") && place.offset > 4096, "{report}");
    assert!(first.to_string().contains(text), "{first}");
}

#[test]
fn a_healthy_folder_has_no_findings() {
    let folder = healthy();
    let report = verify(folder.path()).unwrap();
    assert!(report.is_clean(), "{report}");
    assert_eq!((report.events, report.lanes, report.tails), (5, 2, 2));
    assert!(report.to_string().ends_with("nothing is wrong"), "{report}");
}

#[test]
fn events_that_follow_are_no_finding() {
    let report = after(&[event(6, Some(4), 4, "a"), event(7, None, 1, "c"), event(8, Some(6), 5, "a")]);
    assert!(report.is_clean(), "{report}");
    assert_eq!((report.events, report.lanes), (8, 3));
}

#[test]
fn a_missing_event_is_a_gap_of_its_lane_and_of_the_ids() {
    let report = after(&[event(7, Some(6), 5, "a")]);
    check(
        &report,
        &[FindingKind::Gap, FindingKind::Gap],
        Some("a"),
        &[4, 7],
        "its prev is 6, which is not in the log",
    );
    assert!(report.findings[1].to_string().contains("ids 6 to 6 are not in the log"), "{report}");
}

#[test]
fn a_number_left_out_in_a_lane_is_a_gap() {
    let report = after(&[event(6, Some(4), 5, "a")]);
    check(&report, &[FindingKind::Gap], Some("a"), &[4, 6], "its number in the lane is 5, 4 comes next");
}

#[test]
fn the_first_event_of_a_lane_that_follows_one_which_never_was_is_a_gap() {
    let report = after(&[event(6, Some(5), 2, "c")]);
    check(&report, &[FindingKind::Gap], Some("c"), &[6], "its prev is 5, which is not in the log");
    let report = after(&[event(6, None, 2, "c")]);
    check(&report, &[FindingKind::Gap], Some("c"), &[6], "does not fit to its prev");
}

#[test]
fn two_events_that_follow_the_same_one_are_a_fork() {
    let report = after(&[event(6, Some(2), 3, "a")]);
    check(
        &report,
        &[FindingKind::Fork],
        Some("a"),
        &[4, 6],
        "it follows event 2, which event 4 or one before it follows",
    );
    let report = after(&[event(6, None, 1, "a")]);
    check(&report, &[FindingKind::Fork], Some("a"), &[4, 6], "it follows nothing");
}

#[test]
fn an_id_that_is_there_twice_is_a_duplicate() {
    let report = after(&[event(6, Some(4), 4, "a"), event(6, Some(4), 4, "a")]);
    check(&report, &[FindingKind::Duplicate], Some("a"), &[6], "this id was there before");
}

#[test]
fn an_id_that_comes_after_a_higher_one_is_a_reorder() {
    let events = [event(7, Some(4), 4, "a"), event(6, Some(5), 3, "b")];
    let report = after(&events);
    // A start takes the id of the last event it reads for the shard's last one.
    check(&report, &[FindingKind::Reorder, FindingKind::Mismatch], Some("b"), &[6], "it comes after event 7");
}

#[test]
fn a_record_that_makes_no_sense_is_damage_with_its_place() {
    let folder = healthy();
    write(folder.path(), |_, out| out.extend_from_slice(&[77, 1, 0, 0, 0, 5]));
    let report = verify(folder.path()).unwrap();
    assert_eq!(report.findings.len(), 1, "{report}");
    assert!(report.has(FindingKind::Damage), "{report}");
    assert!(report.findings[0].to_string().contains(".seg at offset"), "{report}");
}

#[test]
fn progress_beyond_the_last_event_is_a_mismatch() {
    let folder = healthy();
    let seat = Seat { shard: SHARD, processor: ProcessorId(1) };
    let state = SeatState { head: SeatHead::default(), window: Window::at(EventId(9)) };
    write(folder.path(), |records, out| records.seat(out, seat, &state));
    let report = verify(folder.path()).unwrap();
    assert_eq!(report.findings.len(), 1, "{report}");
    assert!(
        report.findings[0].to_string().contains("has passed everything up to 9, but the last id is 5"),
        "{report}"
    );
}

#[test]
fn a_result_without_its_chunks_is_a_mismatch() {
    let folder = healthy();
    let end = JobEnd {
        id: EventId(3),
        end: Terminal::Done,
        error: Bytes::new(),
        attempts: 1,
        started_at: None,
        finished_at: Timestamp(1),
        result: JobResult::Stashed { nonce: Nonce(4), chunks: 1 },
        keep: std::time::Duration::from_secs(60),
    };
    let stored = StoredEnd { end, keep_until: Timestamp(u64::MAX) };
    write(folder.path(), |records, out| {
        records.job_end(out, SHARD, &stored);
    });
    let report = verify(folder.path()).unwrap();
    check(&report, &[FindingKind::Mismatch], None, &[3], "chunk 0 of 1 of the job's result is not there");
}

#[test]
fn a_row_that_is_not_what_its_table_holds_is_damage() {
    let folder = healthy();
    write(folder.path(), |records, out| {
        records.put(out, crate::machine::Table::Outbox, b"some key", b"no emit")
    });
    let report = verify(folder.path()).unwrap();
    assert_eq!(report.findings.len(), 1, "{report}");
    assert!(report.has(FindingKind::Damage), "{report}");
}

#[test]
fn a_flipped_bit_is_damage_with_file_and_offset() {
    let folder = healthy();
    let segment = folder.path().join("log/00000000000000000001.seg");
    let mut bytes = std::fs::read(&segment).unwrap();
    let at = bytes.windows(5).position(|window| window == b"order").expect("payloads are stored as they are");
    bytes[at] ^= 1;
    std::fs::write(&segment, &bytes).unwrap();
    let report = verify(folder.path()).unwrap();
    assert_eq!(report.findings.len(), 1, "{report}");
    let place = report.findings[0].place.clone().unwrap();
    assert_eq!(
        (report.findings[0].kind, place.file),
        (FindingKind::Damage, PathBuf::from("log/00000000000000000001.seg"))
    );
    assert!(place.offset <= at as u64, "{report}");
}

#[test]
fn a_damaged_index_is_damage_and_the_log_is_read_all_the_same() {
    let folder = healthy();
    let path = folder.path().join("index.redb");
    let mut bytes = std::fs::read(&path).unwrap();
    // Every value of the index holds its key in clear; the tail of lane `a` ends with its checksum.
    let at =
        bytes.windows(9).rposition(|window| window == b"\0\0\0\x01\0\0\0\0a").expect("the tail is there");
    bytes[at + 10] ^= 0x40;
    std::fs::write(&path, &bytes).unwrap();
    let report = verify(folder.path()).unwrap();
    assert!(report.has(FindingKind::Damage), "{report}");
    assert_eq!(report.events, 5, "{report}");
}

#[test]
fn a_folder_without_a_store_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let error = verify(folder.path()).unwrap_err();
    assert!(matches!(error, laneway_core::StoreError::NotFound { .. }), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
