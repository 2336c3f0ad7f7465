//! Calls user code: behind a panic fence, with a deadline, and with a grace once it was asked to stop.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt;

use super::cancel::CancelToken;
use super::types::{Handler, LaneAnswer, Retry, Run, TIMED_OUT};
use crate::service::{Env, panic_words};

/// How long a run that was asked to stop may take to answer before it is dropped.
pub(crate) const STOP_GRACE: Duration = Duration::from_secs(5);

/// Runs a handler to its end, whatever that is. Gives one answer per lane of the run.
pub(crate) async fn call(
    env: &Env,
    handler: &dyn Handler,
    run: Run,
    timeout: Option<Duration>,
) -> Vec<LaneAnswer> {
    let lanes = run.lanes.len();
    // Whoever ran alone is the one that failed.
    let is_one = lanes == 1 && run.lanes[0].events.len() == 1;
    let retry = if is_one { Retry::ByPolicy } else { Retry::Alone };
    let cancel = run.cancel.clone();
    let grace = handler.grace();
    let failed = |error: String| vec![LaneAnswer::failed(error, retry); lanes];
    let mut called = match catch_unwind(AssertUnwindSafe(|| handler.call(run))) {
        Ok(running) => AssertUnwindSafe(running).catch_unwind(),
        Err(panic) => return failed(panic_words(&*panic)),
    };
    // Most handlers that wait for nothing end here, without timers and wishes to stop being set up for them.
    if let Poll::Ready(answers) = futures::poll!(&mut called) {
        return fit(answers.unwrap_or_else(|panic| failed(panic_words(&*panic))), lanes);
    }
    // In a box of its own: what is seldom needed must not make every run large.
    let ended = Box::pin(until_ended(env, called, &cancel, timeout, grace)).await;
    fit(ended.unwrap_or_else(failed), lanes)
}

/// Waits for a handler; an error says why it did not come to its own end.
async fn until_ended(
    env: &Env,
    called: impl Future<Output = std::thread::Result<Vec<LaneAnswer>>>,
    cancel: &CancelToken,
    timeout: Option<Duration>,
    grace: Duration,
) -> Result<Vec<LaneAnswer>, String> {
    let stopped = async {
        cancel.cancelled().await;
        env.sleep(STOP_GRACE.max(grace)).await;
    };
    let timed_out = async {
        match timeout {
            Some(timeout) => env.sleep(timeout + grace).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        answers = called => answers.map_err(|panic| panic_words(&*panic)),
        () = stopped => Err("stopped on request".to_owned()),
        () = timed_out => Err(format!("{TIMED_OUT}{:?}", timeout.unwrap_or_default())),
    }
}

/// One answer per lane, whatever the handler gave: an answer too few is a failure, one too many is ignored.
fn fit(mut answers: Vec<LaneAnswer>, lanes: usize) -> Vec<LaneAnswer> {
    let missing = || LaneAnswer::failed("the handler gave no answer for this lane", Retry::ByPolicy);
    answers.resize_with(lanes, missing);
    answers
}
