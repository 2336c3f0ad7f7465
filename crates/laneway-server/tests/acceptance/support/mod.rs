//! What the scenarios share: a plain HTTP client, a server with a handler that tells what it does, and a checker of histories.

mod cluster;
mod history;
mod http;
mod server;

pub(crate) use cluster::Cluster;
pub(crate) use history::{History, Receipt, Step, Stored, by_lane};
pub(crate) use http::{Http, Said};
pub(crate) use server::Server;
