//! Keys of rows: big-endian, so that rows sort by shard, then by what their table is read in order of.
//!
//! Every key of a shard begins with the stream's number, so one prefix removes a stream, and every key of a
//! seat begins with its shard. A part of variable length that is not the last one is escaped and terminated:
//! no two different names can give the same bytes, and names sort as their bytes do.

use bytes::Bytes;
use laneway_core::store::Source;
use laneway_core::{
    BlockKind, Due, EventId, Key, LaneName, Nonce, Partition, ProcessorId, Result, Seat, Shard, Steady,
    StreamId, Timestamp, TokenId,
};

use crate::machine::Table;

use super::Malformed;

/// Single values of the store (`Table::Store`): the first byte of their key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Single {
    /// Last stream number given.
    Streams = 1,
    /// Last processor number given.
    Processors = 2,
    /// (shard) -> how many dedup ids are remembered.
    DedupCount = 3,
    /// (shard) -> events that went by age without any processor.
    Expired = 4,
    /// (shard, table) -> where the next trim went on looking, in stores of before.
    TrimCursor = 5,
    /// (shard) -> how far its ids had come and when, and where looking for idle lanes goes on.
    IdleLanes = 6,
    /// (shard) -> dedup ids that made room for others before their time was over.
    DedupEvicted = 7,
    /// All rows that go by age have their note.
    ExpiryNoted = 8,
    /// (shard) -> what is kept aside of it.
    Kept = 9,
    /// (shard) -> how far its ids had come and when, while log time is ahead of the time of day.
    AheadMarks = 10,
}

impl Single {
    /// Those that belong to a shard.
    pub(crate) const OF_SHARD: [Self; 7] = [
        Self::DedupCount,
        Self::Expired,
        Self::TrimCursor,
        Self::IdleLanes,
        Self::DedupEvicted,
        Self::Kept,
        Self::AheadMarks,
    ];

    /// The key of a value of the whole store.
    pub(crate) fn key(self) -> [u8; 1] {
        [self as u8]
    }

    /// The key of a value of one shard, or the beginning of it.
    pub(crate) fn of(self, shard: Shard) -> Vec<u8> {
        [&[self as u8][..], &self::shard(shard)].concat()
    }

    /// What all values of a stream's shards begin with.
    pub(crate) fn of_stream(self, stream: StreamId) -> Vec<u8> {
        [&[self as u8][..], &self::stream(stream)].concat()
    }
}

/// What all rows of a stream begin with.
pub(crate) fn stream(stream: StreamId) -> [u8; 4] {
    stream.0.to_be_bytes()
}

/// What all rows of a shard begin with.
pub(crate) fn shard(shard: Shard) -> [u8; 8] {
    join(&[&shard.stream.0.to_be_bytes(), &shard.partition.0.to_be_bytes()])
}

/// A row of a shard by number: schedule, urgent, scheduled job, job life.
pub(crate) fn shard_number(shard: Shard, number: u64) -> [u8; 16] {
    join(&[&self::shard(shard), &number.to_be_bytes()])
}

/// All chunks of one stashed result.
pub(crate) fn chunks(shard: Shard, id: EventId, nonce: Nonce) -> [u8; 32] {
    join(&[&shard_number(shard, id.0), &nonce.0.to_be_bytes()])
}

/// One chunk.
pub(crate) fn chunk(shard: Shard, id: EventId, nonce: Nonce, index: u32) -> [u8; 36] {
    join(&[&chunks(shard, id, nonce), &index.to_be_bytes()])
}

/// Event and nonce of a chunk's key.
pub(crate) fn chunk_of(key: &[u8]) -> Result<(EventId, Nonce)> {
    let id = u64::from_be_bytes(at(key, 8)?);
    Ok((EventId(id), Nonce(u128::from_be_bytes(at(key, 16)?))))
}

/// The notes when rows of a table may go.
pub(crate) fn expiry_table(shard: Shard, table: Table) -> [u8; 9] {
    join(&[&self::shard(shard), &[table as u8]])
}

/// The note when a row, whose key begins with its shard, may go.
pub(crate) fn expiry(table: Table, row: &[u8], time: Timestamp) -> Vec<u8> {
    let (shard, rest) = row.split_at(8);
    [shard, &[table as u8], &time.0.to_be_bytes()[..], rest].concat()
}

/// Time and row of such a note.
pub(crate) fn expiry_of(note: &[u8]) -> Result<(Timestamp, Vec<u8>)> {
    let time = Timestamp(u64::from_be_bytes(at(note, 9)?));
    Ok((time, [&note[..8], &note[17..]].concat()))
}

/// The object of a lane.
pub(crate) fn object(shard: Shard, key: &Key) -> Vec<u8> {
    [&self::shard(shard)[..], key.as_ref()].concat()
}

/// A dedup id in the scope of its lane, or of its shard.
pub(crate) fn dedup(shard: Shard, key: Option<&Key>, id: &[u8]) -> Vec<u8> {
    let mut row = Vec::with_capacity(16 + key.map_or(0, |key| key.bytes().len()) + id.len());
    row.extend_from_slice(&self::shard(shard));
    match key {
        None => row.push(0),
        Some(key) => {
            row.push(1);
            push_escaped(&mut row, key.as_ref());
        }
    }
    row.extend_from_slice(id);
    row
}

/// The place of a dedup row in the order in which they go. `row` is what [`dedup`] made.
pub(crate) fn dedup_order(until: Timestamp, row: &[u8]) -> Vec<u8> {
    let (shard, rest) = row.split_at(8);
    [shard, &until.0.to_be_bytes()[..], rest].concat()
}

/// End of life and row of a place in that order.
pub(crate) fn dedup_of(order: &[u8]) -> Result<(Timestamp, Vec<u8>)> {
    let until = Timestamp(u64::from_be_bytes(at(order, 8)?));
    Ok((until, [&order[..8], &order[16..]].concat()))
}

/// Lane and name of a dedup row.
pub(crate) fn dedup_name_of(row: &Bytes) -> Result<(Option<Key>, Bytes)> {
    match at(row, 8)? {
        [0] => Ok((None, row.slice(9..))),
        [1] => {
            let (name, len) = unescape(&row[9..])?;
            Ok((Some(Key::new(name)?), row.slice(9 + len..)))
        }
        _ => Err(Malformed.in_what("dedup row key")),
    }
}

/// The key of a lane that ends the key of its object.
pub(crate) fn object_of(key: &Bytes) -> Result<Key> {
    if key.len() < 8 {
        return Err(Malformed.in_what("row key"));
    }
    Ok(Key::new(key.slice(8..))?)
}

/// The source that a row names.
pub(crate) fn source_of(row: &Bytes) -> Result<Source> {
    match at(row, 8)? {
        [1] => {
            let number = |offset: usize| at(row, offset).map(u32::from_be_bytes);
            let shard = Shard { stream: StreamId(number(9)?), partition: Partition(number(13)?) };
            let processor = ProcessorId(number(17)?);
            Ok(Source::Outbox { shard, processor, incarnation: number(21)?, adoptions: number(25)? })
        }
        [2] => Ok(Source::Named(row.slice(9..))),
        _ => Err(Malformed.in_what("source row key")),
    }
}

/// The token that ends the key of its row.
pub(crate) fn token_of(row: &[u8]) -> Result<TokenId> {
    Ok(TokenId(u128::from_be_bytes(at(row, 12)?)))
}

/// A numbered source.
pub(crate) fn source(shard: Shard, source: &Source) -> Vec<u8> {
    let mut row = self::shard(shard).to_vec();
    match source {
        Source::Outbox { shard, processor, incarnation, adoptions } => {
            row.push(1);
            row.extend_from_slice(&self::shard(*shard));
            row.extend_from_slice(&processor.0.to_be_bytes());
            row.extend_from_slice(&incarnation.to_be_bytes());
            row.extend_from_slice(&adoptions.to_be_bytes());
        }
        Source::Named(name) => {
            row.push(2);
            row.extend_from_slice(name);
        }
    }
    row
}

/// Which of the two clocks decides: part of the keys ordered by due time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockKind {
    Steady,
    Calendar,
}

impl ClockKind {
    /// Both.
    pub(crate) const ALL: [Self; 2] = [Self::Steady, Self::Calendar];
}

fn due_parts(due: Due) -> (ClockKind, u64) {
    match due {
        Due::Steady(due) => (ClockKind::Steady, due.0),
        Due::Calendar(due) => (ClockKind::Calendar, due.0),
    }
}

/// What the places in the schedule of one clock begin with.
pub(crate) fn schedule_clock(shard: Shard, clock: ClockKind) -> [u8; 9] {
    join(&[&self::shard(shard), &[clock as u8]])
}

/// A place in the schedule.
pub(crate) fn schedule_due(shard: Shard, due: Due, ticket: u64) -> [u8; 25] {
    let (clock, moment) = due_parts(due);
    join(&[&schedule_clock(shard, clock), &moment.to_be_bytes(), &ticket.to_be_bytes()])
}

/// Due time and number of a place in the schedule.
pub(crate) fn schedule_of(key: &[u8]) -> Result<(Due, u64)> {
    Ok((due_at(key, 8)?, last_number(key)?))
}

/// What all rows of a seat begin with.
pub(crate) fn seat(seat: Seat) -> [u8; 12] {
    join(&[&shard(seat.shard), &seat.processor.0.to_be_bytes()])
}

/// A row of a seat by number: dead letter, outbox, request.
pub(crate) fn seat_number(seat: Seat, number: u64) -> [u8; 20] {
    join(&[&self::seat(seat), &number.to_be_bytes()])
}

/// The token of a request.
pub(crate) fn token(seat: Seat, token: TokenId) -> [u8; 28] {
    join(&[&self::seat(seat), &token.0.to_be_bytes()])
}

/// What all rows of one life of a seat, or of its states, begin with.
pub(crate) fn life(seat: Seat, life: u32) -> [u8; 16] {
    join(&[&self::seat(seat), &life.to_be_bytes()])
}

/// A row of one life of a seat by event: ending, sided id.
pub(crate) fn life_number(seat: Seat, life: u32, id: EventId) -> [u8; 24] {
    join(&[&self::life(seat, life), &id.0.to_be_bytes()])
}

/// The state of a lane.
pub(crate) fn state(seat: Seat, states_life: u32, key: &Key) -> Vec<u8> {
    [&life(seat, states_life)[..], key.as_ref()].concat()
}

/// The record of a lane; also what the rows of its siding begin with.
pub(crate) fn lane(seat: Seat, life: u32, lane: &LaneName) -> Vec<u8> {
    let mut row = self::life(seat, life).to_vec();
    push_lane(&mut row, lane);
    row
}

/// One id of a lane's siding.
pub(crate) fn siding(seat: Seat, life: u32, lane: &LaneName, id: EventId) -> Vec<u8> {
    let mut row = self::lane(seat, life, lane);
    row.extend_from_slice(&id.0.to_be_bytes());
    row
}

/// What the lanes that one clock frees begin with.
pub(crate) fn lane_clock(seat: Seat, life: u32, clock: ClockKind) -> [u8; 17] {
    join(&[&self::life(seat, life), &[clock as u8]])
}

/// A lane in the order in which time frees them.
pub(crate) fn lane_due(seat: Seat, life: u32, due: Due, lane: &LaneName) -> Vec<u8> {
    let (clock, moment) = due_parts(due);
    let mut row = lane_clock(seat, life, clock).to_vec();
    row.extend_from_slice(&moment.to_be_bytes());
    push_lane(&mut row, lane);
    row
}

/// Due time and name of such a row.
pub(crate) fn lane_due_of(key: &[u8]) -> Result<(Due, LaneName)> {
    Ok((due_at(key, 16)?, lane_name(key, 25)?))
}

/// What the lanes held up in one way begin with.
pub(crate) fn lane_kind(seat: Seat, life: u32, kind: BlockKind) -> [u8; 17] {
    join(&[&self::life(seat, life), &[kind as u8]])
}

/// A lane among those held up in one way.
pub(crate) fn lane_block(seat: Seat, life: u32, kind: BlockKind, lane: &LaneName) -> Vec<u8> {
    let mut row = lane_kind(seat, life, kind).to_vec();
    push_lane(&mut row, lane);
    row
}

/// The name in such a row.
pub(crate) fn lane_block_of(key: &[u8]) -> Result<LaneName> {
    lane_name(key, 17)
}

/// The number that ends a key.
pub(crate) fn last_number(key: &[u8]) -> Result<u64> {
    let number = key.last_chunk().ok_or_else(|| Malformed.in_what("row key"))?;
    Ok(u64::from_be_bytes(*number))
}

/// The key of a lane that ends the key of its state.
pub(crate) fn state_of(key: &Bytes) -> Result<Key> {
    if key.len() < 16 {
        return Err(Malformed.in_what("row key"));
    }
    Ok(Key::new(key.slice(16..))?)
}

fn due_at(key: &[u8], offset: usize) -> Result<Due> {
    let [clock] = at(key, offset)?;
    let moment = u64::from_be_bytes(at(key, offset + 1)?);
    if clock == ClockKind::Steady as u8 {
        Ok(Due::Steady(Steady(moment)))
    } else {
        Ok(Due::Calendar(Timestamp(moment)))
    }
}

fn at<const N: usize>(key: &[u8], offset: usize) -> Result<[u8; N]> {
    let found = key.get(offset..).and_then(|rest| rest.first_chunk::<N>());
    found.copied().ok_or_else(|| Malformed.in_what("row key"))
}

fn join<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut joined = [0; N];
    let mut rest = &mut joined[..];
    for part in parts {
        let (place, after) = rest.split_at_mut(part.len());
        place.copy_from_slice(part);
        rest = after;
    }
    assert!(rest.is_empty(), "parts have the length of the key");
    joined
}

fn push_lane(row: &mut Vec<u8>, lane: &LaneName) {
    match lane {
        LaneName::Key(key) => {
            row.push(1);
            push_escaped(row, key.as_ref());
        }
        LaneName::Event(id) => {
            row.push(2);
            row.extend_from_slice(&id.0.to_be_bytes());
        }
    }
}

/// Zero bytes become `00 ff` and the end is `00 01`: shorter names sort before the longer ones they begin.
fn push_escaped(row: &mut Vec<u8>, name: &[u8]) {
    for byte in name {
        row.push(*byte);
        if *byte == 0 {
            row.push(0xff);
        }
    }
    row.extend_from_slice(&[0, 1]);
}

/// The name at the front of these bytes, and how many of them it takes with its end.
fn unescape(bytes: &[u8]) -> Result<(Vec<u8>, usize)> {
    let malformed = || Malformed.in_what("name in a row key");
    let (mut name, mut at) = (Vec::new(), 0);
    loop {
        match (bytes.get(at).ok_or_else(malformed)?, bytes.get(at + 1)) {
            (0, Some(0xff)) => {
                name.push(0);
                at += 2;
            }
            (0, Some(1)) => return Ok((name, at + 2)),
            (0, _) => return Err(malformed()),
            (byte, _) => {
                name.push(*byte);
                at += 1;
            }
        }
    }
}

fn lane_name(key: &[u8], offset: usize) -> Result<LaneName> {
    let malformed = || Malformed.in_what("lane name in a row key");
    match at(key, offset)? {
        [1] => Ok(LaneName::Key(Key::new(unescape(&key[offset + 1..])?.0)?)),
        [2] => Ok(LaneName::Event(EventId(u64::from_be_bytes(at(key, offset + 1)?)))),
        _ => Err(malformed()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::samples;
    use super::*;

    fn seat_of(shard: Shard) -> Seat {
        Seat { shard, processor: ProcessorId(7) }
    }

    proptest! {
        #[test]
        fn names_sort_as_they_do_and_never_begin_each_other(
            shard in samples::shard(),
            one in samples::lane_name(),
            other in samples::lane_name(),
        ) {
            let seat = seat_of(shard);
            let rows = (lane(seat, 1, &one), lane(seat, 1, &other));
            prop_assert_eq!(rows.0.cmp(&rows.1), one.cmp(&other));
            // Else the siding of one lane would be read with that of the other.
            prop_assert_eq!(rows.0.starts_with(&rows.1), one == other);
        }

        #[test]
        fn keys_give_back_what_they_were_made_of(
            shard in samples::shard(),
            name in samples::lane_name(),
            due in samples::due(),
            key in samples::key(),
            id in samples::id(),
            number: u64,
            nonce: u128,
        ) {
            let seat = seat_of(shard);
            prop_assert_eq!(lane_due_of(&lane_due(seat, 2, due, &name)).unwrap(), (due, name.clone()));
            let row = lane_block(seat, 2, BlockKind::Parked, &name);
            prop_assert_eq!(lane_block_of(&row).unwrap(), name.clone());
            prop_assert_eq!(last_number(&siding(seat, 2, &name, id)).unwrap(), id.0);
            prop_assert_eq!(schedule_of(&schedule_due(shard, due, number)).unwrap(), (due, number));
            prop_assert_eq!(chunk_of(&chunk(shard, id, Nonce(nonce), 3)).unwrap(), (id, Nonce(nonce)));
            prop_assert_eq!(state_of(&state(seat, 1, &key).into()).unwrap(), key.clone());
            let row = dedup(shard, Some(&key), b"once");
            let name = dedup_name_of(&row.clone().into()).unwrap();
            prop_assert_eq!(name, (Some(key.clone()), Bytes::from_static(b"once")));
            let keyless = dedup(shard, None, b"once");
            prop_assert_eq!(dedup_name_of(&keyless.into()).unwrap(), (None, Bytes::from_static(b"once")));
            prop_assert_eq!(object_of(&object(shard, &key).into()).unwrap(), key.clone());
            prop_assert_eq!(token_of(&token(seat, TokenId(nonce))).unwrap(), TokenId(nonce));
            let outbox = Source::Outbox { shard, processor: seat.processor, incarnation: 3, adoptions: 4 };
            for origin in [outbox, Source::Named(key.to_bytes())] {
                prop_assert_eq!(source_of(&source(shard, &origin).into()).unwrap(), origin);
            }
            prop_assert_eq!(dedup_of(&dedup_order(Timestamp(number), &row)).unwrap(), (Timestamp(number), row));
        }

        #[test]
        fn dedup_ids_of_two_lanes_never_meet(
            shard in samples::shard(),
            keys in (samples::key(), samples::key()),
            ids in (samples::bytes(), samples::bytes()),
        ) {
            let one = dedup(shard, Some(&keys.0), &ids.0);
            let other = dedup(shard, Some(&keys.1), &ids.1);
            prop_assert_eq!(one == other, (&keys.0, &ids.0) == (&keys.1, &ids.1));
            prop_assert_ne!(one, dedup(shard, None, &ids.1));
        }

        #[test]
        fn any_bytes_are_read_or_refused(row: Vec<u8>) {
            drop(lane_due_of(&row));
            drop(lane_block_of(&row));
            drop(schedule_of(&row));
            drop(chunk_of(&row));
            drop(dedup_of(&row));
            drop(last_number(&row));
            let row = Bytes::from(row);
            drop(state_of(&row));
            drop(dedup_name_of(&row));
            drop(object_of(&row));
            drop(source_of(&row));
            drop(token_of(&row));
        }
    }

    #[test]
    fn a_place_in_the_schedule_sorts_by_its_clock_then_time_then_number() {
        let shard = Shard { stream: StreamId(1), partition: Partition(0) };
        let steady = |due: u64, ticket: u64| schedule_due(shard, Due::Steady(Steady(due)), ticket);
        assert!(steady(255, 9) < steady(256, 1) && steady(256, 1) < steady(256, 2));
        assert!(steady(u64::MAX, 1) < schedule_due(shard, Due::Calendar(Timestamp(0)), 1));
    }
}
