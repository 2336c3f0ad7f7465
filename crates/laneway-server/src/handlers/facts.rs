//! What a handler is told about its event besides the data.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use laneway::core::{Key, Ref};
use laneway::engine::handler::{LaneRun, Run};
use laneway_client::wire::Claim;

/// Everything a handler is told through its environment.
pub(crate) const VARIABLES: [&str; 15] = [
    "LANEWAY_REF",
    "LANEWAY_KEY",
    "LANEWAY_KEY_B64",
    "LANEWAY_ID",
    "LANEWAY_PREV",
    "LANEWAY_SEQ",
    "LANEWAY_ATTEMPT",
    "LANEWAY_FENCE",
    "LANEWAY_TYPE",
    "LANEWAY_GENERATION",
    "LANEWAY_INCARNATION",
    "LANEWAY_DELETE",
    "LANEWAY_LAST_ID",
    "LANEWAY_LAST_GENERATION",
    "LANEWAY_LAST_INCARNATION",
];

/// What a handler is told about its event.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) reference: String,
    pub(super) id: u64,
    pub(super) prev: Option<u64>,
    pub(super) seq: Option<u64>,
    pub(super) newest: Option<Newest>,
    pub(super) key: Option<Key>,
    pub(super) kind: String,
    pub(super) attempt: u32,
    pub(super) fence: String,
}

/// What it is told besides where the newest wins.
#[derive(Debug, Clone)]
pub(super) struct Newest {
    generation: u64,
    incarnation: u64,
    delete: bool,
    /// Id, generation and incarnation of what was done last in the lane.
    last: Option<[u64; 3]>,
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
            newest: event.generation.map(|generation| Newest {
                generation,
                incarnation: event.incarnation,
                delete: event.delete,
                last: lane.last_done.as_ref().map(|last| [last.id.0, last.generation, last.incarnation]),
            }),
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
            newest: event.generation.map(|generation| Newest {
                generation,
                incarnation: event.incarnation.unwrap_or(0),
                delete: event.delete,
                last: claim.last_done.as_ref().map(|last| [last.id, last.generation, last.incarnation]),
            }),
            key: key.map(Key::new).transpose().map_err(|refusal| refusal.to_string())?,
            kind: event.kind.clone().unwrap_or_default(),
            attempt: claim.attempt,
            fence: claim.fence.clone(),
        })
    }

    /// The numbers that not every event has: as a variable, as a header, and the number.
    pub(super) fn numbers(&self) -> Vec<(&'static str, &'static str, u64)> {
        let newest = self.newest.as_ref();
        let last = newest.and_then(|newest| newest.last);
        let numbers = [
            ("LANEWAY_PREV", "laneway-prev", self.prev),
            ("LANEWAY_SEQ", "laneway-seq", self.seq),
            ("LANEWAY_GENERATION", "laneway-generation", newest.map(|newest| newest.generation)),
            ("LANEWAY_INCARNATION", "laneway-incarnation", newest.map(|newest| newest.incarnation)),
            ("LANEWAY_DELETE", "laneway-delete", newest.filter(|newest| newest.delete).map(|_| 1)),
            ("LANEWAY_LAST_ID", "laneway-last-id", last.map(|[id, ..]| id)),
            ("LANEWAY_LAST_GENERATION", "laneway-last-generation", last.map(|[_, generation, _]| generation)),
            (
                "LANEWAY_LAST_INCARNATION",
                "laneway-last-incarnation",
                last.map(|[.., incarnation]| incarnation),
            ),
        ];
        let known =
            numbers.into_iter().filter_map(|(variable, header, number)| Some((variable, header, number?)));
        known.collect()
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
        let numbers = self.numbers().into_iter();
        environment.extend(numbers.map(|(name, _, number)| (name, number.to_string().into())));
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
