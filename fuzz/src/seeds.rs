//! Makes the kept corpus anew from a small store with a little of everything in it.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::executor::block_on;
use laneway_core::event::Dedup;
use laneway_core::store::{
    Append, Commit, DeadLetter, Define, Emit, Ending, Entry, JobEnd, JobResult, LaneChange, ObjectWrite,
    Read, ReadFrom, Request, RequestOp, Seize, Stash, StateWrite, Trim,
};
use laneway_core::{
    Block, CommitId, Delay, DelayMode, Draft, Event, EventId, JobDraft, Key, Kind, LaneName, LaneRecord,
    ManualClock, Nonce, Partition, Seat, StartAfter, StartAt, Store, StreamSettings, Terminal, Timestamp,
    TokenId,
};
use laneway_embedded::file::Background;
use laneway_embedded::file::disk::simulated::SimulatedDisk;
use laneway_embedded::file::log::{Frame, FrameBuffer, Log, Replay, Space, Stamp};
use laneway_embedded::{FileOptions, FileStore};

use crate::targets::log_options;

const DIR: &str = "/store";

/// Writes all inputs under this folder.
pub(crate) fn write(corpus: &Path) -> io::Result<()> {
    let bodies = bodies();
    let replay = bodies.iter().flat_map(|body| {
        let len = u16::try_from(body.len()).expect("small frames");
        len.to_le_bytes().into_iter().chain(body.iter().copied())
    });
    put(corpus, "replay", 0, &replay.collect::<Vec<u8>>())?;
    for (number, body) in bodies.iter().enumerate() {
        put(corpus, "record", number, body)?;
    }
    let (segment, frames) = segment(&bodies);
    put(corpus, "segment", 0, &segment)?;
    let cut = usize::try_from(frames[1].position.offset).expect("a small segment");
    put(corpus, "segment", 1, &segment[..cut + 20])?;
    for (number, frame) in frames.iter().take(6).enumerate() {
        let from = usize::try_from(frame.position.offset).expect("a small segment");
        let to = usize::try_from(frame.end().position.offset).expect("a small segment");
        let mut input = frame.position.serial.to_le_bytes().to_vec();
        // The seed of the checksum is not known outside the log, so the decoder goes as far as the checksum.
        input.extend([0; 4]);
        input.extend(&segment[from..to]);
        put(corpus, "frame", number, &input)?;
    }
    Ok(())
}

fn put(corpus: &Path, target: &str, number: usize, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(corpus.join(target))?;
    fs::write(corpus.join(target).join(format!("seed-{number:02}")), bytes)
}

/// The bodies as one segment of a log, and its frames.
fn segment(bodies: &[Vec<u8>]) -> (Vec<u8>, Vec<Frame>) {
    let disk = SimulatedDisk::new();
    let mut nothing = |_| Ok(());
    let opened =
        Log::open(Arc::new(disk.clone()), Path::new(DIR), log_options(), Replay::default(), &mut nothing);
    let mut opened = opened.expect("an empty disk opens");
    for (number, body) in (1..).zip(bodies) {
        let mut buffer = FrameBuffer::default();
        buffer.body_mut().extend_from_slice(body);
        let stamp = Stamp { calendar: number, steady: number };
        opened.writer.write(&mut buffer, stamp, Space::Ordinary).expect("small frames fit");
    }
    let start = laneway_embedded::file::log::Position::START;
    let frames = opened.reader.frames_from(start, 1 << 20).expect("just written");
    let end = usize::try_from(frames.last().expect("there are frames").end().position.offset).expect("small");
    let path = Path::new(DIR).join("log/00000000000000000001.seg");
    let mut bytes = disk.contents()[&path].clone();
    bytes.resize(end + 64, 0);
    (bytes, frames)
}

/// The bodies of all frames of a store in which everything happened once.
fn bodies() -> Vec<Vec<u8>> {
    let disk = SimulatedDisk::new();
    let options =
        FileOptions { background: Background::Manual, segment_bytes: 2 << 20, ..FileOptions::default() };
    let clock = Arc::new(ManualClock::default());
    let store =
        FileStore::open_on(Arc::new(disk.clone()), DIR, options.clone(), clock).expect("an empty disk opens");
    block_on(happen(&store)).expect("a healthy store");
    let mut frames = Vec::new();
    let mut keep = |frame: Frame| {
        frames.push(frame.body.to_vec());
        Ok(())
    };
    let log = laneway_embedded::file::log::Options { segment_bytes: options.segment_bytes, ..log_options() };
    Log::open(Arc::new(disk.fork()), Path::new(DIR), log, Replay::default(), &mut keep)
        .expect("a healthy log");
    frames
}

fn draft(key: &str) -> Draft {
    let key = Key::new(key.to_owned()).expect("a short key");
    Draft::new(Some(key), Kind::new("seed").expect("a short kind"), "payload")
}

async fn happen(store: &FileStore) -> laneway_core::Result<()> {
    let settings = StreamSettings { partitions: 1, keep: Duration::ZERO, ..StreamSettings::default() };
    let define = Define::Stream { name: "seeds".to_owned(), expect: None, settings };
    let stream = store.define(define).await?.stream.expect("just made");
    let (name, settings) = ("main".to_owned(), Bytes::from_static(b"{}"));
    let define = Define::Processor { stream: stream.id, name, start: StartAt::Beginning, settings };
    let processor = store.define(define).await?.stream.expect("just changed").processors[0].id;
    let shard = stream.shard(Partition(0));
    let seat = Seat { shard, processor };
    let (incarnation, layout) = (store.about().incarnation, stream.layout);
    let mut drafts: Vec<Draft> = (0..4).map(|lane| draft(&format!("lane-{lane}"))).collect();
    drafts[0].job = Some(JobDraft { responder: processor, keep: Duration::from_secs(60) });
    drafts[1].dedup =
        Some(Dedup { id: Bytes::from_static(b"name"), body: 7, window: Duration::from_secs(60) });
    let until = StartAfter::Delay(Duration::from_secs(5));
    drafts[2].delay = Some(Delay { until, mode: DelayMode::Join });
    drafts[3].priority = 3;
    store.append(Append { shard, incarnation, layout, origin: None, drafts, object: None }).await?;
    let object = Some(ObjectWrite { expect: None, value: Some(Bytes::from_static(b"object")) });
    let drafts = vec![draft("object")];
    store.append(Append { shard, incarnation, layout, origin: None, drafts, object }).await?;
    let node = Bytes::from_static(b"node");
    let seize = Seize { seat, incarnation, expect: None, nonce: Nonce(5), node };
    let fence = store.seize(seize).await?.progress.fence;
    let op = RequestOp::Cancel { id: EventId(2) };
    store.request(Request { seat, token: TokenId(9), op }).await?;
    let bytes = Bytes::from_static(b"chunk");
    store.stash(Stash { shard, id: EventId(1), nonce: Nonce(6), index: 0, bytes }).await?;
    let read = Read {
        shard,
        from: ReadFrom::After(EventId(0)),
        limit: 10,
        bytes: 1 << 20,
        processor: None,
        states: false,
    };
    let events = store.read(read).await?.entries.into_iter().filter_map(|entry| match entry {
        Entry::Event(event) => Some(event),
        Entry::Superseded { .. } => None,
    });
    let events: Vec<Event> = events.collect();
    let mut commit = Commit::new(seat, fence, CommitId(8));
    settle(&mut commit, &events);
    store.commit(commit).await?;
    store.trim(Trim { shard }).await?;
    Ok(())
}

fn settle(commit: &mut Commit, events: &[Event]) {
    events.iter().for_each(|event| commit.passed.insert(event.id));
    let (first, second, third) = (&events[0], &events[1], &events[2]);
    commit.jobs.push(JobEnd {
        id: first.id,
        end: Terminal::Done,
        error: Bytes::new(),
        attempts: 1,
        started_at: None,
        finished_at: Timestamp(0),
        result: JobResult::Inline(Bytes::from_static(b"result")),
        keep: Duration::from_secs(60),
    });
    let reason = Bytes::from_static(b"reason");
    commit.endings.push(Ending {
        id: second.id,
        end: Terminal::Failed,
        reason: reason.clone(),
        winner: None,
    });
    commit.dead.push(DeadLetter {
        event: second.clone(),
        cause: reason.clone(),
        attempts: 2,
        at: Timestamp(0),
    });
    let lane = LaneName::Key(third.key.clone().expect("it has a lane"));
    let block = Block::Parked { cause: reason, at: Timestamp(1) };
    let record = LaneRecord { block: Some(block), head: Some(third.id), ..LaneRecord::new(lane.clone()) };
    commit.lanes.push(LaneChange { lane, record: Some(record), side: vec![third.id], unside: Vec::new() });
    let key = Key::new("state").expect("a short key");
    commit.states.push(StateWrite { key, value: Some(Bytes::from_static(b"value")) });
    commit.emits.push(Emit {
        stream: first.job.map_or(commit.seat.shard.stream, |job| job.id.shard().stream),
        draft: draft("emitted"),
    });
    commit.requests_applied = Some(1);
}
