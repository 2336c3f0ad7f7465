//! What each record does to the state: the same code when work is done and when the log is replayed.

use bytes::Bytes;
use laneway_core::{Event, EventId, Passed, Seat, Shard, ShardInfo, StreamId, StreamInfo};

use super::contents::{FrameContents, Run};
use super::file_state::FileState;
use super::records::{Record, RecordReader, run_of};
use crate::file::log::{Frame, LogError};
use crate::machine::codec::Malformed;
use crate::machine::{SeatHead, SeatState, Tail};

impl FileState {
    pub(super) fn apply_event(&mut self, shard: Shard, event: &Event) {
        if let Some(info) = self.shards.get_mut(&shard) {
            info.head = event.id;
            info.time = info.time.max(event.time);
        }
        if let (Some(key), Some(tail)) = (&event.key, Tail::of(event)) {
            self.tails.set(shard, key, Some(tail));
        }
    }

    pub(super) fn apply_advance(&mut self, seat: Seat, head: SeatHead, passed: &Passed) {
        let gaps = self.shards.get(&seat.shard).map(|info| &info.gaps[..]).unwrap_or_default();
        if let Some(state) = self.seats.get_mut(&seat) {
            state.head = head;
            state.window.pass(passed, gaps);
        }
        self.changed.seats.insert(seat);
    }

    pub(super) fn apply_stream(&mut self, info: StreamInfo) {
        self.changed.streams.insert(info.id);
        self.streams.insert(info.id, info);
    }

    pub(super) fn apply_remove_stream(&mut self, stream: StreamId) {
        self.changed.streams.insert(stream);
        self.streams.remove(&stream);
        let shards: Vec<Shard> = self.shards.keys().filter(|shard| shard.stream == stream).copied().collect();
        for shard in shards {
            self.shards.remove(&shard);
            self.changed.shards.insert(shard);
            self.changed.removed_shards.push(shard);
        }
    }

    pub(super) fn apply_shard(&mut self, shard: Shard, info: ShardInfo) {
        self.changed.shards.insert(shard);
        self.shards.insert(shard, info);
    }

    pub(super) fn apply_seat(&mut self, seat: Seat, state: SeatState) {
        self.changed.seats.insert(seat);
        self.seats.insert(seat, state);
    }

    pub(super) fn apply_remove_seat(&mut self, seat: Seat) {
        self.changed.seats.insert(seat);
        self.seats.remove(&seat);
    }

    /// Does again what a frame of the log says.
    pub(crate) fn replay(&mut self, frame: &Frame) -> Result<(), LogError> {
        let mut reader = RecordReader::new(frame.body.clone());
        loop {
            match reader.next() {
                Ok(Some((at, record))) => {
                    self.replay_record(record).map_err(|Malformed| senseless(frame, at))?
                }
                Ok(None) => return Ok(()),
                Err(Malformed) => return Err(senseless(frame, 0)),
            }
        }
    }

    fn replay_record(&mut self, record: Record) -> Result<(), Malformed> {
        match record {
            Record::Events(section) => {
                let shard = section.shard;
                self.changed.shards.insert(shard);
                for event in section.events() {
                    self.apply_event(shard, &event?);
                }
            }
            Record::Advance(seat, head, passed) => self.apply_advance(seat, head, &passed),
            Record::Tail(shard, key, tail) => self.tails.set(shard, &key, Some(tail)),
            Record::TailGone(shard, key) => self.tails.set(shard, &key, None),
            // Found by the contents of its segment, not by the state.
            Record::JobEnds(..) => {}
            Record::Put(key, value) => self.rows.put(&key, Bytes::copy_from_slice(&value)),
            Record::Delete(key) => self.rows.delete(&key),
            Record::Forget(prefix) => self.rows.forget(&prefix),
            Record::Stream(info) => self.apply_stream(info),
            Record::RemoveStream(stream) => self.apply_remove_stream(stream),
            Record::Shard(shard, info) => self.apply_shard(shard, info),
            Record::Seat(seat, state) => self.apply_seat(seat, state),
            Record::RemoveSeat(seat) => self.apply_remove_seat(seat),
        }
        Ok(())
    }
}

fn senseless(frame: &Frame, at: usize) -> LogError {
    frame.corrupt(at, "a record of a valid frame makes no sense")
}

/// What a frame read from the log adds to the contents of its segment.
pub(crate) fn contents_of(frame: &Frame) -> Result<FrameContents, LogError> {
    let mut contents = FrameContents::default();
    let mut reader = RecordReader::new(frame.body.clone());
    loop {
        match reader.next().map_err(|Malformed| senseless(frame, 0))? {
            Some((at, Record::Events(section))) => {
                let shard = section.shard;
                let run: Option<(EventId, EventId)> =
                    run_of(section).map_err(|Malformed| senseless(frame, at))?;
                let at = u32::try_from(at).expect("frames are shorter than a segment");
                contents.runs.extend(run.map(|(first, last)| Run { shard, first, last, at }));
            }
            Some((_, Record::JobEnds(shard, ends))) => {
                for (at, stored) in ends {
                    let at = u32::try_from(at).expect("frames are shorter than a segment");
                    contents.ends.push((shard, stored.end.id, at));
                    contents.keep_until = contents.keep_until.max(stored.keep_until);
                }
            }
            Some(_) => {}
            None => return Ok(contents),
        }
    }
}
