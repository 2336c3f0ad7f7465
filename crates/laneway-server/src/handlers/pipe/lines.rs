//! What is said to a kept process and what it answers: a claim and a settlement, as a remote worker has them.

use laneway::core::{Due, EventId};
use laneway::engine::handler::{LaneAnswer, LaneRun, Run};
use laneway_client::Json;
use laneway_client::wire::{ClaimedEvent, LastDone, Settlement};
use serde::Serialize;

use crate::http::wire as convert;

/// A run, as one line.
#[derive(Serialize)]
struct Line<'a> {
    claim: &'a str,
    stream: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_b64: Option<String>,
    fence: String,
    attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_done: Option<LastDone>,
    events: Vec<ClaimedEvent>,
}

/// The line that asks for a run.
pub(super) fn question(claim: &str, run: &Run, lane: &LaneRun) -> Vec<u8> {
    let key = lane.events.first().and_then(|event| event.key.as_ref());
    let convert::Named { key, key_b64 } = convert::named(key);
    let line = Line {
        claim,
        stream: &run.stream,
        key,
        key_b64,
        fence: lane.fence.to_string(),
        attempt: lane.attempt,
        expires_at: run.deadline.map(|at| convert::date_of(convert::due(Due::Steady(at)))),
        state: lane.state.as_ref().and_then(|state| convert::payload(&state.bytes).0),
        last_done: lane.last_done.as_ref().map(convert::last_done),
        events: lane.events.iter().map(|event| convert::claimed(&run.stream, run.partition, event)).collect(),
    };
    as_line(&line)
}

/// As one line: JSON may have line breaks inside, if its sender wrote it so.
pub(super) fn as_line(said: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(said).expect("names and JSON are JSON");
    line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    line.push(b'\n');
    line
}

/// What the answer means; an error says what is wrong with it.
pub(super) fn answer(line: &[u8], claim: &str, lane: &LaneRun) -> Result<LaneAnswer, String> {
    let settlement = settlement(line, claim)?;
    let ids: Vec<EventId> = lane.events.iter().map(|event| event.id).collect();
    convert::answer(&settlement, &ids).and_then(convert::own_streams).map_err(|failure| failure.detail)
}

/// An answer, if it is one to this claim.
pub(in crate::handlers) fn settlement(line: &[u8], claim: &str) -> Result<Settlement, String> {
    let settlement: Settlement = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    if settlement.claim != claim {
        return Err(format!("claim is {:?}, must be {claim:?}", settlement.claim));
    }
    Ok(settlement)
}
