//! Processors.

use serde::{Deserialize, Serialize};

/// What a processor is asked to be. What is left out has its default.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ProcessorSettings {
    /// The stream whose events it runs.
    pub stream: String,
    /// Whether remote workers claim its events.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pull: bool,
    /// Instead of `pull`: the https URL that gets every event as a signed POST, within the address rules of the server. What
    /// is behind its `?` is not shown again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// Runs at the same time. Default 64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<usize>,
    /// How long a run may take, such as `30s`. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// How often and when a failed event is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// What happens to an event that is given up. Default `park`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    /// How many events one run takes. Default: one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<Batch>,
    /// Which types of events run, with `*` for any ending. Default: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    /// Where a new processor begins. Default `beginning`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// Runs that may start per second, over all partitions. Default: no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
    /// Runs of one key that may start per second. Default: no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_per_key: Option<u32>,
    /// Newest wins: a newer event takes the running one of its lane away from its worker. Default false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub supersede_running: bool,
    /// Newest wins: keeps the payload of the event done last in every lane and tells it to the next run. Default false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keep_last: bool,
}

/// How often and when a failed event is tried again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Retry {
    /// Attempts at one event, the first included. Default 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// Wait after the first failed attempt; doubles with each. Default `1s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<String>,
    /// Longest wait. Default `5m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_max: Option<String>,
}

/// What happens to an event that is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// It stays the head of its lane, which stops until somebody decides.
    Park,
    /// It is kept aside and the lane goes on.
    DeadLetter,
    /// It and all later events of its lane are kept aside until redriven.
    DeadLetterLane,
    /// The processor stops on this partition.
    Halt,
    /// It ends failed; the lane goes on.
    Drop,
}

/// How many events one run takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// Of what.
    pub over: BatchOver,
    /// At most.
    pub max: usize,
    /// How long a batch that is not full waits for more, such as `50ms`. Default: not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
}

/// What a batch is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum BatchOver {
    /// Events of one lane, in order.
    Lane,
    /// Heads of several lanes.
    Lanes,
}

/// Where a new processor begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum Start {
    /// The first event with this id or a higher one, in every partition.
    Id(u64),
    /// `beginning`, `end`, or a date: the first event of this time or a later one.
    At(String),
}

/// A processor as it stands.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Processor {
    /// Its name.
    pub name: String,
    /// Its stream.
    pub stream: String,
    /// Who runs its events: `pull` for remote workers, `exec` for a command, `code` for a program that has Laneway inside.
    pub handler: String,
    /// Whether it runs on this node.
    pub running: bool,
    /// Partitions on which it is paused or halted; nothing where it runs everywhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<Stopped>,
    /// What it was asked to be, with all defaults; nothing where it was registered without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<ProcessorSettings>,
}

/// A partition on which a processor does not go on until it is resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Stopped {
    /// Which.
    pub partition: u32,
    /// `paused` on request, or `halted` by a failure.
    pub status: String,
    /// The one name of the event whose failure halted it.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Who paused it: the name of a token, or what a program said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Since when it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// Where a processor is to begin anew.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Reset {
    /// From where on. There is no default: what is behind it runs again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// What becomes of the lanes' states. Default `keep`.
    pub state: ResetState,
    /// Whether events emit that the processor had passed before. Default `on`.
    pub emit: ResetEmit,
}

/// What becomes of the states of a processor that begins anew.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ResetState {
    /// They stay as they are.
    #[default]
    Keep,
    /// They go.
    Clear,
}

/// Whether a processor that begins anew emits what it has emitted before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ResetEmit {
    /// It emits again.
    #[default]
    On,
    /// It emits nothing up to where it was, and goes on emitting from there.
    Off,
}

/// All processors, by name.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Processors {
    /// One entry each.
    pub items: Vec<Processor>,
}
