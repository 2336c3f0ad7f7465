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
    /// In one word: `idle`, `waiting`, `running`, `retrying`, `parked`, `paused` or `diverting`.
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
    /// Who paused the lane or the processor: the name of a token, or what a program said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Since when it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

impl std::fmt::Display for Why {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.detail)?;
        match &self.until {
            Some(until) => write!(formatter, " (until {until})"),
            None => Ok(()),
        }
    }
}

/// A lane of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ListedLane {
    /// Its processor: a lane stands otherwise for each.
    pub processor: String,
    /// In one word: `waiting`, `running`, `retrying`, `parked`, `paused` or `diverting`.
    pub status: String,
    /// Its key; nothing for an event without one, which `head` names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its key, when it is no UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_b64: Option<String>,
    /// Its partition.
    pub partition: u32,
    /// The one name of its first event that has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Failed attempts at its head.
    pub attempt: u32,
    /// When its head is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<String>,
    /// Why its head failed, or who paused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Since when it is parked or paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// Lanes, by processor, partition and name.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Lanes {
    /// One entry each.
    pub items: Vec<ListedLane>,
    /// Lanes that wait or run are found in the log: a lane that drains what was held up may be missing, a page may be
    /// short, and what it says may have changed. All other statuses are indexed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// The cursor of the next page; nothing when this is the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// How lanes stand that a list or a filter is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum LaneStatus {
    /// The head waits for its turn. Lists only.
    Waiting,
    /// The head runs. Lists only.
    Running,
    /// The head failed and is tried again.
    Retrying,
    /// The head gave up, and somebody must decide.
    Parked,
    /// Somebody paused the lane.
    Paused,
    /// Its events go to the dead letters.
    Diverting,
}

/// What lanes have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LaneFilter {
    /// How they stand: `retrying`, `parked`, `paused` or `diverting`.
    pub status: LaneStatus,
}

/// Which lanes an operator means: one by its key or by an event that is in it, or those that a filter finds, up to 1,000 at a
/// time.
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
    /// All lanes that have this in common.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<LaneFilter>,
    /// With a filter: begins where the call before ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Changes nothing, and counts what would be asked.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// How many lanes were asked for something, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LaneAnswer {
    /// Lanes for which it has its effect, now or once the processor runs; with `dry_run`, for which it would be asked.
    pub count: u64,
    /// Whether it had its effect on all of them; otherwise it has once the processor runs. Not so with `dry_run`.
    pub applied: bool,
    /// Lanes that the filter found and for which it is not possible, such as on a partition where the processor stands.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused: u64,
    /// The filter finds more: repeat the call with this cursor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// How many partitions of a processor it concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Count {
    /// Partitions of the processor.
    pub count: u64,
    /// Whether it had its effect; otherwise it has once the processor runs.
    pub applied: bool,
}
