//! The words of Laneway as types, and the seams that stores implement.
//!
//! Everything here is plain data, a limit with a name, or a trait; only [`copying`] acts, and only through the
//! seam. Nothing does I/O (the one exception is [`clock::SystemClock`], the only place where real time is read), and
//! nothing serialises: the encodings belong to the stores and to the edge.
//!
//! Reading order: [`ids`] and [`event`] (the nouns), [`store`] (the twelve methods a store offers),
//! [`documents`] and [`wakeups`] (the two small seams beside it), [`error`] (what a caller does next), [`copying`]
//! (from any store to any other).

pub mod adoption;
pub mod clock;
pub mod copying;
pub mod documents;
pub mod durability;
pub mod error;
pub mod event;
pub mod ids;
pub mod job;
pub mod key;
pub mod lane;
pub mod limits;
pub mod period;
pub mod policy;
pub mod status;
pub mod store;
pub mod stream;
pub mod wakeups;
pub mod window;

pub use bytes::Bytes;
pub use clock::{
    CLOCK_SETTLE, Clock, ClockReport, ClockWatch, ManualClock, Steady, SystemClock, Timestamp, WatchMark,
};
pub use documents::{Document, Documents};
pub use durability::{Capabilities, Durability};
pub use error::{Conflict, ConflictReason, FullReason, Refusal, Result, StoreError};
pub use event::{Delay, DelayMode, Draft, Due, Event, Headers, JobDraft, JobMark, Kind, StartAfter};
pub use ids::{
    CommitId, EventId, Fence, Incarnation, Nonce, Partition, ProcessorId, Ref, RunFence, Seat, Seq, Shard,
    StreamId, Term, TokenId,
};
pub use job::{JobId, JobNumber};
pub use key::Key;
pub use lane::{Block, BlockKind, Claim, LaneName, LaneRecord};
pub use policy::OnFailure;
pub use status::{Status, Terminal};
pub use store::Store;
pub use stream::{Mode, ProcessorInfo, ShardInfo, StartAt, StreamInfo, StreamSettings, check_name};
pub use wakeups::{Topic, Wakeups};
pub use window::{Passed, Window};
