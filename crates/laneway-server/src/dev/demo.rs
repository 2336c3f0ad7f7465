//! The handler that is built in: slow enough to watch, and with one key that fails.

use std::time::Duration;

use bytes::Bytes;
use laneway::core::Ref;
use laneway::engine::handler::{Handler, LaneAnswer, LaneRun, Policy, Retry, Run, Running};

use crate::seam;

/// How long it takes per event.
const TAKES: Duration = Duration::from_millis(300);
/// The key that fails.
const BAD: &[u8] = b"bad";
const ATTEMPTS: u32 = 3;

/// Attempts that are over soon, so that what becomes of a failing event can be watched.
pub(crate) fn policy() -> Policy {
    Policy {
        max_attempts: ATTEMPTS,
        backoff: Duration::from_millis(400),
        backoff_max: Duration::from_secs(2),
        ..Policy::default()
    }
}

/// Answers what it was given, after a while.
#[derive(Debug)]
pub(crate) struct Demo;

impl Handler for Demo {
    fn call(&self, run: Run) -> Running {
        Box::pin(async move {
            seam::pass(TAKES).await;
            let answers = run.lanes.iter().map(|lane| answer(&run, lane));
            answers.collect()
        })
    }
}

fn answer(run: &Run, lane: &LaneRun) -> LaneAnswer {
    let event = &lane.events[0];
    if event.key.as_ref().is_some_and(|key| key.as_ref() == BAD) {
        let words = format!("the demo fails on key \"bad\", attempt {} of {ATTEMPTS}", lane.attempt);
        return LaneAnswer::failed(words, Retry::ByPolicy);
    }
    let reference = Ref { stream: run.stream.to_string(), partition: run.partition, id: event.id };
    let mut result =
        format!("{{\"handled\":\"{reference}\",\"attempt\":{},\"data\":", lane.attempt).into_bytes();
    // JSON as it was sent; a program with Laneway inside could have stored something else.
    let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(&event.data).is_ok();
    result.extend_from_slice(if is_json { &event.data } else { b"null" });
    result.push(b'}');
    LaneAnswer::done(Some(Bytes::from(result)))
}
