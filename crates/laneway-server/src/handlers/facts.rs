//! What a handler is told about its event besides the data.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use laneway::core::{Key, Ref};
use laneway::engine::handler::{LaneRun, Run};
use laneway_client::wire::Claim;

/// What a handler is told about its event.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) reference: String,
    pub(super) id: u64,
    pub(super) prev: Option<u64>,
    pub(super) seq: Option<u64>,
    pub(super) key: Option<Key>,
    pub(super) kind: String,
    pub(super) attempt: u32,
    pub(super) fence: String,
}

impl Facts {
    /// Those of the first event of a lane.
    pub(super) fn of(run: &Run, lane: &LaneRun) -> Self {
        let event = &lane.events[0];
        let reference = Ref { stream: run.stream.to_string(), partition: run.partition, id: event.id };
        Self {
            reference: reference.to_string(),
            id: event.id.0,
            prev: event.prev.map(|prev| prev.0),
            seq: event.seq.map(|seq| seq.0),
            key: event.key.clone(),
            kind: event.kind.as_str().to_owned(),
            attempt: lane.attempt,
            fence: lane.fence.to_string(),
        }
    }

    /// Those of the first event of a claim.
    pub(super) fn of_claim(claim: &Claim) -> Result<Self, String> {
        let event = claim.events.first().ok_or("the claim has no event")?;
        let coded = claim.key_b64.as_ref().map(|coded| STANDARD.decode(coded)).transpose();
        let key = coded.map_err(|error| format!("key_b64: {error}"))?;
        let key = key.or_else(|| claim.key.clone().map(String::into_bytes));
        Ok(Self {
            reference: event.reference.clone(),
            id: event.id,
            prev: event.prev,
            seq: event.seq,
            key: key.map(Key::new).transpose().map_err(|refusal| refusal.to_string())?,
            kind: event.kind.clone().unwrap_or_default(),
            attempt: claim.attempt,
            fence: claim.fence.clone(),
        })
    }

    /// As variables of a process.
    pub(super) fn environment(&self) -> Vec<(&'static str, OsString)> {
        let mut environment: Vec<(&'static str, OsString)> = vec![
            ("LANEWAY_REF", self.reference.as_str().into()),
            ("LANEWAY_ID", self.id.to_string().into()),
            ("LANEWAY_ATTEMPT", self.attempt.to_string().into()),
            ("LANEWAY_FENCE", self.fence.as_str().into()),
            ("LANEWAY_TYPE", self.kind.as_str().into()),
        ];
        environment.extend(self.prev.map(|prev| ("LANEWAY_PREV", prev.to_string().into())));
        environment.extend(self.seq.map(|seq| ("LANEWAY_SEQ", seq.to_string().into())));
        if let Some(key) = &self.key {
            // No environment can carry a zero byte.
            if key.bytes().contains(&0) {
                environment.push(("LANEWAY_KEY_B64", STANDARD.encode(key.bytes()).into()));
            } else {
                environment.push(("LANEWAY_KEY", OsString::from_vec(key.bytes().to_vec())));
            }
        }
        environment
    }
}
