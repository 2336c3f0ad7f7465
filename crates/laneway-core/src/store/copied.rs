//! Rows that only copies and checks read: what a store keeps for itself and answers to no ordinary caller.

use bytes::Bytes;

use super::append::{Receipt, Source};
use super::commit::JobEnd;
use crate::clock::{Steady, Timestamp};
use crate::ids::{EventId, ProcessorId, StreamId, Term, TokenId};
use crate::key::Key;

/// Clocks and counters of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreView {
    /// Its calendar clock.
    pub calendar: Timestamp,
    /// Its steady clock, which no other store shares: due times by it are moved when they are copied.
    pub steady: Steady,
    /// Last stream number given, also to a stream that was removed.
    pub streams: StreamId,
    /// Last processor number given, also to a processor that was removed.
    pub processors: ProcessorId,
}

/// An object of a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRow {
    /// Its lane.
    pub key: Key,
    /// How often it was changed.
    pub version: u64,
    /// Its value; `None` once it was removed.
    pub value: Option<Bytes>,
}

/// The name of a remembered draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DedupName {
    /// Its lane; `None` means the whole shard.
    pub key: Option<Key>,
    /// The producer's name for it.
    pub id: Bytes,
}

/// A remembered draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DedupRow {
    /// Its name.
    pub name: DedupName,
    /// What its producer was answered.
    pub receipt: Receipt,
    /// Hash of its body.
    pub body: u128,
    /// Until when it is remembered.
    pub until: Timestamp,
    /// Its event, once there is one.
    pub event: Option<EventId>,
}

/// What was seen of a numbered source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRow {
    /// The source.
    pub source: Source,
    /// Its newest term.
    pub term: Term,
    /// Its highest number.
    pub number: u64,
}

/// A job that was scheduled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketRow {
    /// Its number in the schedule.
    pub ticket: u64,
    /// When it was accepted, if the store has kept that: its id has it too. Told of jobs that ended without joining their
    /// lane; of the others their event tells it.
    pub accepted_at: Option<Timestamp>,
    /// What became of it.
    pub became: Ticketed,
}

/// What became of a scheduled job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ticketed {
    /// It joined its lane as this event.
    Joined(EventId),
    /// It ended without.
    Ended(Box<EndRow>),
}

/// An ended job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndRow {
    /// How it ended.
    pub end: JobEnd,
    /// Until when that can be read.
    pub keep_until: Timestamp,
}

/// A request token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRow {
    /// The token.
    pub token: TokenId,
    /// Number of its request.
    pub number: u64,
    /// Until when it is remembered; no end while the request had no effect.
    pub until: Option<Timestamp>,
    /// What its owner said when it had its effect; empty when it said nothing.
    pub answer: Bytes,
}
