//! Jobs that were read are remembered for the commit that ends them, in bounded room; the others are found in the log.

use std::time::Duration;

use futures::executor::block_on;
use laneway_core::store::{Append, Commit, Define, JobEnd, JobResult, JobState, Jobs, Read, ReadFrom, Seize};
use laneway_core::{
    Bytes, CommitId, EventId, Fence, JobDraft, JobNumber, Nonce, Seat, StartAt, Store, StreamInfo,
    StreamSettings, Terminal, Timestamp,
};

use super::harness::{append_of, open, shard};
use crate::file::FileStore;
use crate::file::disk::simulated::SimulatedDisk;

/// More jobs than are remembered.
const JOBS: u64 = 3_000;
const KEEP: Duration = Duration::from_secs(3_600);

/// A stream with so many jobs, and the seat that answers them.
pub(super) fn jobs(store: &FileStore) -> (StreamInfo, Seat, Fence) {
    let settings = StreamSettings { partitions: 1, ..StreamSettings::default() };
    let (stream, seat, fence) = seat_of_jobs(store, settings);
    for _ in 0..JOBS / 1_000 {
        let mut append: Append = append_of(store, &stream, 1_000, 1);
        for draft in &mut append.drafts {
            draft.job = Some(JobDraft { responder: seat.processor, keep: KEEP });
        }
        block_on(store.append(append)).unwrap();
    }
    (stream, seat, fence)
}

/// A stream without events, and the seat that answers its jobs.
pub(super) fn seat_of_jobs(store: &FileStore, settings: StreamSettings) -> (StreamInfo, Seat, Fence) {
    let define = Define::Stream { name: "first".to_owned(), expect: None, settings };
    let stream = block_on(store.define(define)).unwrap().stream.unwrap();
    let define = Define::Processor {
        stream: stream.id,
        name: "responder".to_owned(),
        start: StartAt::Beginning,
        settings: Bytes::new(),
    };
    let stream = block_on(store.define(define)).unwrap().stream.unwrap();
    let seat = Seat { shard: shard(&stream), processor: stream.processors[0].id };
    let seize = Seize {
        seat,
        incarnation: store.about().incarnation,
        expect: None,
        nonce: Nonce(1),
        node: Bytes::from_static(b"test"),
    };
    let fence = block_on(store.seize(seize)).unwrap().progress.fence;
    (stream, seat, fence)
}

fn read(store: &FileStore, seat: Seat, from: ReadFrom) {
    let read =
        Read { shard: seat.shard, from, limit: 10_000, bytes: 8 << 20, processor: None, states: false };
    assert!(!block_on(store.read(read)).unwrap().entries.is_empty());
}

pub(super) fn end(id: EventId) -> JobEnd {
    JobEnd {
        id,
        end: Terminal::Done,
        error: Bytes::new(),
        attempts: 1,
        started_at: None,
        finished_at: Timestamp::default(),
        result: JobResult::Inline(Bytes::copy_from_slice(&id.0.to_le_bytes())),
        keep: KEEP,
    }
}

fn assert_all_ended(store: &FileStore, seat: Seat) {
    let numbers = (1..=JOBS).map(|id| JobNumber::Event(EventId(id))).collect();
    let views = block_on(store.jobs(Jobs::Get { shard: seat.shard, numbers, results: false })).unwrap();
    assert_eq!(views.len() as u64, JOBS);
    for view in views {
        assert!(matches!(view.state, JobState::Ended { .. }), "{view:?}");
    }
}

#[test]
fn long_page_of_jobs_takes_no_more_room_than_is_remembered() {
    let store = open(&SimulatedDisk::new());
    let (_, seat, _) = jobs(&store);
    read(&store, seat, ReadFrom::After(EventId(0)));
    let room = store.shared().recent_marks.room(seat.shard);
    assert!((1..=1_024).contains(&room), "room for {room} jobs is kept for ever");
}

#[test]
fn commit_ends_jobs_that_are_remembered_beside_others() {
    let store = open(&SimulatedDisk::new());
    let (_, seat, fence) = jobs(&store);
    // Remembers some in the middle, then the last ones; the rest was never read, or is forgotten again.
    read(&store, seat, ReadFrom::Ids((1_000..1_200).step_by(2).map(EventId).collect()));
    read(&store, seat, ReadFrom::After(EventId(2_500)));
    let mut commit = Commit::new(seat, fence, CommitId(1));
    commit.passed = (1..=JOBS).map(EventId).collect();
    commit.jobs = (1..=JOBS).rev().map(EventId).map(end).collect();
    block_on(store.commit(commit)).unwrap();
    assert_all_ended(&store, seat);
}
