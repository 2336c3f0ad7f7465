//! Which node owns which seat, on a store that several nodes share. Reading order: `node` (what a node says of itself), `documents` (what
//! all nodes read), `assign` (who should own what), `decide` (what to do about it), `round` (doing it), `standing` (what
//! the seats of this node may rely on), `look` (for people).
//!
//! Nothing here makes a promise: seizures and the fences of commits do. `docs/design/cluster.md` tells how they fit.

mod assign;
mod decide;
mod documents;
mod look;
mod node;
mod round;
mod standing;

#[cfg(test)]
mod tests;

pub use documents::NodeToken;
pub(crate) use documents::Plan;
pub use look::{Cluster, ClusterError, ClusterView, LeaderView, NodeView, SeatView};
pub use node::NodeSettings;
pub(crate) use round::{Abilities, Keeper, Membership};
pub(crate) use standing::Standing;
