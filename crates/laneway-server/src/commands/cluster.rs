//! `laneway node …`, `laneway lease …` and `laneway cluster status`.

use laneway_client::Client;
use laneway_client::wire::{Lease, NodeView};

use super::watch::watched;
use crate::args::{ClusterVerb, LeaseVerb, NodeVerb};
use crate::exit::{Exit, Fault};
use crate::output::{Cell, Column, Row, Writer, grouped};
use crate::terminal::say;

pub(super) async fn node(client: &Client, writer: Writer, verb: NodeVerb) -> Result<(), Fault> {
    match verb {
        NodeVerb::Ls(watch) => {
            watched(writer, &watch, async || writer.list(&client.nodes().await?, "no nodes")).await
        }
        NodeVerb::Drain(args) => {
            let nodes = client.nodes().await?;
            if !nodes.iter().any(|node| node.node == args.node) {
                let words = format!("there is no node {:?}", args.node);
                return Err(Fault::new(Exit::NotFound, words).hint("laneway node ls shows all"));
            }
            let words =
                format!("node {} works alone on its store: nobody could take its work over", args.node);
            Err(Fault::new(Exit::Conflict, words)
                .hint("to end it in good order, send its process SIGTERM: what runs may finish"))
        }
    }
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
            let leases = client.leases().await?;
            let Some(lease) = leases.iter().find(|lease| lease.id() == args.lease) else {
                let words = format!("there is no lease {:?}", args.lease);
                return Err(Fault::new(Exit::NotFound, words).hint("laneway lease ls shows all"));
            };
            let words = format!(
                "node {} works alone on its store: nobody else could take {}",
                lease.node, args.lease
            );
            Err(Fault::new(Exit::Conflict, words).hint("laneway processor pause stops a processor"))
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
        let stopping = if node.stopping { ", about to end" } else { "" };
        say(format_args!(
            "node {} ({}): {} seats{stopping}",
            node.node,
            node.roles.join(","),
            grouped(node.seats as u64)
        ));
    }
    say(format_args!("{} streams, {} processors", streams.len(), processors.len()));
    let mut calm = true;
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

impl Row for NodeView {
    const COLUMNS: &'static [Column] = &[
        Column::left("NODE"),
        Column::left("VERSION"),
        Column::left("ROLES"),
        Column::right("SEATS"),
        Column::left("STARTED"),
        Column::left("PROCESSORS").cut(),
    ];

    fn id(&self) -> String {
        self.node.clone()
    }

    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::Text(self.node.clone()),
            Cell::Text(self.version.clone()),
            Cell::Text(self.roles.join(",")),
            Cell::Number(self.seats as u64),
            Cell::Time(self.started_at.clone()),
            Cell::maybe((!self.processors.is_empty()).then(|| self.processors.join(","))),
        ]
    }
}

impl Row for Lease {
    const COLUMNS: &'static [Column] =
        &[Column::left("LEASE").cut(), Column::left("NODE"), Column::right("TERM")];

    fn id(&self) -> String {
        format!("{}/{}/{}", self.processor, self.stream, self.partition)
    }

    fn cells(&self) -> Vec<Cell> {
        vec![Cell::Text(self.id()), Cell::Text(self.node.clone()), Cell::Number(self.term)]
    }
}
