//! Definitions: streams, processors, and what changes a shard as a whole.

use bytes::Bytes;

use super::import::Import;
use crate::ids::{Incarnation, ProcessorId, Shard, StreamId};
use crate::stream::{StartAt, StreamInfo, StreamSettings};

/// A change of the catalogue or of a shard as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Define {
    /// Creates a stream (`expect: None`) or changes its settings. The partition count and mode never change here.
    Stream {
        /// Its name: letters, digits, `.`, `_` and `-`.
        name: String,
        /// Version it must have now.
        expect: Option<u64>,
        /// What it is to be.
        settings: StreamSettings,
    },
    /// Removes a stream with everything in it.
    RemoveStream {
        /// Which.
        stream: StreamId,
        /// Version it must have now.
        expect: u64,
    },
    /// Registers a processor, or changes its settings if it is registered on this stream already.
    Processor {
        /// The stream it processes.
        stream: StreamId,
        /// Its name, unique in the store.
        name: String,
        /// Where a new one begins.
        start: StartAt,
        /// Policy and handler as the engine wrote them.
        settings: Bytes,
    },
    /// Removes a processor with its progress, lane records, states and dead letters.
    RemoveProcessor {
        /// Which.
        processor: ProcessorId,
    },
    /// Refuses appends to this shard from now on, because its keys move; raises the layout (contract 1.3).
    Seal {
        /// Which.
        shard: Shard,
    },
    /// Takes over a shard that another life of the store wrote last (contract 1.4).
    Adopt {
        /// Which.
        shard: Shard,
        /// Incarnation that was found stored; adopts only if it still is.
        stored: Incarnation,
    },
    /// Takes over a piece of another store as it was, ids and all.
    Import(Import),
}

/// What is defined now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defined {
    /// The stream after the change; `None` after its removal.
    pub stream: Option<StreamInfo>,
}
