//! Verification of folders that a store has worked in.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use laneway_core::store::Trim;
use laneway_core::{EventId, ManualClock, Store, StoreError, StreamSettings};
use laneway_embedded::file::disk::Disk;
use laneway_embedded::file::disk::simulated::SimulatedDisk;
use laneway_embedded::file::{Background, FindingKind, verify, verify_on};
use laneway_embedded::{FileOptions, FileStore};
use laneway_testkit::Bench;
use laneway_testkit::bench::{Place, draft};

use super::rich::{on_file, rich};

/// Small segments, so that there are several with footers; no background work, so that nothing moves by itself.
fn options() -> FileOptions {
    FileOptions { segment_bytes: 4 << 20, background: Background::Manual, ..FileOptions::default() }
}

fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.file_name().is_some_and(|name| name != "LOCK") {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    found
}

/// Puts into another folder what a process that is killed now leaves behind: what the files hold at this moment.
pub(crate) fn leave_as_killed(live: &Path, killed: &Path) {
    for (path, bytes) in files(live) {
        let copy = killed.join(path.strip_prefix(live).unwrap());
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::write(copy, bytes).unwrap();
    }
}

/// Some of everything, then enough events for several segments, with checkpoints between.
async fn fill(store: &FileStore, clock: &ManualClock) -> Place {
    let bench = on_file(store, clock).await;
    let queue = rich(&bench).await.queue;
    for round in 0..6 {
        for lane in ["a", "b", "c"] {
            let data = "x".repeat(2_000);
            let drafts = (0..200).map(|_| draft(lane, &data)).collect();
            bench.send(&queue, drafts).await;
        }
        if round % 2 == 0 {
            store.checkpoint().unwrap();
        }
    }
    queue
}

#[tokio::test]
async fn a_folder_after_rich_work_is_clean_and_stays_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let store = FileStore::open_with(folder.path(), options(), Arc::new(clock.clone())).unwrap();
    fill(&store, &clock).await;
    store.close().unwrap();
    let before = files(folder.path());
    let report = verify(folder.path()).unwrap();
    assert!(report.is_clean(), "{report}");
    assert!(
        report.segments > 1 && report.footers > 0 && report.rows > 20 && report.job_ends == 2,
        "{report}"
    );
    assert!(files(folder.path()) == before, "verification must not change a byte");
}

#[tokio::test]
async fn a_folder_whose_process_was_killed_is_clean() {
    let folder = tempfile::tempdir().unwrap();
    let (live, killed) = (folder.path().join("live"), folder.path().join("killed"));
    let clock = ManualClock::default();
    let store = FileStore::open_with(&live, options(), Arc::new(clock.clone())).unwrap();
    fill(&store, &clock).await;
    leave_as_killed(&live, &killed);
    let before = files(&killed);
    let report = verify(&killed).unwrap();
    assert!(report.is_clean(), "{report}");
    assert!(files(&killed) == before, "verification must not change a byte");
    let in_use = verify(&live).unwrap_err();
    assert!(matches!(&in_use, StoreError::Down { reason } if reason.contains("in use")), "{in_use}");
    store.close().unwrap();
    let closed = verify(&live).unwrap();
    assert!(closed.is_clean(), "{closed}");
    assert_eq!(closed.events, report.events);
}

#[tokio::test]
async fn a_footer_that_lies_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let store = FileStore::open_with(folder.path(), options(), Arc::new(clock.clone())).unwrap();
    fill(&store, &clock).await;
    store.close().unwrap();
    let footer =
        files(folder.path()).into_keys().find(|path| path.extension().is_some_and(|end| end == "idx"));
    let footer = footer.expect("a sealed segment has a footer");
    let mut bytes = std::fs::read(&footer).unwrap();
    // A table that says something else, with the right checksum: one more microsecond to keep.
    bytes[20 + 28] ^= 1;
    let table_len = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    let sum = crc32fast::hash(&bytes[20..20 + table_len]);
    bytes[16..20].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(&footer, &bytes).unwrap();
    let report = verify(folder.path()).unwrap();
    assert_eq!(report.findings.len(), 1, "{report}");
    assert!(report.has(FindingKind::Mismatch), "{report}");
    bytes[30] ^= 1;
    std::fs::write(&footer, &bytes).unwrap();
    assert!(verify(folder.path()).unwrap().has(FindingKind::Damage), "a footer that fails its checksum");
}

#[tokio::test]
async fn footers_of_a_release_before_are_not_damage() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let open = || FileStore::open_with(folder.path(), options(), Arc::new(clock.clone())).unwrap();
    let store = open();
    fill(&store, &clock).await;
    store.close().unwrap();
    let footers = verify(folder.path()).unwrap().footers;
    let files = files(folder.path()).into_iter();
    for (path, mut bytes) in files.filter(|(path, _)| path.extension().is_some_and(|end| end == "idx")) {
        bytes[8] = 1;
        std::fs::write(&path, bytes).unwrap();
    }
    let report = verify(folder.path()).unwrap();
    assert!(report.is_clean() && report.footers == 0, "{report}");
    open().close().unwrap();
    let report = verify(folder.path()).unwrap();
    assert!(report.is_clean() && report.footers == footers, "they are made again: {report}");
}

#[tokio::test]
async fn trimmed_and_released_events_are_no_gap() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let store = FileStore::open_with(folder.path(), options(), Arc::new(clock.clone())).unwrap();
    let queue = fill(&store, &clock).await;
    let bench = on_file(&store, &clock).await;
    for processor in bench.streams().await.into_iter().flat_map(|stream| stream.processors) {
        bench.define(laneway_core::store::Define::RemoveProcessor { processor: processor.id }).await;
    }
    clock.advance(Duration::from_secs(10_000_000));
    assert!(bench.trim(queue.shard).await.events > 1_000);
    bench.fill(&queue, "a", 3).await;
    store.checkpoint().unwrap();
    store.checkpoint().unwrap();
    drop(bench);
    store.close().unwrap();
    let report = verify(folder.path()).unwrap();
    assert!(report.is_clean(), "{report}");
}

#[tokio::test]
async fn a_store_on_another_disk_is_verified_there() {
    let disk = Arc::new(SimulatedDisk::new());
    let clock = ManualClock::default();
    let dir = Path::new("/store");
    let store =
        FileStore::open_on(Arc::clone(&disk) as Arc<dyn Disk>, dir, options(), Arc::new(clock.clone()))
            .unwrap();
    fill(&store, &clock).await;
    store.close().unwrap();
    let report = verify_on(disk, dir).unwrap();
    assert!(report.is_clean(), "{report}");
    assert!(report.events > 3_000, "{report}");
}

#[tokio::test]
async fn a_folder_with_forgotten_lanes_is_clean() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), ManualClock::default());
    let store = FileStore::open_with(folder.path(), options(), Arc::new(clock.clone())).unwrap();
    let bench = on_file(&store, &clock).await;
    let minute = Duration::from_secs(60);
    let settings =
        StreamSettings { keep: Duration::ZERO, forget_lanes_after: Some(minute), ..Bench::settings() };
    let place = bench.place_with(settings).await;
    for round in 0..4 {
        let drafts = (0..600).map(|number| draft(&format!("{number:03}"), "x")).collect();
        bench.send(&place, drafts).await;
        let ids: Vec<EventId> = bench.events(place.shard).await.iter().map(|event| event.id).collect();
        bench.pass(place.seat, &ids).await;
        clock.advance(minute / 4);
        bench.trim(place.shard).await;
        clock.advance(2 * minute);
        // In the last round it is in the middle of it.
        for _ in 0..if round < 3 { 3 } else { 1 } {
            let trimmed = store.trim(Trim { shard: place.shard }).await.unwrap();
            assert!(trimmed.rows >= 100, "round {round}: {trimmed:?}");
        }
        if round % 2 == 0 {
            store.checkpoint().unwrap();
        }
    }
    drop(bench);
    store.close().unwrap();
    let report = verify(folder.path()).unwrap();
    assert!(report.is_clean(), "{report}");
}
