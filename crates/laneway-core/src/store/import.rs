//! Import: pieces of another store, taken over as they were.
//!
//! The only transition that does not give numbers but takes them. It works on shards that nobody has used: a
//! stream is created by its import, its shards take pieces in any number of calls, and each is opened to everybody
//! by its `Finish`. Until then appends, seizures, promotions, requests and trims are refused.

use super::query::Rows;
use crate::ids::{Incarnation, ProcessorId, Seat, Shard, StreamId};
use crate::lane::LaneRecord;
use crate::stream::{ShardInfo, StreamInfo};

/// Incarnation of a shard whose import has not finished: no store has it, so nobody can write there.
pub const IMPORTING: Incarnation = Incarnation(u128::MAX);

/// A piece of another store.
///
/// Atomic: each call. Repeat: yes, with the same effect as once. Refuses: `Refused` for a stream whose number was
/// given before, for a shard that is not being imported, and for pieces that do not fit to what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Import {
    /// Creates a stream under its number, version and layout, with its processors under theirs. The stream and
    /// processor numbers must be above all that were ever given here, because they are part of job ids and of
    /// the names of sources.
    Stream(StreamInfo),
    /// Rows of a shard as its queries answer them. [`Rows::Seats`] comes first and only there seats get their
    /// progress, without an owner; events come in order, without a hole; [`Rows::Tails`] holds lanes whose last
    /// event is trimmed, because the other tails follow from the events; of [`Rows::Counts`] only `expired` counts.
    Shard(Shard, Rows),
    /// Rows of a seat as its queries answer them.
    Seat(Seat, Rows),
    /// Lane records of a seat. Their sidings come as [`Rows::Sided`].
    Lanes(Seat, Vec<LaneRecord>),
    /// Numbers up to these are never given: streams and processors had them that were removed.
    Numbers(StreamId, ProcessorId),
    /// Opens a shard. Its incarnation is the store's, or another one if it must be adopted first; its head must be
    /// what its events reached.
    Finish(Shard, ShardInfo),
}
