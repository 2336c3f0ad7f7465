//! Calls user code: behind a panic fence, with a deadline, and with a grace once it was asked to stop.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use laneway_core::Timestamp;

use super::types::{Handler, LaneAnswer, Retry, Run};
use crate::service::Env;

/// How long a run that was asked to stop may take to answer before it is dropped.
pub(crate) const STOP_GRACE: Duration = Duration::from_secs(5);

/// What came of a call.
#[derive(Debug)]
pub(crate) struct Called {
    /// One answer per lane of the run.
    pub(crate) answers: Vec<LaneAnswer>,
    pub(crate) started_at: Timestamp,
}

/// Runs a handler to its end, whatever that is.
pub(crate) async fn call(env: Env, handler: Arc<dyn Handler>, run: Run, timeout: Option<Duration>) -> Called {
    let started_at = env.now().calendar;
    let lanes = run.lanes.len();
    let cancel = run.cancel.clone();
    let failed = |error: String| vec![LaneAnswer::failed(error, Retry::ByPolicy); lanes];
    let called = match catch_unwind(AssertUnwindSafe(|| handler.call(run))) {
        Ok(running) => AssertUnwindSafe(running).catch_unwind(),
        Err(panic) => {
            return Called { answers: failed(panic_words(&*panic)), started_at };
        }
    };
    let stopped = async {
        cancel.cancelled().await;
        env.sleep(STOP_GRACE).await;
    };
    let timed_out = async {
        match timeout {
            Some(timeout) => env.sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    let answers = tokio::select! {
        biased;
        answers = called => answers.unwrap_or_else(|panic| failed(panic_words(&*panic))),
        () = stopped => failed("stopped on request".to_owned()),
        () = timed_out => failed(format!("timed out after {:?}", timeout.unwrap_or_default())),
    };
    Called { answers: fit(answers, lanes), started_at }
}

/// One answer per lane, whatever the handler gave: an answer too few is a failure, one too many is ignored.
fn fit(mut answers: Vec<LaneAnswer>, lanes: usize) -> Vec<LaneAnswer> {
    let missing = || LaneAnswer::failed("the handler gave no answer for this lane", Retry::ByPolicy);
    answers.resize_with(lanes, missing);
    answers
}

fn panic_words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("no message"))
}
