//! The same backlog through three nodes, each with connections of its own, which share the seats among them. They share
//! the machine too: the row tells what being several costs, not what more machines bring.

use laneway_engine::cluster::NodeSettings;
use laneway_engine::{Engine, Env};

use super::ours::{LOOK_EVERY, Ours, WITHIN, connect, process};
use crate::node::Node;
use crate::workload::SHARDS;
use crate::{Failure, seam};

pub(super) const NODES: usize = 3;

/// Events per second from when the processor may begin until everything is settled.
pub(super) async fn drain(url: &str, namespace: &str, events: u64) -> Result<f64, Failure> {
    let ours = Ours::open(url, namespace).await?;
    let mut engines = Vec::new();
    for number in 0..NODES {
        let store = Ours { store: connect(url, namespace).await?, stream: ours.stream.clone() };
        let node = NodeSettings::new(format!("node-{number}"));
        let engine = Engine::in_cluster(store.stores(), Env::system(), node)?;
        process(&engine).await?;
        engine.start_upkeep();
        engines.push(engine);
    }
    until_shared(&engines).await?;
    let operator = engines[0].operator();
    let paused = operator.pause(Node::PROCESSOR, "the benchmark").await?;
    applied(operator.wait(&paused, Node::DRAIN).await?)?;
    ours.append(events).await?;
    let start = seam::now();
    let resumed = operator.resume(Node::PROCESSOR).await?;
    applied(operator.wait(&resumed, Node::DRAIN).await?)?;
    ours.until_settled().await?;
    let rate = events as f64 / seam::seconds_since(start);
    for engine in engines {
        engine.drain(Node::DRAIN).await;
    }
    Ok(rate)
}

fn applied(applied: bool) -> Result<(), Failure> {
    if applied { Ok(()) } else { Err("a request was not applied".into()) }
}

/// Waits until every node has its share of the seats.
async fn until_shared(engines: &[Engine]) -> Result<(), Failure> {
    let start = seam::now();
    let share = SHARDS as usize / engines.len();
    let is_shared = || {
        let owned = || engines.iter().map(Engine::seats_owned);
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
