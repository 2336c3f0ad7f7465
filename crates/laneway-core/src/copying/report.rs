//! What a copy did, for people.

use std::fmt;

/// How much was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyReport {
    /// Streams.
    pub streams: u64,
    /// Shards of these streams.
    pub shards: u64,
    /// Processors of these streams.
    pub processors: u64,
    /// Events.
    pub events: u64,
    /// Ends of jobs.
    pub jobs: u64,
    /// Everything else: lane ends, objects, drafts, lane records, states, dead letters, emits, requests and names.
    pub rows: u64,
    /// Bytes of all this, about.
    pub bytes: u64,
}

impl fmt::Display for CopyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { streams, shards, processors, events, jobs, rows, bytes } = self;
        write!(
            f,
            "copied {events} events, {jobs} job ends and {rows} other rows of {streams} streams ({shards} shards, \
             {processors} processors), about {} KiB",
            bytes / 1024
        )
    }
}
