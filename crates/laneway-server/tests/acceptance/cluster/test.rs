//! Three nodes on one Redis that are restarted one after the other while clients send through all of them.

use rustix::process::Signal;

use crate::support::{Cluster, Load, NODES, lanes};

#[tokio::test(flavor = "multi_thread")]
async fn all_nodes_are_restarted_under_load_and_nobody_notices() {
    let mut cluster = Cluster::start().await;
    cluster.until_calm().await;
    let load = Load::start(&cluster.all());
    for node in 0..NODES {
        load.until_more().await;
        cluster.signal(node, Signal::TERM);
        cluster.start_again(node).await;
        cluster.until_calm().await;
    }
    load.until_more().await;
    let refusals = load.refusals_max();
    println!("rolling restart of {NODES} nodes: one and the same event was refused {refusals} times at most");
    assert!(refusals <= 1, "one node is away at a time, and the next takes the event");
    let (mut acknowledged, _) = load.end().await;
    acknowledged.extend(cluster.finish(lanes()).await);
    let history = cluster.history(acknowledged).await;
    assert_eq!(history.violations(), Vec::<String>::new());
    let begun = history.steps.iter().filter(|step| step.outcome.is_none()).count();
    assert_eq!(begun, history.stored.len(), "nothing ran twice: every node handed over in good order");
}
