//! The same through three nodes, each with connections of its own, which share the seats among them. They share the machine
//! too: the rows tell what being several costs, not what more machines bring.

use std::time::Duration;

use laneway_engine::cluster::NodeSettings;
use laneway_engine::{Engine, Env};

use super::ours::{LOOK_EVERY, Ours, WITHIN, append, connect, process};
use super::raw;
use crate::node::Node;
use crate::rows::engine::waits;
use crate::workload::SHARDS;
use crate::{Failure, seam};

pub(super) const NODES: usize = 3;

/// Events per second, and microseconds of the server per event.
#[derive(Clone, Copy)]
pub(super) struct ByNodes {
    pub(super) append: f64,
    pub(super) drain: f64,
    pub(super) micros: f64,
}

/// Nodes that run nothing yet.
struct Nodes {
    stores: Vec<Ours>,
    engines: Vec<Engine>,
}

impl Nodes {
    async fn open(url: &str, namespace: &str) -> Result<Self, Failure> {
        let first = Ours::open(url, namespace).await?;
        let (mut stores, mut engines) = (Vec::new(), Vec::new());
        for number in 0..NODES {
            let store = Ours { store: connect(url, namespace).await?, stream: first.stream.clone() };
            let node = NodeSettings::new(format!("node-{number}"));
            engines.push(Engine::in_cluster(store.stores(), Env::system(), node)?);
            stores.push(store);
        }
        Ok(Self { stores, engines })
    }

    /// Waits until every node has its share of the seats.
    async fn until_shared(&self) -> Result<(), Failure> {
        let start = seam::now();
        let share = SHARDS as usize / self.engines.len();
        let is_shared = || {
            let owned = || self.engines.iter().map(Engine::seats_owned);
            owned().all(|owned| owned >= share) && owned().sum::<usize>() == SHARDS as usize
        };
        while !is_shared() {
            if seam::now().duration_since(start) > WITHIN {
                return Err(format!("the nodes do not share the seats after {WITHIN:?}").into());
            }
            seam::pause(LOOK_EVERY).await;
        }
        Ok(())
    }
}

/// Appends through the stores of all nodes; then has as much run by nodes that have shared the seats.
pub(super) async fn measure(url: &str, namespace: &str, events: u64) -> Result<ByNodes, Failure> {
    let alone = Nodes::open(url, &format!("{namespace}-append")).await?;
    let appended = append(&alone.stores, events).await?;
    let nodes = Nodes::open(url, namespace).await?;
    for engine in &nodes.engines {
        process(engine).await?;
        engine.start_upkeep();
    }
    nodes.until_shared().await?;
    let operator = nodes.engines[0].operator();
    let paused = operator.pause(Node::PROCESSOR, "the benchmark").await?;
    applied(operator.wait(&paused, Node::DRAIN).await?)?;
    let (before, _) = raw::used(url).await?;
    let events = append(&nodes.stores, events).await?.events;
    let start = seam::now();
    let resumed = operator.resume(Node::PROCESSOR).await?;
    applied(operator.wait(&resumed, Node::DRAIN).await?)?;
    nodes.stores[0].until_settled().await?;
    let drain = events as f64 / seam::seconds_since(start);
    let (after, _) = raw::used(url).await?;
    for engine in nodes.engines {
        engine.drain(Node::DRAIN).await;
    }
    Ok(ByNodes { append: appended.rate(), drain, micros: (after - before) / events as f64 })
}

fn applied(applied: bool) -> Result<(), Failure> {
    if applied { Ok(()) } else { Err("a request was not applied".into()) }
}

/// The wait of every job that is submitted through one node after the other, in microseconds.
pub(super) async fn latency(url: &str, length: Duration) -> Result<Vec<u32>, Failure> {
    let nodes = Nodes::open(url, "latency-of-nodes").await?;
    let settled = async || nodes.stores[0].until_settled().await;
    waits(&nodes.engines, length, async || nodes.until_shared().await, settled).await
}
