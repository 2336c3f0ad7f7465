//! The targets: bytes in, no panic out.

use std::path::Path;
use std::sync::Arc;

use futures::executor::block_on;
use laneway_core::store::{Query, Read, ReadFrom, Rows};
use laneway_core::{EventId, ManualClock, Partition, Store};
use laneway_embedded::file::disk::simulated::SimulatedDisk;
use laneway_embedded::file::disk::{Disk, DiskFile};
use laneway_embedded::file::log::frame::{self, SegmentKey};
use laneway_embedded::file::log::{FrameBuffer, Log, Options, Position, Replay, Space, Stamp, Upkeep};
use laneway_embedded::file::{Background, fuzzing};
use laneway_embedded::{FileOptions, FileStore};

/// One target.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&[u8]),
}

pub(crate) const TARGETS: [Target; 4] = [
    Target { name: "frame", run: decode_frame },
    Target { name: "record", run: decode_record },
    Target { name: "segment", run: recover_segment },
    Target { name: "replay", run: replay_store },
];

const DIR: &str = "/store";
pub(crate) const SEGMENT_BYTES: u64 = 64 << 10;

/// The frame decoder. The first 12 bytes choose the segment it is asked to be of.
fn decode_frame(bytes: &[u8]) {
    let Some((chosen, bytes)) = bytes.split_at_checked(12) else { return };
    let serial = u64::from_le_bytes(std::array::from_fn(|index| chosen[index]));
    let seed = u32::from_le_bytes(std::array::from_fn(|index| chosen[8 + index]));
    if let Ok(decoded) = frame::decode(bytes, SegmentKey { serial, seed }) {
        assert!(frame::total_len(decoded.body_len) <= bytes.len(), "a frame longer than its bytes");
    }
}

/// Every decoder of stored records.
fn decode_record(bytes: &[u8]) {
    fuzzing::decode_any_record(bytes);
}

pub(crate) fn log_options() -> Options {
    Options {
        segment_bytes: SEGMENT_BYTES,
        recent_bytes: 4 << 10,
        upkeep: Upkeep::Caller,
        ..Options::default()
    }
}

/// Recovery of a log whose only segment has these bytes; repeated, it must find the same.
fn recover_segment(bytes: &[u8]) {
    let disk = SimulatedDisk::new();
    disk.create_dir(&Path::new(DIR).join("log")).expect("a new disk takes folders");
    let path = Path::new(DIR).join("log/00000000000000000001.seg");
    let file = disk.create(&path).expect("a new disk takes files");
    write(file.as_ref(), bytes);
    let recover = || {
        let mut frames = Vec::new();
        let mut keep = |frame: laneway_embedded::file::log::Frame| {
            frames.push(frame.number);
            Ok(())
        };
        let opened =
            Log::open(Arc::new(disk.clone()), Path::new(DIR), log_options(), Replay::default(), &mut keep);
        let read = opened
            .map(|opened| opened.reader.frames_from(Position::START, 1 << 20).map(|frames| frames.len()));
        (frames, read.map(|read| read.map_err(|error| error.to_string())).map_err(|error| error.to_string()))
    };
    assert_eq!(recover(), recover(), "recovery repeated finds something else");
}

fn write(file: &dyn DiskFile, bytes: &[u8]) {
    file.write_at(bytes, 0).expect("a new disk has room");
}

/// A store whose log holds these bodies in frames that are in order: each is 2 bytes of length and so many bytes.
fn replay_store(mut bytes: &[u8]) {
    let disk = SimulatedDisk::new();
    let options = Options { segment_bytes: 1 << 20, ..log_options() };
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let mut nothing = |_| Ok(());
    let opened = Log::open(Arc::clone(&shared), Path::new(DIR), options, Replay::default(), &mut nothing);
    let mut opened = opened.expect("an empty disk opens");
    let mut number = 0;
    while let Some((len, rest)) = bytes.split_first_chunk::<2>() {
        let len = usize::from(u16::from_le_bytes(*len)).min(rest.len());
        let mut buffer = FrameBuffer::default();
        buffer.body_mut().extend_from_slice(&rest[..len]);
        number += 1;
        let stamp = Stamp { calendar: number, steady: number };
        if opened.writer.write(&mut buffer, stamp, Space::Ordinary).is_err() {
            break;
        }
        bytes = &rest[len..];
    }
    drop(opened);
    let options = FileOptions {
        segment_bytes: 1 << 20,
        index_cache_bytes: 1 << 20,
        background: Background::Manual,
        ..FileOptions::default()
    };
    let clock = Arc::new(ManualClock::default());
    let Ok(store) = FileStore::open_on(Arc::clone(&shared), DIR, options.clone(), clock.clone()) else {
        return;
    };
    let first = look(&store);
    drop(store);
    let Ok(store) = FileStore::open_on(shared, DIR, options, clock) else { return };
    assert_eq!(look(&store), first, "opened again it shows something else");
}

/// What can be read of every stream, errors as text.
fn look(store: &FileStore) -> Vec<String> {
    let Ok(Rows::Streams(streams)) = block_on(store.query(Query::Streams)) else { return Vec::new() };
    let mut seen = Vec::new();
    for stream in streams.iter().take(4) {
        let shard = stream.shard(Partition(0));
        let from = ReadFrom::After(EventId(0));
        let read = Read { shard, from, limit: 100, bytes: 1 << 20, processor: None, states: false };
        seen.push(format!("{:?}", block_on(store.read(read))));
        seen.push(format!("{:?}", block_on(store.query(Query::Seats(shard)))));
    }
    seen
}
