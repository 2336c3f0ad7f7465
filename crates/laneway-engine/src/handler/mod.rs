//! Handlers: a turn becomes an answer, and the policy decides what a failure means.
//!
//! `types` is what user code sees, `policy` decides, `call` runs user code behind its deadline and panic fence,
//! `workers` lets many short runs share a task, `desk` lets remote workers do them.

mod answer_bytes;
mod call;
mod cancel;
mod desk;
mod policy;
mod progress;
mod token;
mod types;

pub(crate) use answer_bytes::{check_carried, decode as decode_answer, encode as encode_answer};
pub(crate) use call::call;
pub use cancel::CancelToken;
pub(crate) use cancel::Canceller;
pub(crate) use desk::Demand;
pub use desk::{Claim, ClaimError, ClaimWish, Desk, Outcome, Settlement};
pub(crate) use policy::{Decision, said_by};
pub use policy::{OnFailure, Policy};
pub use progress::Progress;
pub use token::ClaimToken;
pub(crate) use types::PANICKED;
pub use types::{
    Done, Emission, Failure, Handler, LaneAnswer, LaneRun, LastDone, Retry, Run, Running, StateChange,
    WhenDurable,
};

pub use crate::service::panic_words;
