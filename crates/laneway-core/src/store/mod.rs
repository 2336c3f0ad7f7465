//! The store seam: nine atomic transitions and three reads.
//!
//! One file per method holds what it takes and gives; `seam` holds the trait. The shard is the only unit of
//! atomicity. Rows of a seat have one writer, the holder of its fence; everybody else files requests.
//!
//! What differs from the first sketch of the contract, and why, is in `docs/design/store-seam.md`; the rules that
//! comments cite by number are in `docs/design/rules.md`.

mod append;
mod check;
mod commit;
mod copied;
mod define;
mod held;
mod import;
pub(crate) mod import_bytes;
mod jobs;
mod lanes;
mod promote;
mod query;
mod read;
mod request;
mod seam;
mod seize;
mod stash;
mod trim;

pub use append::{Append, Appended, ObjectWrite, Origin, Receipt, Source};
pub use commit::{
    Answered, Commit, Committed, DeadLetter, Emit, Ending, JobEnd, JobResult, LaneChange, Reset, StateWrite,
};
pub use copied::{
    DedupName, DedupRow, EndRow, ObjectRow, SourceRow, StoreView, TicketRow, Ticketed, TokenRow,
};
pub use define::{Define, Defined};
pub use held::{Held, HeldBy};
pub use import::{IMPORTING, Import};
pub use jobs::{JobState, JobView, Jobs};
pub use lanes::{LaneSelect, LaneView, Lanes, Versioned};
pub use promote::{Promote, Promoted};
pub use query::{
    Counts, EndedPage, LaneTail, OutboxRow, Query, RequestRow, Rows, ScheduledRow, SeatView, TailView,
};
pub use read::{Entry, Page, Read, ReadFrom};
pub use request::{Accepted, RedriveTo, Request, RequestOp};
pub use seam::{About, Store};
pub use seize::{Owner, Progress, Resume, SeatStatus, Seize};
pub use stash::Stash;
pub use trim::{Trim, Trimmed};
