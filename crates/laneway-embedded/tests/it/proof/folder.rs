//! The folder of a store: one process at a time, private files, honest receipts, and memory and opening time that
//! do not grow with what is pending.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use futures::executor::block_on;
use laneway_core::store::{Append, Define};
use laneway_core::{
    Draft, Durability, Key, Kind, ManualClock, Partition, Store, StreamInfo, StreamSettings, SystemClock,
};
use laneway_embedded::file::Background;
use laneway_embedded::file::disk::simulated::SimulatedDisk;
use laneway_embedded::{FileOptions, FileStore, SyncMode};

use super::child::Working;
use super::killed::Folder;
use super::lives::{DIR, small};
use super::print;

#[test]
fn second_opener_is_refused_at_once_and_a_killed_holder_does_not_hinder() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let mut folder = Folder::found(temporary.path(), 3, SyncMode::Always);
    let mut working = Working::start(&folder.orders);
    let mut lines: Vec<String> =
        std::iter::from_fn(|| working.line()).take_while(|line| line != "ready").collect();
    let refused = FileStore::open(temporary.path()).expect_err("the worker has it").to_string();
    assert!(refused.contains(&format!("in use by process {}", working.process.id())), "{refused}");
    lines.extend(working.kill());
    folder.hear(&lines).expect("a healthy worker");
    folder.check(temporary.path()).expect("the lock of a killed process does not hinder");
    let holder = FileStore::open(temporary.path()).expect("nobody has it");
    let refused = FileStore::open(temporary.path()).expect_err("this process has it").to_string();
    assert!(refused.contains(&format!("in use by process {}", std::process::id())), "{refused}");
    drop(holder);
    FileStore::open(temporary.path()).expect("it was given back");
}

fn check_modes(dir: &Path, files: &mut usize) {
    let mode = |path: &Path| std::fs::metadata(path).expect("it is listed").permissions().mode() & 0o777;
    assert_eq!(mode(dir), 0o700, "{}", dir.display());
    for entry in std::fs::read_dir(dir).expect("our own folder") {
        let path = entry.expect("our own folder").path();
        if path.is_dir() {
            check_modes(&path, files);
        } else {
            assert_eq!(mode(&path), 0o600, "{}", path.display());
            *files += 1;
        }
    }
}

#[test]
fn all_files_are_private() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let dir = temporary.path().join("store");
    let mut folder = Folder::found(&dir, 4, SyncMode::Always);
    let mut working = Working::start(&folder.orders);
    let lines: Vec<String> = std::iter::from_fn(|| working.line()).take(400).collect();
    let rest = working.kill();
    folder.hear(&lines).and_then(|()| folder.hear(&rest)).expect("a healthy worker");
    let mut files = 0;
    check_modes(&dir, &mut files);
    assert!(files > 6, "only {files} files");
}

fn stream(store: &FileStore) -> StreamInfo {
    let settings = StreamSettings { partitions: 1, ..StreamSettings::default() };
    let define = Define::Stream { name: "pending".to_owned(), expect: None, settings };
    block_on(store.define(define)).expect("a healthy store").stream.expect("it was just made")
}

fn append(store: &FileStore, stream: &StreamInfo, drafts: Vec<Draft>) -> Durability {
    let (shard, layout) = (stream.shard(Partition(0)), stream.layout);
    let incarnation = store.about().incarnation;
    let append = Append { shard, incarnation, layout, origin: None, drafts, object: None };
    block_on(store.append(append)).expect("a healthy store").durability
}

fn drafts(from: u64, count: u64, keys: u64) -> Vec<Draft> {
    let draft = |number: u64| {
        let key = Key::new(format!("customer-{}", number % keys)).expect("a short key");
        Draft::new(Some(key), Kind::new("order").expect("a short kind"), format!("{number:0>200}"))
    };
    (from..from + count).map(draft).collect()
}

#[test]
fn receipts_say_how_durable_an_append_is() {
    for (sync, expected) in [(SyncMode::Always, Durability::Synced), (SyncMode::Os, Durability::Buffered)] {
        let temporary = tempfile::tempdir().expect("a temporary folder");
        let options = FileOptions { sync, ..small() };
        let store =
            FileStore::open_with(temporary.path(), options, Arc::new(SystemClock)).expect("an empty folder");
        let stream = stream(&store);
        assert_eq!(append(&store, &stream, drafts(0, 1, 1)), expected);
        assert_eq!(store.about().capabilities.durability, expected);
    }
}

const BACKLOG: &str = "LANEWAY_PROOF_BACKLOG";
const PENDING: u64 = 1_200_000;

/// Resident memory of this process in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a Linux machine");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the kernel tells");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Runs as a child of the next test, so that nothing else is in its memory.
#[test]
fn fills_a_store_and_tells_its_memory() {
    let Ok(dir) = std::env::var(BACKLOG) else { return };
    let options = FileOptions {
        sync: SyncMode::Os,
        segment_bytes: 8 << 20,
        tail_cache: 10_000,
        index_cache_bytes: 8 << 20,
        recent_bytes: 4 << 20,
        checkpoint_bytes: 8 << 20,
        ..FileOptions::default()
    };
    let store = FileStore::open_with(dir, options, Arc::new(SystemClock)).expect("an empty folder");
    let stream = stream(&store);
    let mut out = std::io::stdout();
    for from in (0..PENDING).step_by(500) {
        append(&store, &stream, drafts(from, 500, 50_000));
        if (from + 500) % 300_000 == 0 {
            store.checkpoint().expect("a healthy disk");
            writeln!(out, "\nresident {}", resident()).expect("the parent reads");
        }
    }
}

#[test]
fn memory_does_not_grow_with_the_backlog() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let mut command = Command::new(std::env::current_exe().expect("a test binary knows its own path"));
    command.args(["--exact", "--nocapture", "proof::folder::fills_a_store_and_tells_its_memory"]);
    let output = command.env(BACKLOG, temporary.path()).output().expect("the test binary starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let resident: Vec<u64> =
        text.lines().filter_map(|line| line.strip_prefix("resident ")?.parse().ok()).collect();
    let [first, second, third, fourth] = resident[..] else { panic!("four figures: {text}") };
    print(&format!(
        "resident memory with 0.3, 0.6, 0.9 and 1.2 million pending events: {first}, {second}, {third}, {fourth} KiB"
    ));
    // 600,000 more events are some 180 MB of records; caches come and go by some 20 MB.
    assert!(fourth < first.max(second) + 25_000, "memory grew with the backlog: {resident:?} KiB");
}

/// Reads of an opening after a crash with so many pending events, most of them before the last checkpoint.
fn reads_at_open(pending: u64) -> (u64, u64) {
    let (disk, clock) = (SimulatedDisk::new(), ManualClock::default());
    let options =
        FileOptions { background: Background::Manual, segment_bytes: 3 << 19, ..FileOptions::default() };
    let open = || FileStore::open_on(Arc::new(disk.clone()), DIR, options.clone(), Arc::new(clock.clone()));
    let store = open().expect("an empty disk opens");
    let stream = stream(&store);
    for from in (0..pending).step_by(100) {
        append(&store, &stream, drafts(from, 100, 50));
    }
    store.checkpoint().expect("a healthy disk");
    append(&store, &stream, drafts(pending, 20, 50));
    disk.power_off_at(1);
    drop(store);
    disk.power_cut(&mut fastrand::Rng::with_seed(pending));
    let before = disk.calls().reads;
    let store = open().expect("opens after a crash");
    let reads = disk.calls().reads - before;
    let segments = disk.contents().keys().filter(|path| path.to_string_lossy().ends_with(".seg")).count();
    drop(store);
    (reads, segments as u64)
}

#[test]
fn opening_replays_nothing_before_the_checkpoint() {
    let (few, few_segments) = reads_at_open(5_000);
    let (many, many_segments) = reads_at_open(60_000);
    print(&format!(
        "reads at opening: {few} with 5,000 pending events in {few_segments} segments, {many} with 60,000 in \
         {many_segments}"
    ));
    // Each further segment costs its header and its footer, and no frame of it is read.
    let each = (many.saturating_sub(few)) / (many_segments - few_segments);
    assert!(each <= 8, "{each} reads for each further segment");
}
