//! Tails as the index and the log keep them.

use laneway_core::{EventId, Key, Partition, Result, Seq, Shard, StreamId};

use crate::machine::Tail;
use crate::machine::codec::{Decoder, Encoder, Malformed};

/// Where the tails of a shard begin in the index.
pub(crate) fn shard_prefix(shard: Shard) -> [u8; 8] {
    let mut prefix = [0; 8];
    prefix[..4].copy_from_slice(&shard.stream.0.to_be_bytes());
    prefix[4..].copy_from_slice(&shard.partition.0.to_be_bytes());
    prefix
}

/// The shard that a prefix in the index names.
pub(crate) fn parse_shard(bytes: &[u8]) -> Option<Shard> {
    let (stream, rest) = bytes.split_first_chunk::<4>()?;
    let partition = rest.first_chunk::<4>()?;
    let (stream, partition) = (u32::from_be_bytes(*stream), u32::from_be_bytes(*partition));
    Some(Shard { stream: StreamId(stream), partition: Partition(partition) })
}

/// The key of a lane in the index.
pub(super) fn index_key(shard: Shard, key: &Key) -> Vec<u8> {
    [&shard_prefix(shard), key.bytes()].concat()
}

pub(crate) fn encode(tail: &Tail, out: &mut Vec<u8>) {
    out.u8(1 | u8::from(tail.generation.is_some()) << 1 | u8::from(tail.deleted) << 2);
    out.varint(tail.id.0);
    out.varint(tail.seq.0);
    if let Some(generation) = tail.generation {
        out.varint(generation);
    }
    out.varint(tail.incarnation);
}

pub(super) fn decode(key: &[u8], value: bytes::Bytes) -> Result<Tail> {
    let mut from = Decoder::new(value);
    let tail = decode_parts(&mut from).and_then(|tail| from.finish().map(|()| tail));
    tail.map_err(|malformed| malformed.in_what(format!("tail {}", key.escape_ascii())))
}

/// What [`encode`] wrote.
pub(crate) fn decode_parts(from: &mut Decoder) -> std::result::Result<Tail, Malformed> {
    let flags = from.u8()?;
    if flags & 1 == 0 || flags > 7 {
        return Err(Malformed);
    }
    let (id, seq) = (EventId(from.varint()?), Seq(from.varint()?));
    let generation = if flags & 2 != 0 { Some(from.varint()?) } else { None };
    let incarnation = from.varint()?;
    Ok(Tail { id, seq, generation, incarnation, deleted: flags & 4 != 0 })
}
