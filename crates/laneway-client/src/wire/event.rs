//! Events: as they are sent, as they are answered, as they are read back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::payload::{Json, is_false, present};
use super::problem::Problem;

/// A struct with the fields of an event to be, and some of its own: serde cannot flatten a struct that carries raw JSON
/// and refuses unknown fields.
macro_rules! draft {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            /// The lane: events of one key run in order. Without a key no order is wanted.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub key: Option<String>,
            /// The key in base64, when it is no UTF-8.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub key_b64: Option<String>,
            /// Its type.
            #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
            pub kind: Option<String>,
            /// Its payload; any JSON, kept as it is.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
            pub data: Option<Json>,
            /// Names and values that travel with it.
            #[serde(skip_serializing_if = "BTreeMap::is_empty")]
            pub headers: BTreeMap<String, String>,
            /// Newest wins: which state of the thing this is. Default: one more than the newest accepted.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub generation: Option<u64>,
            /// Newest wins: which life of the thing this is. Default 0.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub incarnation: Option<u64>,
            /// Newest wins: whether this ends the life of the thing.
            #[serde(skip_serializing_if = "is_false")]
            pub delete: bool,
            /// Joins its lane only after this time, such as `5s`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub delay: Option<String>,
            /// Where a delayed event waits. Default `join`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub delay_mode: Option<DelayMode>,
            /// Joins its lane at this date, such as `2026-11-16T18:00:00Z`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub run_at: Option<String>,
            /// 0, 1 or 2: higher goes first, between lanes. Default 0.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[cfg_attr(feature = "openapi", schema(maximum = 2))]
            pub priority: Option<u8>,
            /// Ends as expired if it is not started within this time, such as `1h`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub ttl: Option<String>,
            /// Names it at its producer: the same again is the same event, as long as the stream remembers it (`dedup_window`
            /// and `dedup_max`; a day unless it is told otherwise).
            #[serde(skip_serializing_if = "Option::is_none")]
            pub dedup_id: Option<String>,
            /// Appends only if the lane's last id is this; `null` if the lane must have none.
            #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
            #[cfg_attr(feature = "openapi", schema(value_type = Option<u64>))]
            pub expect_prev: Option<Option<u64>>,
            /// Writes the object of the lane in the same step; `null` removes it.
            #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
            #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
            pub object: Option<Json>,
            /// Only if the object has this version; 0 if there must be none.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub expect_object_version: Option<u64>,
            $($(#[$field_doc])*
            #[serde(skip_serializing_if = "Option::is_none")]
            pub $field: $type,)*
        }
    };
}

draft!(
    /// An event to be.
    EventDraft {
        /// Its position at the origin that the query names, such as the number of its line: growing, from 1. A position
        /// that is not above the highest its partition has of that origin is a repeat, however long ago that was.
        position: Option<u64>,
    }
);
draft!(
    /// A job to be: an event whose submitter wants its end.
    JobDraft {
        /// Which processor answers. Default: the stream's only one.
        processor: Option<String>,
        /// How long the result can be read. Default: a day.
        keep: Option<String>,
    }
);

impl JobDraft {
    /// The event of the job.
    pub fn into_event(self) -> EventDraft {
        EventDraft {
            key: self.key,
            key_b64: self.key_b64,
            kind: self.kind,
            data: self.data,
            headers: self.headers,
            generation: self.generation,
            incarnation: self.incarnation,
            delete: self.delete,
            delay: self.delay,
            delay_mode: self.delay_mode,
            run_at: self.run_at,
            priority: self.priority,
            ttl: self.ttl,
            dedup_id: self.dedup_id,
            expect_prev: self.expect_prev,
            object: self.object,
            expect_object_version: self.expect_object_version,
            position: None,
        }
    }
}

/// What an append takes: one event, or an array of up to 1,000.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum EventsBody {
    /// One event.
    One(Box<EventDraft>),
    /// Several, appended in this order.
    Many(Vec<EventDraft>),
}

/// What a submission takes: one job, or an array of up to 1,000.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum JobsBody {
    /// One job.
    One(Box<JobDraft>),
    /// Several, submitted in this order.
    Many(Vec<JobDraft>),
}

/// Where a delayed event waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum DelayMode {
    /// Outside its lane; it joins the end when due.
    Join,
    /// In its lane, which waits with it.
    Hold,
}

/// The answer to an append: one entry per event, in order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Appended {
    /// What became of each event.
    pub events: Vec<EventReceipt>,
    /// How safe they are: `memory`, `buffered`, `synced` or `replicated(n)`.
    pub durability: String,
    /// Version of the lane's object after the call, when it changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_version: Option<u64>,
}

/// What became of one event.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EventReceipt {
    /// In one word.
    pub append: AppendedAs,
    /// Its one name.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Its partition; nothing for a line that could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<u32>,
    /// Its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// The event before it in its lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prev: Option<u64>,
    /// Its number in the lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Its number in the schedule, when it waits outside its lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<u64>,
    /// When it joins its lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<String>,
    /// The newest generation accepted, when this one was stale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest_generation: Option<u64>,
    /// Why it was not appended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

/// What became of one line of events.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LineReceipt {
    /// Which line, from 1; empty lines count and are not answered.
    pub line: u64,
    /// What became of its event.
    #[serde(flatten)]
    pub receipt: EventReceipt,
    /// How safe it is: `memory`, `buffered`, `synced` or `replicated(n)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durability: Option<String>,
    /// Version of the lane's object after the event, when it changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_version: Option<u64>,
}

/// What became of an event, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum AppendedAs {
    /// It has its place.
    New,
    /// It was appended before; its first place is answered.
    Duplicate,
    /// A newer generation was accepted before.
    Stale,
    /// It waits outside its lane.
    Scheduled,
    /// An expectation does not hold.
    Conflict,
    /// There was no room, or the store could not.
    Refused,
}

/// Events of one partition, in order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EventPage {
    /// The events.
    pub events: Vec<Event>,
    /// Last id of the partition.
    pub head: u64,
    /// Read on after this one; nothing when this page reaches the head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// An event as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Event {
    /// Its one name.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Its partition.
    pub partition: u32,
    /// Its id.
    pub id: u64,
    /// The event before it in its lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prev: Option<u64>,
    /// Its number in the lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
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
    /// Its headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// When it joined its lane.
    pub time: String,
    /// Newest wins: its generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// Newest wins: which life of the thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<u64>,
    /// Newest wins: whether it ends that life.
    #[serde(default, skip_serializing_if = "is_false")]
    pub delete: bool,
    /// Its priority, when it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Ends as expired if it is not started by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// The job that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Where it stands, processor by processor; nothing when it is followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processors: Vec<EventStatus>,
}

/// Where an event stands for one processor.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EventStatus {
    /// Which.
    pub processor: String,
    /// In one word.
    pub status: String,
    /// Why it ended otherwise than `done`, is parked, or is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The event that took its place, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub winner: Option<u64>,
}
