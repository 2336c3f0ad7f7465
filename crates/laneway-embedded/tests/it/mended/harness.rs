//! A store on a simulated disk without background work, and a bench around it.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::sync::Arc;

use bytes::Bytes;
use laneway_core::event::Dedup;
use laneway_core::{Draft, Key, Kind, ManualClock};
use laneway_embedded::file::Background;
use laneway_embedded::file::disk::Disk;
use laneway_embedded::{FileOptions, FileStore};
use laneway_testkit::Bench;

use crate::rich::on_file;

/// The smallest segments there may be.
pub(super) const SMALLEST: u64 = 3 << 19;

pub(super) fn options(segment_bytes: u64) -> FileOptions {
    FileOptions {
        background: Background::Manual,
        segment_bytes,
        recent_bytes: 1 << 10,
        ..FileOptions::default()
    }
}

pub(super) fn open(disk: Arc<dyn Disk>, segment_bytes: u64, clock: &ManualClock) -> FileStore {
    FileStore::open_on(disk, "/store", options(segment_bytes), Arc::new(clock.clone())).unwrap()
}

pub(super) async fn bench(disk: Arc<dyn Disk>, segment_bytes: u64) -> (FileStore, Bench) {
    let clock = ManualClock::default();
    let store = open(disk, segment_bytes, &clock);
    let bench = on_file(&store, &clock).await;
    (store, bench)
}

/// A key of the largest size that takes the most bytes in a row.
pub(super) fn long_key(number: usize) -> Key {
    let mut bytes = vec![0; 512];
    bytes[504..].copy_from_slice(&(number as u64).to_be_bytes());
    Key::new(bytes).unwrap()
}

/// A draft whose key and dedup id are as long as they may be.
pub(super) fn long_draft(number: usize) -> Draft {
    let id = Bytes::from(format!("{number:0>256}"));
    let window = std::time::Duration::from_secs(5);
    let draft = Draft::new(Some(long_key(number)), Kind::new("test").unwrap(), vec![7; 10]);
    Draft { dedup: Some(Dedup { id, body: 1, window }), ..draft }
}
