//! What a frame says: a sequence of records, each with its length, so that a reader looking for one shard passes
//! over the rest.
//!
//! ```text
//! tag u8 | length u32 | content
//! ```
//!
//! Records say what changed, not what was asked for: replaying them needs no rule and gives the same state.

use std::ops::Range;

use bytes::Bytes;
use laneway_core::{
    Event, EventId, JobMark, Key, Partition, Passed, ProcessorId, Seat, Shard, ShardInfo, StreamId,
    StreamInfo,
};

use super::tails;
use crate::machine::codec::{self, Decoder, Encoder, Malformed, Stored};
use crate::machine::{SeatHead, SeatState, StoredEnd, Table, Tail};

/// Length of a record before its content.
pub(crate) const HEAD: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Tag {
    Events = 1,
    Advance = 2,
    JobEnds = 3,
    Put = 4,
    Delete = 5,
    Forget = 6,
    Stream = 7,
    RemoveStream = 8,
    Shard = 9,
    Seat = 10,
    RemoveSeat = 11,
    Tail = 12,
    TailGone = 13,
}

impl Tag {
    fn parse(byte: u8) -> Result<Self, Malformed> {
        const ALL: [Tag; 13] = [
            Tag::Events,
            Tag::Advance,
            Tag::JobEnds,
            Tag::Put,
            Tag::Delete,
            Tag::Forget,
            Tag::Stream,
            Tag::RemoveStream,
            Tag::Shard,
            Tag::Seat,
            Tag::RemoveSeat,
            Tag::Tail,
            Tag::TailGone,
        ];
        ALL.into_iter().find(|tag| *tag as u8 == byte).ok_or(Malformed)
    }
}

/// Writes records behind each other.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// Where the open record of events or job ends begins, and its shard: what follows for the same joins it.
    open: Option<(usize, Tag, Shard)>,
}

impl Records {
    fn write(&mut self, out: &mut Vec<u8>, tag: Tag, content: impl FnOnce(&mut Vec<u8>)) {
        self.close(out);
        let start = begin(out, tag);
        content(out);
        end(out, start);
    }

    /// Ends the record that is open, if one is.
    pub(crate) fn close(&mut self, out: &mut [u8]) {
        if let Some((start, ..)) = self.open.take() {
            end(out, start);
        }
    }

    /// Opens a record for items of a shard, unless one is open. Answers whether it began a new one.
    fn join(&mut self, out: &mut Vec<u8>, tag: Tag, shard: Shard) -> bool {
        if matches!(self.open, Some((_, open, of)) if open == tag && of == shard) {
            return false;
        }
        self.close(out);
        let start = begin(out, tag);
        write_shard(out, shard);
        self.open = Some((start, tag, shard));
        true
    }

    /// An event; consecutive ones of a shard share a record. Answers where a new one began in the buffer.
    pub(crate) fn event(&mut self, out: &mut Vec<u8>, shard: Shard, event: &Event) -> Option<usize> {
        let start = out.len();
        let began = self.join(out, Tag::Events, shard);
        codec::event::encode(event, out);
        began.then_some(start)
    }

    pub(crate) fn advance(&mut self, out: &mut Vec<u8>, seat: Seat, head: &SeatHead, passed: &Passed) {
        self.write(out, Tag::Advance, |out| {
            write_seat(out, seat);
            head.encode(out);
            passed.encode(out);
        });
    }

    /// The end of a job; consecutive ones of a shard share a record. Answers where it begins in the buffer.
    pub(crate) fn job_end(&mut self, out: &mut Vec<u8>, shard: Shard, stored: &StoredEnd) -> usize {
        self.join(out, Tag::JobEnds, shard);
        let start = out.len();
        stored.encode(out);
        start
    }

    pub(crate) fn put(&mut self, out: &mut Vec<u8>, table: Table, key: &[u8], value: &[u8]) {
        self.write(out, Tag::Put, |out| {
            write_row_key(out, table, key);
            out.extend_from_slice(value);
        });
    }

    pub(crate) fn delete(&mut self, out: &mut Vec<u8>, table: Table, key: &[u8]) {
        self.write(out, Tag::Delete, |out| write_row_key(out, table, key));
    }

    pub(crate) fn forget(&mut self, out: &mut Vec<u8>, table: Table, prefix: &[u8]) {
        self.write(out, Tag::Forget, |out| write_row_key(out, table, prefix));
    }

    pub(crate) fn stream(&mut self, out: &mut Vec<u8>, stream: &StreamInfo) {
        self.write(out, Tag::Stream, |out| stream.encode(out));
    }

    pub(crate) fn remove_stream(&mut self, out: &mut Vec<u8>, stream: StreamId) {
        self.write(out, Tag::RemoveStream, |out| out.u32(stream.0));
    }

    pub(crate) fn shard(&mut self, out: &mut Vec<u8>, shard: Shard, info: &ShardInfo) {
        self.write(out, Tag::Shard, |out| {
            write_shard(out, shard);
            info.encode(out);
        });
    }

    pub(crate) fn seat(&mut self, out: &mut Vec<u8>, seat: Seat, state: &SeatState) {
        self.write(out, Tag::Seat, |out| {
            write_seat(out, seat);
            state.encode(out);
        });
    }

    /// The end of a lane that no event in the log stands for.
    pub(crate) fn tail(&mut self, out: &mut Vec<u8>, shard: Shard, key: &Key, tail: &Tail) {
        self.write(out, Tag::Tail, |out| {
            write_shard(out, shard);
            out.bytes(key.as_ref());
            tails::encode(tail, out);
        });
    }

    /// A lane is forgotten.
    pub(crate) fn tail_gone(&mut self, out: &mut Vec<u8>, shard: Shard, key: &Key) {
        self.write(out, Tag::TailGone, |out| {
            write_shard(out, shard);
            out.bytes(key.as_ref());
        });
    }

    pub(crate) fn remove_seat(&mut self, out: &mut Vec<u8>, seat: Seat) {
        self.write(out, Tag::RemoveSeat, |out| write_seat(out, seat));
    }
}

fn begin(out: &mut Vec<u8>, tag: Tag) -> usize {
    let start = out.len();
    out.u8(tag as u8);
    out.u32(0);
    start
}

fn end(out: &mut [u8], start: usize) {
    let len = u32::try_from(out.len() - start - HEAD).expect("frames are shorter than a segment");
    out[start + 1..start + HEAD].copy_from_slice(&len.to_le_bytes());
}

fn shard_bytes(shard: Shard) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&shard.stream.0.to_le_bytes());
    bytes[4..].copy_from_slice(&shard.partition.0.to_le_bytes());
    bytes
}

fn write_shard(out: &mut Vec<u8>, shard: Shard) {
    out.extend_from_slice(&shard_bytes(shard));
}

fn write_seat(out: &mut Vec<u8>, seat: Seat) {
    write_shard(out, seat.shard);
    out.u32(seat.processor.0);
}

fn write_row_key(out: &mut Vec<u8>, table: Table, key: &[u8]) {
    out.varint(key.len() as u64 + 1);
    out.u8(table as u8);
    out.extend_from_slice(key);
}

/// One record, read back. Row keys come with their table byte in front.
#[derive(Clone, Debug)]
pub(crate) enum Record {
    Events(EventsSection),
    Advance(Seat, SeatHead, Passed),
    /// Each with its offset in the body.
    JobEnds(Shard, Vec<(usize, StoredEnd)>),
    Put(Bytes, Bytes),
    Delete(Bytes),
    Forget(Bytes),
    Stream(StreamInfo),
    RemoveStream(StreamId),
    Shard(Shard, ShardInfo),
    Seat(Seat, SeatState),
    RemoveSeat(Seat),
    Tail(Shard, Key, Tail),
    TailGone(Shard, Key),
}

/// A run of events of one shard, not decoded yet.
#[derive(Clone, Debug)]
pub(crate) struct EventsSection {
    pub(crate) shard: Shard,
    events: Decoder,
}

impl EventsSection {
    /// Passes over events before this one.
    pub(crate) fn skip_to(&mut self, first: EventId) -> Result<(), Malformed> {
        while !self.events.is_empty() {
            let mut behind = self.events.clone();
            let (id, _) = codec::event::decode_mark(&mut behind)?;
            if id >= first {
                break;
            }
            self.events = behind;
        }
        Ok(())
    }

    /// Id of the next event and what makes it a job, without decoding the rest.
    pub(crate) fn next_mark(&mut self) -> Result<Option<(EventId, Option<JobMark>)>, Malformed> {
        if self.events.is_empty() {
            return Ok(None);
        }
        codec::event::decode_mark(&mut self.events).map(Some)
    }

    /// The next event. It owns its bytes: one that waits must not keep alive the block it was read with.
    pub(crate) fn next_event(&mut self) -> Result<Option<Event>, Malformed> {
        if self.events.is_empty() {
            return Ok(None);
        }
        codec::event::decode(&mut self.events).map(|event| Some(event.detached()))
    }

    /// Ids of the events and what makes them jobs, without decoding the rest.
    pub(crate) fn marks(mut self) -> impl Iterator<Item = Result<(EventId, Option<JobMark>), Malformed>> {
        std::iter::from_fn(move || self.next_mark().transpose())
    }

    /// The events one after the other, as slices of the frame.
    pub(crate) fn events(self) -> impl Iterator<Item = Result<Event, Malformed>> {
        let mut from = self.events;
        std::iter::from_fn(move || (!from.is_empty()).then(|| codec::event::decode(&mut from)))
    }
}

/// The records of a frame's body with their offsets.
pub(crate) struct RecordReader {
    body: Bytes,
    at: usize,
}

impl RecordReader {
    pub(crate) fn new(body: Bytes) -> Self {
        Self { body, at: 0 }
    }

    /// Tag, offset and range of the content of the next record; `None` at the end.
    fn next_raw(&mut self) -> Result<Option<(usize, Tag, Range<usize>)>, Malformed> {
        if self.at >= self.body.len() {
            return Ok(None);
        }
        let start = self.at;
        let head = self.body.get(start..).and_then(|rest| rest.first_chunk::<HEAD>()).ok_or(Malformed)?;
        let tag = Tag::parse(head[0])?;
        let len = usize::try_from(u32::from_le_bytes([head[1], head[2], head[3], head[4]]))
            .map_err(|_| Malformed)?;
        let content = start + HEAD..(start + HEAD).checked_add(len).ok_or(Malformed)?;
        if content.end > self.body.len() {
            return Err(Malformed);
        }
        self.at = content.end;
        Ok(Some((start, tag, content)))
    }

    /// The next record, decoded, and its offset.
    pub(crate) fn next(&mut self) -> Result<Option<(usize, Record)>, Malformed> {
        let Some((at, tag, content)) = self.next_raw()? else { return Ok(None) };
        decode(tag, &self.body, content).map(|record| Some((at, record)))
    }

    /// The record of events of this shard that begins at this offset.
    pub(crate) fn events_at(body: &Bytes, at: usize, shard: Shard) -> Result<EventsSection, Malformed> {
        let mut reader = Self { body: body.clone(), at };
        match reader.next()? {
            Some((_, Record::Events(section))) if section.shard == shard => Ok(section),
            _ => Err(Malformed),
        }
    }

    /// The end of a job that begins at this offset.
    pub(crate) fn job_end(body: &Bytes, at: usize) -> Result<StoredEnd, Malformed> {
        if at > body.len() {
            return Err(Malformed);
        }
        StoredEnd::decode(&mut Decoder::new(body.slice(at..)))
    }
}

fn decode(tag: Tag, body: &Bytes, range: Range<usize>) -> Result<Record, Malformed> {
    let content = body.slice(range.clone());
    let mut from = Decoder::new(content.clone());
    let record = match tag {
        Tag::Events => {
            return Ok(Record::Events(EventsSection { shard: read_shard(&mut from)?, events: from }));
        }
        Tag::Advance => {
            let seat = read_seat(&mut from)?;
            let head = SeatHead::decode(&mut from)?;
            Record::Advance(seat, head, Passed::decode(&mut from)?)
        }
        Tag::JobEnds => {
            let (shard, mut ends) = (read_shard(&mut from)?, Vec::new());
            while !from.is_empty() {
                ends.push((range.start + from.position(), StoredEnd::decode(&mut from)?));
            }
            Record::JobEnds(shard, ends)
        }
        Tag::Put => {
            let key = from.bytes()?;
            return Ok(Record::Put(key, content.slice(from.position()..)));
        }
        Tag::Delete => Record::Delete(from.bytes()?),
        Tag::Forget => Record::Forget(from.bytes()?),
        Tag::Stream => Record::Stream(StreamInfo::decode(&mut from)?),
        Tag::RemoveStream => Record::RemoveStream(StreamId(from.u32()?)),
        Tag::Shard => Record::Shard(read_shard(&mut from)?, ShardInfo::decode(&mut from)?),
        Tag::Seat => Record::Seat(read_seat(&mut from)?, SeatState::decode(&mut from)?),
        Tag::RemoveSeat => Record::RemoveSeat(read_seat(&mut from)?),
        Tag::Tail => {
            let shard = read_shard(&mut from)?;
            let key = from.key()?;
            Record::Tail(shard, key, tails::decode_parts(&mut from)?)
        }
        Tag::TailGone => Record::TailGone(read_shard(&mut from)?, from.key()?),
    };
    from.finish()?;
    Ok(record)
}

fn read_shard(from: &mut Decoder) -> Result<Shard, Malformed> {
    Ok(Shard { stream: StreamId(from.u32()?), partition: Partition(from.u32()?) })
}

fn read_seat(from: &mut Decoder) -> Result<Seat, Malformed> {
    Ok(Seat { shard: read_shard(from)?, processor: ProcessorId(from.u32()?) })
}

/// First and last id of a run of events.
pub(crate) fn run_of(section: EventsSection) -> Result<Option<(EventId, EventId)>, Malformed> {
    let mut run = None;
    for mark in section.marks() {
        let (id, _) = mark?;
        run = Some((run.map_or(id, |(first, _)| first), id));
    }
    Ok(run)
}
