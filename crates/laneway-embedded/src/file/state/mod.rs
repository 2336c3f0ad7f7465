//! The state of the file store: what is in memory, what waits for the next checkpoint, and what is written into
//! the frame of the group being committed.
//!
//! Read in this order: `records` (what a frame says), `file_state` (everything that is known, and the open group),
//! `apply` (what a record does to it, in work and in replay alike), `rules_view` (how the rules see it: each change is
//! written and applied at once), then the parts: `rows`, `tails`, `contents`, `footer` and `directory` (where in the log
//! events and job ends lie), `archive` (which finds them), `fetched` (what a call read before it took the lock).

mod apply;
mod archive;
mod complete;
mod contents;
mod directory;
mod empty_ranges;
mod fetched;
mod file_state;
mod footer;
mod published;
mod records;
mod resident;
mod rows;
mod rules_view;
mod tails;

pub(crate) use apply::contents_of;
pub(crate) use archive::{Archive, Found, Reach, from_files, in_memory, read_error};
pub(crate) use contents::SegmentContents;
pub(crate) use directory::Directory;
pub(crate) use fetched::{Fetched, Wanted};
pub(crate) use file_state::{FileState, Group};
pub(crate) use footer::{EntryList, Footers, SegmentTable, ShardTable};
pub(crate) use published::{PlainPage, Published};
#[cfg(test)]
pub(crate) use records::Records;
pub(crate) use records::{Record, RecordReader};
pub(crate) use rules_view::Seen;
pub(crate) use tails::{ChangedLanes, FoundTails, Missing, shard_prefix};
