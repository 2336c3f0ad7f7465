//! Claims: what remote workers ask for, get and answer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::payload::{Json, present};

/// What a worker wants.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ClaimRequest {
    /// Lanes at most. Default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_lanes: Option<usize>,
    /// Events of one lane at most. Default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_events: Option<usize>,
    /// How long to wait if there is nothing, such as `20s`, at most `60s`. Default: a quarter of a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<String>,
    /// How long it has each lane, unless it extends. Default `30s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
    /// Who it is, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// Names the call: the same name again gets the same claims, as far as they are still open. For a worker that got
    /// no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

/// What a worker gets.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Claims {
    /// One entry per lane; none when there is nothing to do.
    pub claims: Vec<Claim>,
}

/// A lane that a worker has.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Claim {
    /// Names it.
    pub claim: String,
    /// The stream.
    pub stream: String,
    /// The lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The lane, when the key is no UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_b64: Option<String>,
    /// Sorts higher for every later run of the lane: hand it to outside systems so that they can refuse a late writer.
    pub fence: String,
    /// Which attempt at the first event, from 1.
    pub attempt: u32,
    /// When the lease ends.
    pub expires_at: String,
    /// The lane's state as the last settled run left it.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub state: Option<Json>,
    /// Newest wins: the event of the lane that was done last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_done: Option<LastDone>,
    /// What to run, in order.
    pub events: Vec<ClaimedEvent>,
}

/// The event of a lane that was done last, where the newest wins.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LastDone {
    /// Its id.
    pub id: u64,
    /// Its generation.
    pub generation: u64,
    /// Which life of the object it was.
    pub incarnation: u64,
    /// Its payload, with `keep_last`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub data: Option<Json>,
    /// Its payload, when it is no JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_b64: Option<String>,
}

/// An event to run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClaimedEvent {
    /// Its one name.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Its id.
    pub id: u64,
    /// The event before it in its lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prev: Option<u64>,
    /// Its number in the lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Its type.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Newest wins: its generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// Newest wins: which life of the object it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<u64>,
    /// Newest wins: whether the object is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delete: bool,
    /// Its payload.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub data: Option<Json>,
    /// Its payload, when it is no JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_b64: Option<String>,
    /// Its headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The job that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
}

/// What a worker answers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Settle {
    /// One entry per claim.
    pub settlements: Vec<Settlement>,
}

/// What became of a claim.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Settlement {
    /// Which.
    pub claim: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The last event that is done. Default: all for `done`, none otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<u64>,
    /// What the submitter of a job gets: that of the last event that is done.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub result: Option<Json>,
    /// The lane's new state; `null` removes it. Default: it stays as it is.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub state: Option<Json>,
    /// Events to send, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub emit: Vec<Emission>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When to try again, such as `5s`. Default: as the policy says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<String>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is done.
    Done,
    /// It failed; another attempt may help.
    Retry,
    /// It failed for good.
    Fail,
}

/// An event to send.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Emission {
    /// Where to.
    pub stream: String,
    /// Its lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its lane in base64, when the key is no UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_b64: Option<String>,
    /// Its type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub data: Option<Json>,
    /// Its headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

/// What became of the settlements.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SettleAnswers {
    /// One entry each, in order.
    pub settlements: Vec<SettleAnswer>,
}

/// What became of one settlement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SettleAnswer {
    /// Which claim.
    pub claim: String,
    /// Whether it counts, and is durable.
    pub accepted: bool,
    /// It was settled before; what was said then counts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub already: bool,
    /// With `already`: what was said then, as far as it is still known here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Settled>,
    /// Why not: `claim_lost`, or the code of what is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The same in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What a claim was settled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Settled {
    /// So many events, from the first on, were done.
    pub done: usize,
    /// The one after them failed.
    pub failed: bool,
}

/// A wish for more time.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Extend {
    /// Which claims.
    pub claims: Vec<String>,
    /// How long from now on, such as `30s`.
    pub lease: String,
}

/// What became of the wish for more time.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExtendedClaims {
    /// One entry per claim, in order.
    pub claims: Vec<ExtendedClaim>,
}

/// A claim after the wish for more time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExtendedClaim {
    /// Which.
    pub claim: String,
    /// Whether it has more time.
    pub accepted: bool,
    /// When its lease ends now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Why not: `claim_lost`, or the code of what is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The same in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}
