//! Processors: what one is to be, and what it is.

use std::time::Duration;

use laneway::engine::handler::OnFailure;
use laneway::engine::{Batch, ProcessorSettings};
use laneway::{EventId, StartAt};
use laneway_client::wire;

use super::time::{date, date_of, length};
use crate::http::error::{Failure, Result};
use laneway::core::period::text as length_text;

/// What a processor is to be; what is left out has its default.
pub(crate) fn settings_in(asked: &wire::ProcessorSettings) -> Result<ProcessorSettings> {
    let mut settings = ProcessorSettings::default();
    if let Some(concurrency) = asked.concurrency {
        settings.concurrency = concurrency;
    }
    settings.timeout = asked.timeout.as_deref().map(|timeout| length("timeout", timeout)).transpose()?;
    if let Some(retry) = &asked.retry {
        let policy = &mut settings.policy;
        policy.max_attempts = retry.max_attempts.unwrap_or(policy.max_attempts);
        let wait = |field, given: &Option<String>, default: Duration| {
            given.as_deref().map_or(Ok(default), |given| length(field, given))
        };
        policy.backoff = wait("retry.backoff", &retry.backoff, policy.backoff)?;
        policy.backoff_max = wait("retry.backoff_max", &retry.backoff_max, policy.backoff_max)?;
    }
    settings.policy.on_failure = match asked.on_failure {
        None | Some(wire::OnFailure::Park) => OnFailure::Park,
        Some(wire::OnFailure::DeadLetter) => OnFailure::DeadLetter,
        Some(wire::OnFailure::DeadLetterLane) => OnFailure::DeadLetterLane,
        Some(wire::OnFailure::Halt) => OnFailure::Halt,
        Some(wire::OnFailure::Drop) => OnFailure::Drop,
    };
    if asked.batch.is_some() {
        let limit = "absent: each worker says with max_events of its claim how many events it takes";
        return Err(Failure::value("batch", "set", limit));
    }
    settings.types.clone_from(&asked.types);
    (settings.rate, settings.rate_per_key) = (asked.rate, asked.rate_per_key);
    (settings.supersede_running, settings.keep_last) = (asked.supersede_running, asked.keep_last);
    settings.start = asked.start.as_ref().map_or(Ok(StartAt::Beginning), start_in)?;
    Ok(settings)
}

/// Where a processor begins.
pub(crate) fn start_in(start: &wire::Start) -> Result<StartAt> {
    Ok(match start {
        wire::Start::Id(id) => StartAt::Id(EventId(*id)),
        wire::Start::At(word) => match word.as_str() {
            "beginning" => StartAt::Beginning,
            "end" => StartAt::End,
            text => StartAt::Time(date("start", text).map_err(|_| {
                let known = "\"beginning\", \"end\", an id, or a date such as 2026-11-16T18:00:00Z";
                Failure::value("start", format!("{text:?}"), known)
            })?),
        },
    })
}

/// Who runs the events of a processor, as far as the API says it.
pub(crate) enum RunsAt {
    /// Remote workers.
    Workers,
    /// A web endpoint, as it may be shown.
    Endpoint(String),
    /// A handler of a process.
    Process,
}

/// What a processor is, with all defaults.
pub(crate) fn settings_out(
    stream: &str,
    runs: RunsAt,
    settings: &ProcessorSettings,
) -> wire::ProcessorSettings {
    let policy = &settings.policy;
    let (pull, http) = match runs {
        RunsAt::Workers => (true, None),
        RunsAt::Endpoint(url) => (false, Some(url)),
        RunsAt::Process => (false, None),
    };
    wire::ProcessorSettings {
        stream: stream.to_owned(),
        pull,
        http,
        concurrency: Some(settings.concurrency),
        timeout: settings.timeout.map(length_text),
        retry: Some(wire::Retry {
            max_attempts: Some(policy.max_attempts),
            backoff: Some(length_text(policy.backoff)),
            backoff_max: Some(length_text(policy.backoff_max)),
        }),
        on_failure: Some(match policy.on_failure {
            OnFailure::Park => wire::OnFailure::Park,
            OnFailure::DeadLetter => wire::OnFailure::DeadLetter,
            OnFailure::DeadLetterLane => wire::OnFailure::DeadLetterLane,
            OnFailure::Halt => wire::OnFailure::Halt,
            OnFailure::Drop => wire::OnFailure::Drop,
        }),
        batch: match settings.batch {
            Batch::One => None,
            Batch::Lane { max, within } => Some(batch_out(wire::BatchOver::Lane, max, within)),
            Batch::Lanes { max, within } => Some(batch_out(wire::BatchOver::Lanes, max, within)),
        },
        types: settings.types.clone(),
        start: Some(start_out(settings.start)),
        rate: settings.rate,
        rate_per_key: settings.rate_per_key,
        supersede_running: settings.supersede_running,
        keep_last: settings.keep_last,
    }
}

/// The same as text, for people.
pub(crate) fn start_text(start: StartAt) -> String {
    match start_out(start) {
        wire::Start::Id(id) => id.to_string(),
        wire::Start::At(word) => word,
    }
}

fn start_out(start: StartAt) -> wire::Start {
    match start {
        StartAt::Beginning => wire::Start::At("beginning".to_owned()),
        StartAt::End => wire::Start::At("end".to_owned()),
        StartAt::Id(id) => wire::Start::Id(id.0),
        StartAt::Time(at) => wire::Start::At(date_of(at)),
    }
}

fn batch_out(over: wire::BatchOver, max: usize, within: Duration) -> wire::Batch {
    wire::Batch { over, max, within: (!within.is_zero()).then(|| length_text(within)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_back_as_they_were() {
        let json = r#"{"stream":"orders","pull":true,"concurrency":7,"timeout":"30s","retry":{"max_attempts":2,
            "backoff":"100ms","backoff_max":"1m"},"on_failure":"dead_letter_lane","types":["order.*"],"start":17,"rate":100,
            "rate_per_key":5,"supersede_running":true,"keep_last":true}"#;
        let asked: wire::ProcessorSettings = serde_json::from_str(json).unwrap();
        let told = settings_out("orders", RunsAt::Workers, &settings_in(&asked).unwrap());
        assert_eq!(serde_json::to_value(told).unwrap(), serde_json::to_value(asked).unwrap());
    }
}
