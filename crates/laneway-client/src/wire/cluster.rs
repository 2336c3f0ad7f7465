//! The cluster: nodes, what they own, and what the leader has planned.

use serde::{Deserialize, Serialize};

/// A running process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NodeView {
    /// Its token, new at every start.
    pub node: String,
    /// Its name, for people.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it does: `all`, or `api` and `engine` apart.
    pub roles: Vec<String>,
    /// What people know it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The processors it runs, by name.
    pub processors: Vec<String>,
    /// When it was started.
    pub started_at: String,
    /// For how many seconds it has been running.
    pub uptime_seconds: u64,
    /// How many seats it owns: one for each partition of a processor.
    pub seats: usize,
    /// It plans who owns what.
    pub leader: bool,
    /// How much it takes in comparison to others.
    pub weight: u32,
    /// It owns something only when no other can.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub standby: bool,
    /// It is to own nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drained: bool,
    /// When others take over what it has, unless it renews its lease; absent while it works alone on its store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// It is about to end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopping: bool,
}

/// All nodes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Nodes {
    /// One entry each.
    pub items: Vec<NodeView>,
}

/// The right of a node to a seat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Lease {
    /// The stream.
    pub stream: String,
    /// The partition.
    pub partition: u32,
    /// The processor.
    pub processor: String,
    /// The node that has it.
    pub node: String,
    /// Grows with every new holder.
    pub term: u64,
    /// The node that is to have it next, while it moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moves_to: Option<String>,
}

/// Asks for a lease to be taken from its holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct BreakLease {
    /// `PROCESSOR/STREAM/PARTITION`, or `node/NAME` for everything that a node has.
    pub lease: String,
}

/// A node that is to own nothing, or may again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DrainedNode {
    /// Its name or token, as it was asked for.
    pub node: String,
    /// Whether it is to own nothing.
    pub drained: bool,
}

/// All leases, by processor and partition.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Leases {
    /// One entry each.
    pub items: Vec<Lease>,
}

/// A piece of work that the leader has planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Task {
    /// Its name.
    pub name: String,
    /// The registered kind of work.
    pub kind: String,
    /// `outstanding`, `running`, `done` or `failed`.
    pub state: String,
}

/// All tasks, by name. Nothing plans tasks yet, so there are none.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Tasks {
    /// One entry each.
    pub items: Vec<Task>,
}
