//! Dead letters: events that were given up and are kept aside.

use serde::{Deserialize, Serialize};

use super::payload::{Json, present};

/// A dead letter.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeadLetter {
    /// The one name of its event.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The processor that gave it up.
    pub processor: String,
    /// Its lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its lane, when the key is no UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_b64: Option<String>,
    /// Its type.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its payload.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub data: Option<Json>,
    /// Its payload, when it is no JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_b64: Option<String>,
    /// Why it was given up.
    pub cause: String,
    /// Attempts it took.
    pub attempts: u32,
    /// When it was given up.
    pub at: String,
}

/// Dead letters, by processor, partition and id.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeadLetters {
    /// One entry each.
    pub items: Vec<DeadLetter>,
    /// The cursor of the next page; nothing when this is the last. A page may have fewer entries than asked for, or none,
    /// and still have a next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Which dead letters are meant: all of a stream, of a processor or of a lane.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct DeadFilter {
    /// Of this stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// Of this processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// Of this lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Of this lane, when the key is no UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_b64: Option<String>,
}

/// What is to become of dead letters: those that are named, or those that a filter finds, up to 1,000 at a time.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct DeadRequest {
    /// Their names, such as `orders/3/17`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refs: Vec<String>,
    /// Or what they have in common.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<DeadFilter>,
    /// The processor that gave up what is named in `refs`. Default: the stream's only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// With a filter: where to go on, as the answer before said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Redrive only: where to. Default `place`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<RedriveTo>,
    /// Only says which ones are meant.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// Where dead letters come back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RedriveTo {
    /// Their place in the lane, as long as nothing that came after them is done.
    Place,
    /// The end of the lane, as a copy.
    Tail,
}

/// What became of dead letters.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeadAnswers {
    /// Those for which it had its effect, or would have with `dry_run`.
    pub count: u64,
    /// One entry each.
    pub items: Vec<DeadAnswer>,
    /// The filter may find more behind these: repeat the call with this as `cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What became of one dead letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeadAnswer {
    /// Which.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Of which processor.
    pub processor: String,
    /// Whether it was accepted.
    pub accepted: bool,
    /// It has its effect only once the processor runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
    /// Why not: `successors_done`, `earlier_dead`, `whole_lane`, `event_trimmed`, `stale_generation`, `headers_full` or `dead_letter_not_found`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The same in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}
