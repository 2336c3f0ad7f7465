//! `laneway node …`, `laneway lease …` and `laneway cluster status`.

use laneway_client::Client;
use laneway_client::wire::{Lease, NodeView};

use super::watch::watched;
use crate::args::{ClusterVerb, LeaseVerb, NodeVerb};
use crate::exit::Fault;
use crate::output::{Cell, Column, Row, Writer, agree, grouped};
use crate::terminal::say;

pub(super) async fn node(client: &Client, writer: Writer, verb: NodeVerb) -> Result<(), Fault> {
    match verb {
        NodeVerb::Ls(watch) => {
            watched(writer, &watch, async || writer.list(&client.nodes().await?, "no nodes")).await
        }
        NodeVerb::Drain(args) if args.undo => {
            let drained = client.drain_node(&args.node, false).await?;
            writer.done(format_args!("node {} may have work again", args.node), &drained, &args.node)
        }
        NodeVerb::Drain(args) => {
            let what = format!("take its work from node {}", args.node);
            if args.consent.dry_run {
                let nodes = client.nodes().await?;
                let hit: Vec<NodeView> =
                    nodes.into_iter().filter(|node| is_called(node, &args.node)).collect();
                return writer.list(&hit, "no such node");
            }
            agree(args.consent, &what)?;
            let drained = client.drain_node(&args.node, true).await?;
            let words =
                format!("node {} hands its work over; laneway node ls shows how far it is", args.node);
            writer.done(words, &drained, &args.node)
        }
    }
}

fn is_called(node: &NodeView, name: &str) -> bool {
    node.node == name || node.name == name
}

pub(super) async fn lease(client: &Client, writer: Writer, verb: LeaseVerb) -> Result<(), Fault> {
    match verb {
        LeaseVerb::Ls(watch) => {
            watched(writer, &watch, async || {
                writer.list(&client.leases().await?, "no leases: no processor runs")
            })
            .await
        }
        LeaseVerb::Break(args) => {
            let what = format!("take lease {} from its holder", args.lease);
            if args.consent.dry_run {
                let leases = client.leases().await?;
                let hit: Vec<Lease> = leases.into_iter().filter(|lease| lease.id() == args.lease).collect();
                return writer.list(&hit, "no such lease of a partition");
            }
            agree(args.consent, &what)?;
            let broken = client.break_lease(&args.lease).await?;
            writer.done(format_args!("lease {} is broken", args.lease), &broken, &args.lease)
        }
    }
}

pub(super) async fn cluster(client: &Client, writer: Writer, verb: ClusterVerb) -> Result<(), Fault> {
    let ClusterVerb::Status(watch) = verb;
    watched(writer, &watch, async || status(client, writer).await).await
}

async fn status(client: &Client, writer: Writer) -> Result<(), Fault> {
    let (nodes, leases) = (client.nodes().await?, client.leases().await?);
    let (streams, processors) = (client.streams().await?, client.processors().await?);
    if !writer.is_for_people() {
        let all = serde_json::json!({"nodes": nodes, "leases": leases, "streams": streams, "processors": processors});
        return writer.json(&all);
    }
    for node in &nodes {
        let seats = grouped(node.seats as u64);
        say(format_args!("node {} ({}): {seats} seats{}", node.name, node.roles.join(","), notes(node)));
    }
    say(format_args!("{} streams, {} processors", streams.len(), processors.len()));
    let moving = leases.iter().filter(|lease| lease.moves_to.is_some()).count();
    let wanted: u64 =
        streams.iter().map(|stream| u64::from(stream.partitions) * stream.processors.len() as u64).sum();
    let mut calm = true;
    if moving > 0 {
        say(format_args!("{moving} partitions move to another node"));
    }
    if (leases.len() as u64) < wanted {
        calm = false;
        let orphans = grouped(wanted - leases.len() as u64);
        say(format_args!("look: {orphans} of {} partitions have no owner", grouped(wanted)));
    }
    for stream in &streams {
        for processor in &stream.processors {
            let (held, dead) = (processor.held_lanes, processor.dead_letters);
            if held > 0 || dead > 0 {
                calm = false;
                let (held, dead) = (grouped(held), grouped(dead));
                say(format_args!(
                    "look: {} of {}: {held} lanes held, {dead} dead letters",
                    processor.processor, stream.name
                ));
            }
        }
    }
    for processor in processors.iter().filter(|processor| !processor.stopped.is_empty()) {
        calm = false;
        say(format_args!("look: {} stands still on {} partitions", processor.name, processor.stopped.len()));
    }
    if calm {
        say("nothing needs attention");
    }
    Ok(())
}

/// What is special about a node.
fn notes(node: &NodeView) -> String {
    let words = [
        (node.leader, ", leader"),
        (node.standby, ", standby"),
        (node.drained, ", drained"),
        (node.stopping, ", about to end"),
    ];
    words.iter().filter(|(is_so, _)| *is_so).map(|(_, words)| *words).collect()
}

impl Row for NodeView {
    const COLUMNS: &'static [Column] = &[
        Column::left("NODE"),
        Column::left("NAME"),
        Column::left("VERSION"),
        Column::left("ROLES"),
        Column::right("SEATS"),
        Column::left("NOTES"),
        Column::left("STARTED"),
        Column::left("LEASE ENDS"),
        Column::left("PROCESSORS").cut(),
    ];

    fn id(&self) -> String {
        self.node.clone()
    }

    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::Text(self.node.clone()),
            Cell::Text(self.name.clone()),
            Cell::Text(self.version.clone()),
            Cell::Text(self.roles.join(",")),
            Cell::Number(self.seats as u64),
            Cell::maybe(notes(self).strip_prefix(", ").map(str::to_owned)),
            Cell::Time(self.started_at.clone()),
            Cell::time(self.expires_at.as_deref()),
            Cell::maybe((!self.processors.is_empty()).then(|| self.processors.join(","))),
        ]
    }
}

impl Row for Lease {
    const COLUMNS: &'static [Column] =
        &[Column::left("LEASE").cut(), Column::left("NODE"), Column::right("TERM"), Column::left("MOVES TO")];

    fn id(&self) -> String {
        format!("{}/{}/{}", self.processor, self.stream, self.partition)
    }

    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::Text(self.id()),
            Cell::Text(self.node.clone()),
            Cell::Number(self.term),
            Cell::maybe(self.moves_to.clone()),
        ]
    }
}
