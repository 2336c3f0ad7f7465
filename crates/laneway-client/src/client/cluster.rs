//! The cluster.

use http::Method;

use super::Client;
use crate::error::ClientError;
use crate::wire::{Lease, Leases, NodeView, Nodes, Task, Tasks};

impl Client {
    /// All nodes.
    pub async fn nodes(&self) -> Result<Vec<NodeView>, ClientError> {
        Ok(self.call::<Nodes>(Method::GET, "/v1/nodes").await?.items)
    }

    /// All leases.
    pub async fn leases(&self) -> Result<Vec<Lease>, ClientError> {
        Ok(self.call::<Leases>(Method::GET, "/v1/leases").await?.items)
    }

    /// All tasks.
    pub async fn tasks(&self) -> Result<Vec<Task>, ClientError> {
        Ok(self.call::<Tasks>(Method::GET, "/v1/tasks").await?.items)
    }
}
