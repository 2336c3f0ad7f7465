//! A command for what was claimed over HTTP: the same as a handler of the server, from another machine.

use std::future::Future;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use laneway::engine::handler::{LaneAnswer, Retry};
use laneway_client::wire::{Claim, Outcome, Settlement};
use serde_json::value::RawValue;

use super::exec::{Exec, NoProgram};
use super::facts::Facts;
use super::pipe::Pipe;

/// A command, in one of its two modes.
pub(crate) enum Command {
    /// A process per event.
    Exec(Exec),
    /// A process that is kept.
    Pipe(Pipe),
}

impl Command {
    /// A process per event. How long it may take is the processor's to say: who takes longer loses the claim.
    pub(crate) fn exec(command: Vec<String>) -> Result<Self, NoProgram> {
        Ok(Self::Exec(Exec::new(command, None)?))
    }

    /// A process that is kept.
    pub(crate) fn pipe(command: Vec<String>) -> Result<Self, NoProgram> {
        Ok(Self::Pipe(Pipe::new(command, None)?))
    }

    /// Runs what was claimed. When it is cancelled, its processes are ended first.
    pub(crate) async fn run(&self, claim: &Claim, cancelled: impl Future<Output = ()>) -> Settlement {
        match self {
            Self::Pipe(pipe) => match pipe.settle(claim, cancelled).await {
                Ok(settlement) => settlement,
                Err(words) => failed(&claim.claim, Outcome::Retry, words),
            },
            Self::Exec(exec) => match (Facts::of_claim(claim), data(claim)) {
                (Ok(facts), Ok(data)) => said(&claim.claim, exec.run(&facts, data, cancelled).await),
                (Err(wrong), _) | (_, Err(wrong)) => failed(&claim.claim, Outcome::Fail, wrong),
            },
        }
    }
}

/// The bytes of the event as they were sent.
fn data(claim: &Claim) -> Result<Bytes, String> {
    let event = claim.events.first().ok_or("the claim has no event")?;
    match (&event.data, &event.data_b64) {
        (Some(data), _) => Ok(Bytes::copy_from_slice(data.get().as_bytes())),
        (None, Some(coded)) => {
            let data = STANDARD.decode(coded).map_err(|error| format!("data_b64: {error}"))?;
            Ok(Bytes::from(data))
        }
        (None, None) => Ok(Bytes::new()),
    }
}

/// What a run without states and emits says, as a settlement.
fn said(claim: &str, answer: LaneAnswer) -> Settlement {
    if let Some(failure) = answer.failure {
        let outcome = if failure.retry == Retry::Never { Outcome::Fail } else { Outcome::Retry };
        return failed(claim, outcome, failure.error);
    }
    let result = answer.done.into_iter().next().and_then(|done| done.result);
    let result = result.map(|result| RawValue::from_string(String::from_utf8_lossy(&result).into_owned()));
    match result.transpose() {
        Ok(result) => Settlement { result, error: None, ..failed(claim, Outcome::Done, String::new()) },
        Err(error) => failed(claim, Outcome::Fail, format!("its result is no JSON: {error}")),
    }
}

/// Nothing is done.
pub(crate) fn failed(claim: &str, outcome: Outcome, error: String) -> Settlement {
    Settlement {
        claim: claim.to_owned(),
        outcome,
        through: None,
        result: None,
        state: None,
        emit: Vec::new(),
        error: Some(error),
        retry_after: None,
    }
}
