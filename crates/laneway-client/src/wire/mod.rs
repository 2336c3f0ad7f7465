//! What goes over the wire, one file per noun.
//!
//! What is left out has its default, and what is not known is refused: so everything that is sent can be written as JSON
//! first and read into its type.
//!
//! ```
//! use laneway_client::wire::{ProcessorSettings, Settle};
//!
//! let charge: ProcessorSettings =
//!     serde_json::from_str(r#"{"stream":"orders","pull":true,"retry":{"max_attempts":3},"on_failure":"dead_letter"}"#)?;
//! assert_eq!(charge.retry.and_then(|retry| retry.max_attempts), Some(3));
//! let settle: Settle = serde_json::from_str(r#"{"settlements":[{"claim":"c1","outcome":"done","result":{"paid":true}}]}"#)?;
//! assert_eq!(settle.settlements[0].result.as_ref().map(|result| result.get()), Some(r#"{"paid":true}"#));
//! assert!(serde_json::from_str::<Settle>(r#"{"setlements":[]}"#).is_err());
//! # Ok::<(), serde_json::Error>(())
//! ```

mod claim;
mod cloud_event;
mod cluster;
mod dead;
mod event;
mod health;
mod job;
mod lane;
mod payload;
mod problem;
mod processor;
mod schedule;
mod store;
mod stream;

pub use claim::{
    Claim, ClaimRequest, ClaimedEvent, Claims, Emission, Extend, ExtendedClaim, ExtendedClaims, LastDone,
    Outcome, Settle, SettleAnswer, SettleAnswers, Settled, Settlement,
};
pub use cloud_event::CloudEvent;
pub use cluster::{BreakLease, DrainedNode, Lease, Leases, NodeView, Nodes, Task, Tasks};
pub use dead::{DeadAnswer, DeadAnswers, DeadFilter, DeadLetter, DeadLetters, DeadRequest, RedriveTo};
pub use event::{
    Appended, AppendedAs, DelayMode, Event, EventDraft, EventPage, EventReceipt, EventStatus, EventsBody,
    JobDraft, JobsBody, LineReceipt,
};
pub use health::Readiness;
pub use job::{
    BatchedJob, CancelledJob, CancelledJobs, Job, JobFilter, JobReceipt, JobReceipts, Jobs, JobsAccepted,
    JobsNamed, NamedJob, NamedJobs,
};
pub use lane::{
    Count, Lane, LaneAnswer, LaneFilter, LaneProcessor, LaneRequest, LaneStatus, Lanes, ListedLane, Why,
};
pub use payload::{Json, json};
pub use problem::Problem;
pub use processor::{
    Batch, BatchOver, OnFailure, Processor, ProcessorSettings, Processors, Reset, ResetEmit, ResetState,
    Retry, Start, Stopped,
};
pub use schedule::{CatchUp, Overlap, Schedule, ScheduleRun, ScheduleSettings, Schedules};
pub use store::{Backup, BackupRequest};
pub use stream::{Mode, PartitionHead, Stream, StreamProcessor, StreamSettings, Streams};
