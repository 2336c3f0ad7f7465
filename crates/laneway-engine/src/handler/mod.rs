//! Handlers: a turn becomes an answer, and the policy decides what a failure means.
//!
//! `types` is what user code sees, `policy` decides, `call` runs user code behind its deadline and panic fence,
//! `workers` lets many short runs share a task.

mod call;
mod cancel;
mod policy;
mod progress;
mod pull;
mod types;
mod workers;

pub(crate) use call::call;
pub use cancel::CancelToken;
pub(crate) use cancel::Canceller;
pub(crate) use policy::Decision;
pub use policy::{OnFailure, Policy};
pub use progress::Progress;
pub use pull::{Claim, ClaimLost, ClaimWish, Desk};
pub use types::{
    Done, Emission, Failure, Handler, LaneAnswer, LaneRun, LastDone, Retry, Run, Running, StateChange,
    WhenDurable,
};
pub(crate) use workers::{Carrying, Workers};
