//! The state of the file store: what is in memory, what waits for the next checkpoint, and what is written into
//! the frame of the group being committed.
//!
//! Read in this order: `records` (what a frame says), `file_state` (everything that is known, and the open group),
//! `apply` (what a record does to it, in work and in replay alike), `rules_view` (how the rules see it: each change is
//! written and applied at once), then the parts: `rows`, `tails`, `contents` (where in the log events and job ends
//! lie).

mod apply;
mod complete;
mod contents;
mod file_state;
mod find;
mod footer;
mod published;
mod records;
mod resident;
mod rows;
mod rules_view;
mod tails;

pub(crate) use apply::contents_of;
pub(crate) use contents::{Contents, SegmentContents, Summary};
pub(crate) use file_state::{FileState, Group};
pub(crate) use find::{FAR_IDS, Walk, events_from, job_marks, read_error, resolve};
pub(crate) use footer::Footers;
pub(crate) use published::{PlainPage, Published};
#[cfg(test)]
pub(crate) use records::Records;
pub(crate) use records::{Record, RecordReader};
pub(crate) use tails::TailKey;
