//! What a worker answers.

use bytes::Bytes;
use laneway::EventId;
use laneway::core::limits::RETRY_AFTER_MAX;
use laneway::core::{Draft, Headers, Kind, Refusal};
use laneway::engine::handler::{Done, Emission, Failure as RunFailure, LaneAnswer, Retry, StateChange};
use laneway_client::wire::{Outcome, Settlement};

use super::key::key;
use super::time::length;
use crate::http::error::{Failure, Result};

/// What became of the events of a claim, which are these, in order.
pub(crate) fn answer(settlement: &Settlement, events: &[EventId]) -> Result<LaneAnswer> {
    let done = done_count(settlement, events)?;
    let failure = match settlement.outcome {
        Outcome::Done => {
            for (field, is_set) in
                [("error", settlement.error.is_some()), ("retry_after", settlement.retry_after.is_some())]
            {
                if is_set {
                    return Err(Failure::value(field, "set", "absent when the outcome is done"));
                }
            }
            None
        }
        Outcome::Retry => {
            let after =
                settlement.retry_after.as_deref().map(|after| length("retry_after", after)).transpose()?;
            if let Some(after) = after {
                Refusal::check_longest("retry_after", after, RETRY_AFTER_MAX)?;
            }
            Some(after.map_or(Retry::ByPolicy, Retry::After))
        }
        Outcome::Fail if settlement.retry_after.is_some() => {
            return Err(Failure::value("retry_after", "set", "absent when the outcome is fail"));
        }
        Outcome::Fail => Some(Retry::Never),
    };
    if done == 0 {
        for (field, is_set) in [
            ("result", settlement.result.is_some()),
            ("state", settlement.state.is_some()),
            ("emit", !settlement.emit.is_empty()),
        ] {
            if is_set {
                return Err(Failure::value(field, "set", "absent unless at least one event is done"));
            }
        }
    }
    let error = settlement.error.clone().unwrap_or_else(|| "the worker gave no reason".to_owned());
    let mut dones = vec![Done::default(); done];
    if let Some(last) = dones.last_mut() {
        last.result =
            settlement.result.as_ref().map(|result| Bytes::copy_from_slice(result.get().as_bytes()));
        last.emits = settlement.emit.iter().map(emission).collect::<Result<_>>()?;
    }
    Ok(LaneAnswer {
        done: dones,
        state: match settlement.state.as_ref().map(|state| state.get()) {
            None => StateChange::Keep,
            Some("null") => StateChange::Remove,
            Some(state) => StateChange::Set(Bytes::copy_from_slice(state.as_bytes())),
        },
        failure: failure.map(|retry| RunFailure { error, retry }),
        ..LaneAnswer::default()
    })
}

/// Refuses emits to streams that only Laneway itself writes.
pub(crate) fn own_streams(answer: LaneAnswer) -> Result<LaneAnswer> {
    for emission in answer.done.iter().flat_map(|done| &done.emits) {
        Failure::own_stream("emit.stream", &emission.stream)?;
    }
    Ok(answer)
}

/// How many events are done, from the first on.
fn done_count(settlement: &Settlement, events: &[EventId]) -> Result<usize> {
    let Some(through) = settlement.through else {
        return Ok(if settlement.outcome == Outcome::Done { events.len() } else { 0 });
    };
    let place = events.iter().position(|id| id.0 == through);
    place.map(|place| place + 1).ok_or_else(|| {
        let ids: Vec<String> = events.iter().map(ToString::to_string).collect();
        Failure::value("through", through, format!("one of the claim's events: {}", ids.join(", ")))
    })
}

fn emission(emission: &laneway_client::wire::Emission) -> Result<Emission> {
    if emission.stream.is_empty() {
        return Err(Failure::value("emit.stream", "absent", "the name of a stream"));
    }
    let key = key(emission.key.as_ref().map(AsRef::as_ref), emission.key_b64.as_ref().map(AsRef::as_ref))?;
    let data = emission.data.as_ref().map_or("null", |data| data.get());
    let kind = Kind::new(emission.kind.clone().unwrap_or_default())?;
    let mut draft = Draft::new(key, kind, Bytes::copy_from_slice(data.as_bytes()));
    draft.headers = Headers::new(&emission.headers)?;
    draft.check()?;
    Ok(Emission { stream: emission.stream.clone(), draft })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> Result<LaneAnswer> {
        answer(&serde_json::from_str(json).unwrap(), &[EventId(5), EventId(9)])
    }

    #[test]
    fn partial_success_ends_at_the_event_that_is_named() {
        let answer =
            of(r#"{"claim":"c","outcome":"retry","through":5,"result":1,"error":"boom","retry_after":"2s"}"#);
        let answer = answer.unwrap();
        assert_eq!(answer.done.len(), 1);
        assert_eq!(answer.done[0].result.as_deref(), Some(&b"1"[..]));
        let failure = answer.failure.unwrap();
        assert_eq!(
            (failure.error.as_str(), failure.retry),
            ("boom", Retry::After(std::time::Duration::from_secs(2)))
        );
        assert_eq!(of(r#"{"claim":"c","outcome":"done"}"#).unwrap().done.len(), 2);
        assert_eq!(of(r#"{"claim":"c","outcome":"done","state":null}"#).unwrap().state, StateChange::Remove);
    }

    #[test]
    fn answers_that_contradict_themselves_are_refused() {
        for (json, says) in [
            (r#"{"claim":"c","outcome":"done","through":7}"#, "one of the claim's events: 5, 9"),
            (r#"{"claim":"c","outcome":"done","error":"x"}"#, "error is set"),
            (r#"{"claim":"c","outcome":"fail","retry_after":"1s"}"#, "retry_after is set"),
            (
                r#"{"claim":"c","outcome":"retry","retry_after":"18446744073709551615us"}"#,
                "retry_after is 18446744073709551615us, must be at most 366d",
            ),
            (r#"{"claim":"c","outcome":"fail","state":1}"#, "state is set"),
            (r#"{"claim":"c","outcome":"done","emit":[{"key":"a"}]}"#, "emit.stream is absent"),
        ] {
            let told = of(json).unwrap_err().detail;
            assert!(told.contains(says), "{json}: {told}");
        }
    }
}
