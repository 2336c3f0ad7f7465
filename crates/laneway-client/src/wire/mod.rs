//! What goes over the wire, one file per noun.

mod claim;
mod dead;
mod event;
mod job;
mod lane;
mod payload;
mod problem;
mod processor;
mod stream;

pub use claim::{
    Claim, ClaimRequest, ClaimedEvent, Claims, Emission, Extend, ExtendedClaim, ExtendedClaims, Outcome,
    Settle, SettleAnswer, SettleAnswers, Settled, Settlement,
};
pub use dead::{DeadAnswer, DeadAnswers, DeadFilter, DeadLetter, DeadLetters, DeadRequest, RedriveTo};
pub use event::{
    Appended, AppendedAs, DelayMode, Event, EventDraft, EventPage, EventReceipt, EventStatus, JobDraft,
};
pub use job::{BatchedJob, Job, JobReceipt, JobReceipts};
pub use lane::{Count, Lane, LaneProcessor, LaneRequest, Why};
pub use payload::{Json, json};
pub use problem::Problem;
pub use processor::{
    Batch, BatchOver, OnFailure, Processor, ProcessorSettings, Processors, Reset, Retry, Start, Stopped,
};
pub use stream::{Mode, PartitionHead, Stream, StreamProcessor, StreamSettings, Streams};
