//! Lanes: one as it stands, and what an operator asks of it.

use serde::{Deserialize, Serialize};

use super::payload::{Json, present};

/// One lane.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Lane {
    /// Its stream.
    pub stream: String,
    /// Its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its key, when it is no UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_b64: Option<String>,
    /// Its partition.
    pub partition: u32,
    /// Its last event; nothing for a lane that never was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_id: Option<u64>,
    /// How many events it ever had.
    pub last_seq: u64,
    /// Events from the first that has not ended, for the slowest processor, to the last.
    pub pending: u64,
    /// Newest wins: the newest generation accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// Its object.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub object: Option<Json>,
    /// Version of its object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_version: Option<u64>,
    /// How it stands for each processor.
    pub processors: Vec<LaneProcessor>,
}

/// One lane for one processor.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LaneProcessor {
    /// Which.
    pub processor: String,
    /// In one word: `idle`, `waiting`, `running`, `retrying`, `parked` or `paused`.
    pub status: String,
    /// The one name of its first event that has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Failed attempts at its head.
    pub attempt: u32,
    /// When its head is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<String>,
    /// The processor's state of the lane.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub state: Option<Json>,
    /// Version of that state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_version: Option<u64>,
    /// Why it does not go on, or that nothing waits.
    pub why: Why,
}

/// The one reason why something waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Why {
    /// The reason in one word, such as `parked` or `behind`.
    pub code: String,
    /// The same in a sentence.
    pub detail: String,
    /// The event that has to end first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<u64>,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// Which lane an operator means: by its key, or by an event that is in it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct LaneRequest {
    /// Its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its key in base64, when it is no UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_b64: Option<String>,
    /// One of its events, such as `orders/3/17`: the only name for the lane of an event without a key. Retry and skip are
    /// then about this event, and do nothing if it is not the lane's first.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// For which processor. Default: the stream's only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
}

/// How many lanes or partitions it concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Count {
    /// Lanes, or partitions of a processor.
    pub count: u64,
    /// Whether it had its effect; otherwise it has once the processor runs.
    pub applied: bool,
}
