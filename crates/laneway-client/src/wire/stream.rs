//! Streams.

use serde::{Deserialize, Serialize};

/// What a stream is asked to be. What is left out has its default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct StreamSettings {
    /// How many partitions. Default 16; it cannot be changed later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partitions: Option<u32>,
    /// Which events run. Default `queue`; it cannot be changed later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// How long events stay readable after every processor passed them, such as `7d`. Default `7d`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<String>,
    /// How long the end of a job is kept unless its submitter says otherwise, such as `1d`. Default `1d`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_done: Option<String>,
    /// Most events waiting, over all partitions, at least one per partition. Each partition gets an equal part, rounded up, and
    /// refuses what goes beyond it. Default: no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pending: Option<u64>,
    /// The processor that answers jobs whose submitter names none. It may be registered later. Default: the stream's only
    /// one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub responder: Option<String>,
    /// How long a lane must have had no event before it is forgotten, once its last one is gone by `keep`, such as `90d`. Its
    /// next event is then its first. Default: never, so that every key costs a little for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forget_lanes_after: Option<String>,
    /// How long a `dedup_id` or `Idempotency-Key` is remembered, such as `7d`: the same again within that time is the same
    /// event, unless `dedup_max` newer ones have come to its partition since. Default `1d`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dedup_window: Option<String>,
    /// Most ids that a partition remembers; beyond it the oldest go before their time. Default 100,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dedup_max: Option<u64>,
}

/// Which events of a lane run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// All of them.
    Queue,
    /// Only the newest generation.
    Latest,
}

/// A stream as it stands.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Stream {
    /// Its name.
    pub name: String,
    /// How many partitions.
    pub partitions: u32,
    /// Which events run.
    pub mode: Mode,
    /// How long events stay readable after every processor passed them.
    pub keep: String,
    /// How long the end of a job is kept unless its submitter says otherwise.
    pub keep_done: String,
    /// Most events waiting, over all partitions; each has an equal part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_pending: Option<u64>,
    /// The processor that answers jobs whose submitter names none; nothing where it is the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub responder: Option<String>,
    /// How long a lane must have had no event before it is forgotten; nothing where it never is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forget_lanes_after: Option<String>,
    /// How long ids of events and keys of submissions are remembered.
    pub dedup_window: String,
    /// Most of them that a partition remembers.
    pub dedup_max: u64,
    /// How many of them went before their time, because there were more: a repeat of these is another event.
    pub dedup_evicted: u64,
    /// The last id of each partition that has events.
    pub heads: Vec<PartitionHead>,
    /// Its processors and how far behind they are.
    pub processors: Vec<StreamProcessor>,
}

/// The end of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PartitionHead {
    /// Which partition.
    pub partition: u32,
    /// Its last id.
    pub head: u64,
    /// Events that it ever had. Fewer than its last id once a store was restored or failed over, because ids jump then.
    pub events: u64,
}

/// A processor of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StreamProcessor {
    /// Its name.
    pub processor: String,
    /// Events that have not ended and are not held up with their lane, over all partitions.
    pub lag: u64,
    /// Lanes that are held up, such as parked ones.
    pub held_lanes: u64,
    /// Dead letters.
    pub dead_letters: u64,
}

/// Streams, by name.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Streams {
    /// One entry each.
    pub items: Vec<Stream>,
    /// The cursor of the next page; nothing when this is the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
