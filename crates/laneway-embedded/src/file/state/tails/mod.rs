//! Tails: the end of every lane ever seen, of which only some are in memory.
//!
//! Lanes that are wanted often stay in memory (`lanes`); below them lies the index. Cold tails are looked up before the
//! state's lock is taken ([`Tails::missing`], [`Tails::warm`]); under it they are found in memory with one look.
//!
//! A checkpoint takes the list of changed lanes in one step and reads their tails afterwards, a few at a time,
//! while work goes on. So a tail in the index may be newer than the checkpoint's place in the log, though never
//! newer than what is durable: replay from that place sets it again, to the same or a later one.
//!
//! A lane that changed stays in memory until a checkpoint has written it.

mod all;
mod lanes;
mod stored;
#[cfg(test)]
mod tests;

pub(crate) use all::{ChangedLanes, FoundTails, Missing, Tails};
pub(crate) use stored::shard_prefix;
pub(super) use stored::{decode_parts, encode, parse_shard};
