//! Streams, shards and seats in the index: few, so each is one value, written when it changed.

use bytes::Bytes;
use laneway_core::{ProcessorId, Result, Seat, Shard, ShardInfo, StoreError, StreamId, StreamInfo};

use super::tails::{parse_shard, shard_prefix};
use crate::machine::SeatState;
use crate::machine::codec::Stored;

/// One resident value.
pub(crate) enum Resident {
    Stream(StreamInfo),
    Shard(Shard, ShardInfo),
    Seat(Seat, SeatState),
}

pub(crate) fn stream_key(stream: StreamId) -> Vec<u8> {
    [&[1], &stream.0.to_be_bytes()[..]].concat()
}

pub(crate) fn shard_key(shard: Shard) -> Vec<u8> {
    [&[2], &shard_prefix(shard)[..]].concat()
}

pub(crate) fn seat_key(seat: Seat) -> Vec<u8> {
    [&[3], &shard_prefix(seat.shard)[..], &seat.processor.0.to_be_bytes()].concat()
}

/// A value under its key, as the index has it.
pub(crate) fn decode(key: &[u8], value: Bytes) -> Result<Resident> {
    let damaged =
        || StoreError::Corrupt { what: format!("index.redb: resident record {}", key.escape_ascii()) };
    let (kind, rest) = key.split_first().ok_or_else(damaged)?;
    match kind {
        1 => StreamInfo::from_row(value).map(Resident::Stream),
        2 => Ok(Resident::Shard(parse_shard(rest).ok_or_else(damaged)?, ShardInfo::from_row(value)?)),
        3 => {
            let shard = parse_shard(rest).ok_or_else(damaged)?;
            let processor = rest.get(8..12).and_then(|bytes| bytes.try_into().ok()).ok_or_else(damaged)?;
            let seat = Seat { shard, processor: ProcessorId(u32::from_be_bytes(processor)) };
            Ok(Resident::Seat(seat, SeatState::from_row(value)?))
        }
        _ => Err(damaged()),
    }
}
