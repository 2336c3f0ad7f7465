//! What goes over the wire, one file per noun.

mod claim;
mod event;
mod job;
mod lane;
mod payload;
mod problem;
mod processor;
mod stream;

pub use claim::{
    Claim, ClaimRequest, ClaimedEvent, Claims, Emission, Extend, ExtendedClaim, ExtendedClaims, Outcome,
    Settle, SettleAnswer, SettleAnswers, Settlement,
};
pub use event::{
    Appended, AppendedAs, DelayMode, Event, EventDraft, EventPage, EventReceipt, EventStatus, JobDraft,
};
pub use job::{BatchedJob, Job, JobReceipt, JobReceipts};
pub use lane::{Count, Lane, LaneProcessor, LaneRequest, Why};
pub use payload::{Json, json};
pub use problem::Problem;
pub use processor::{Batch, BatchOver, OnFailure, Processor, ProcessorSettings, Processors, Retry, Start};
pub use stream::{Mode, PartitionHead, Stream, StreamProcessor, StreamSettings, Streams};
