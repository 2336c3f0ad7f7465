//! What the scenarios share: a plain HTTP client, a server with a handler that tells what it does, and a checker of histories.

mod balancer;
mod callers;
mod cluster;
mod history;
mod http;
mod load;
mod server;

pub(crate) use callers::Callers;
pub(crate) use cluster::{Cluster, LEASE, NODES, PARTITIONS};
pub(crate) use history::{Effect, History, Loss, Receipt, Step, Stored, Violation, by_lane};
pub(crate) use http::{Http, Said};
pub(crate) use load::{Load, lanes};
pub(crate) use server::Server;
