//! A store on a simulated disk without threads of its own beside the one that writes, and short ways to use it.

use std::sync::Arc;

use futures::executor::block_on;
use laneway_core::store::{Append, Appended, Define};
use laneway_core::{Draft, Event, EventId, Kind, ManualClock, Partition, Result, Shard, Store};
use laneway_core::{StreamInfo, StreamSettings};

use crate::file::disk::Disk;
use crate::file::disk::simulated::SimulatedDisk;
use crate::file::{Background, FileOptions, FileStore};

pub(super) const DIR: &str = "/store";

/// Small segments, nothing in the background.
pub(super) fn options() -> FileOptions {
    FileOptions {
        background: Background::Manual,
        segment_bytes: 3 << 19,
        recent_bytes: 1 << 10,
        ..FileOptions::default()
    }
}

pub(super) fn open_with(disk: Arc<dyn Disk>, options: FileOptions) -> FileStore {
    FileStore::open_on(disk, DIR, options, Arc::new(ManualClock::default())).unwrap()
}

pub(super) fn open(disk: &SimulatedDisk) -> FileStore {
    open_with(Arc::new(disk.clone()), options())
}

/// A stream with one partition.
pub(super) fn stream(store: &FileStore, name: &str) -> StreamInfo {
    let settings = StreamSettings { partitions: 1, ..StreamSettings::default() };
    let define = Define::Stream { name: name.to_owned(), expect: None, settings };
    block_on(store.define(define)).unwrap().stream.unwrap()
}

pub(super) fn shard(stream: &StreamInfo) -> Shard {
    stream.shard(Partition(0))
}

/// So many events of so many bytes.
pub(super) fn append_of(store: &FileStore, stream: &StreamInfo, events: usize, bytes: usize) -> Append {
    let draft = || Draft::new(None, Kind::new("test").unwrap(), vec![7; bytes]);
    Append {
        shard: shard(stream),
        incarnation: store.about().incarnation,
        layout: stream.layout,
        origin: None,
        drafts: (0..events).map(|_| draft()).collect(),
        object: None,
    }
}

pub(super) fn append(
    store: &FileStore,
    stream: &StreamInfo,
    events: usize,
    bytes: usize,
) -> Result<Appended> {
    block_on(store.append(append_of(store, stream, events, bytes)))
}

/// All events of a stream.
pub(super) fn events(store: &FileStore, stream: &StreamInfo) -> Vec<Event> {
    block_on(super::super::read::events(store.shared(), shard(stream), EventId(0), usize::MAX)).unwrap()
}
