//! Handlers: a turn becomes an answer, and the policy decides what a failure means.
//!
//! `types` is what user code sees, `policy` decides, `call` runs user code behind its deadline and panic fence,
//! `workers` lets many short runs share a task.

mod answer_bytes;
mod call;
mod cancel;
mod policy;
mod progress;
mod pull;
mod token;
mod types;
mod workers;

pub(crate) use answer_bytes::{check_carried, decode as decode_answer, encode as encode_answer};
pub(crate) use call::call;
pub use cancel::CancelToken;
pub(crate) use cancel::Canceller;
pub(crate) use policy::{Decision, said_by};
pub use policy::{OnFailure, Policy};
pub use progress::Progress;
pub(crate) use pull::Demand;
pub use pull::{Claim, ClaimError, ClaimWish, Desk, Outcome, Settlement};
pub use token::ClaimToken;
pub use types::{
    Done, Emission, Failure, Handler, LaneAnswer, LaneRun, LastDone, Retry, Run, Running, StateChange,
    WhenDurable,
};
pub(crate) use workers::{Carrying, Workers};
