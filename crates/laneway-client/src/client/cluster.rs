//! The cluster.

use http::Method;

use super::{Client, escaped};
use crate::error::ClientError;
use crate::wire::{BreakLease, DrainedNode, Lease, Leases, NodeView, Nodes, Task, Tasks};

impl Client {
    /// All nodes.
    pub async fn nodes(&self) -> Result<Vec<NodeView>, ClientError> {
        Ok(self.call::<Nodes>(Method::GET, "/v1/nodes").await?.items)
    }

    /// All leases.
    pub async fn leases(&self) -> Result<Vec<Lease>, ClientError> {
        Ok(self.call::<Leases>(Method::GET, "/v1/leases").await?.items)
    }

    /// Wishes that a node own nothing, or lifts that wish. Others take what it has.
    pub async fn drain_node(&self, node: &str, drained: bool) -> Result<DrainedNode, ClientError> {
        let method = if drained { Method::POST } else { Method::DELETE };
        self.call(method, &format!("/v1/nodes/{}/drain", escaped(node))).await
    }

    /// Takes a lease from its holder.
    pub async fn break_lease(&self, lease: &str) -> Result<BreakLease, ClientError> {
        let asked = BreakLease { lease: lease.to_owned() };
        self.call_with(Method::POST, "/v1/leases/break", &asked).await
    }

    /// All tasks.
    pub async fn tasks(&self) -> Result<Vec<Task>, ClientError> {
        Ok(self.call::<Tasks>(Method::GET, "/v1/tasks").await?.items)
    }
}
