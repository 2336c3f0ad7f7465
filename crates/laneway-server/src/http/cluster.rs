//! The cluster as it is: its nodes, what they own, and what is planned.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use laneway::engine::cluster::{ClusterError, ClusterView, NodeView, SeatView};
use laneway::engine::observe::OwnedSeat;
use laneway_client::wire;

use super::answer::Json;
use super::body;
use super::code::Code;
use super::error::{Failure, Result};
use super::wire as convert;
use crate::node::Node;
use crate::seam;

/// Before the name of a node, where a lease is named.
const NODE: &str = "node/";

/// The running processes. A store that is a folder has one: this.
#[utoipa::path(get, path = "/v1/nodes", tag = "cluster", responses((status = 200, body = wire::Nodes)))]
pub(super) async fn nodes(State(node): State<Node>) -> Result<Json<wire::Nodes>> {
    if node.engine().node().is_none() {
        return Ok(Json(wire::Nodes { items: vec![alone(&node).await?] }));
    }
    let view = node.engine().cluster().look().await?;
    let processors = node.engine().processors().await?;
    let told = |member: &NodeView| {
        let names = processors.iter().filter(|processor| member.runs.contains(&processor.id));
        told(&view, member, names.map(|processor| processor.name.clone()).collect())
    };
    Ok(Json(wire::Nodes { items: view.nodes.iter().map(told).collect() }))
}

/// A node as all nodes see it.
fn told(view: &ClusterView, member: &NodeView, processors: Vec<String>) -> wire::NodeView {
    let age = view.at.map_or(0, |at| at.0.saturating_sub(member.since.0));
    wire::NodeView {
        node: member.token.to_string(),
        name: member.name.clone(),
        version: member.version.clone(),
        roles: vec![member.role.clone()],
        tags: member.tags.clone(),
        processors,
        started_at: convert::date_of(member.since),
        uptime_seconds: age / 1_000_000,
        seats: view.seats.iter().filter(|seat| seat.owner == Some(member.token)).count(),
        leader: view.leader.is_some_and(|leader| leader.node == member.token),
        weight: member.weight,
        standby: member.standby,
        drained: member.drained,
        expires_at: member.expires.map(convert::date_of),
        stopping: member.leaving,
    }
}

/// This node, on a store that nobody else can open.
async fn alone(node: &Node) -> Result<wire::NodeView> {
    let processors = node.engine().processors().await?.into_iter().filter(|view| view.runs_here);
    let birth = node.birth();
    Ok(wire::NodeView {
        node: birth.token.clone(),
        name: birth.token.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        roles: vec![node.duties().role.word().to_owned()],
        tags: node.duties().tags.clone(),
        processors: processors.map(|view| view.name).collect(),
        started_at: convert::date_of(birth.at),
        uptime_seconds: seam::steady().since(birth.steady).as_secs(),
        seats: node.engine().looker().owned_seats().await?.len(),
        leader: true,
        weight: 1,
        standby: false,
        drained: false,
        expires_at: None,
        stopping: node.is_stopping(),
    })
}

/// The seats that nodes own, each with its term. In a folder they last as long as the process.
#[utoipa::path(get, path = "/v1/leases", tag = "cluster", responses((status = 200, body = wire::Leases)))]
pub(super) async fn leases(State(node): State<Node>) -> Result<Json<wire::Leases>> {
    if node.engine().node().is_some() {
        let view = node.engine().cluster().look().await?;
        return Ok(Json(wire::Leases { items: view.seats.iter().filter_map(lease).collect() }));
    }
    let token = &node.birth().token;
    let seats = node.engine().looker().owned_seats().await?.into_iter();
    let items = seats.map(|OwnedSeat { stream, partition, processor, term }| wire::Lease {
        stream,
        partition: partition.0,
        processor,
        node: token.clone(),
        term: term.0,
        moves_to: None,
    });
    Ok(Json(wire::Leases { items: items.collect() }))
}

fn lease(seat: &SeatView) -> Option<wire::Lease> {
    let owner = seat.owner?;
    Some(wire::Lease {
        stream: seat.stream.clone(),
        partition: seat.seat.shard.partition.0,
        processor: seat.processor.clone(),
        node: owner.to_string(),
        term: seat.term.0,
        moves_to: seat.planned.filter(|planned| *planned != owner).map(|planned| planned.to_string()),
    })
}

/// Wishes that a node own nothing: the others take what it has, and it stays in the cluster.
#[utoipa::path(
    post, path = "/v1/nodes/{node}/drain", tag = "cluster",
    params(("node" = String, Path, description = "its name or token")),
    responses((status = 200, body = wire::DrainedNode)),
)]
pub(super) async fn drain(
    State(node): State<Node>,
    Path(name): Path<String>,
) -> Result<Json<wire::DrainedNode>> {
    wish(&node, name, true).await
}

/// Lifts the wish that a node own nothing.
#[utoipa::path(
    delete, path = "/v1/nodes/{node}/drain", tag = "cluster",
    params(("node" = String, Path, description = "its name or token")),
    responses((status = 200, body = wire::DrainedNode)),
)]
pub(super) async fn undrain(
    State(node): State<Node>,
    Path(name): Path<String>,
) -> Result<Json<wire::DrainedNode>> {
    wish(&node, name, false).await
}

async fn wish(node: &Node, name: String, drained: bool) -> Result<Json<wire::DrainedNode>> {
    together(node)?;
    node.engine().cluster().drain(&name, drained).await?;
    Ok(Json(wire::DrainedNode { node: name, drained }))
}

/// Takes a lease from its holder: whatever it still commits is refused. A node that lives joins again with nothing; a
/// single partition is taken anew by whoever is to have it.
#[utoipa::path(
    post, path = "/v1/leases/break", tag = "cluster",
    request_body = wire::BreakLease,
    responses((status = 200, body = wire::BreakLease)),
)]
pub(super) async fn break_lease(
    State(node): State<Node>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<wire::BreakLease>> {
    let asked: wire::BreakLease = body::object(&headers, body).await?;
    together(&node)?;
    let cluster = node.engine().cluster();
    if let Some(name) = asked.lease.strip_prefix(NODE) {
        cluster.break_lease(name).await?;
        return Ok(Json(asked));
    }
    let seats = cluster.look().await?.seats;
    let named = |seat: &&SeatView| {
        format!("{}/{}/{}", seat.processor, seat.stream, seat.seat.shard.partition) == asked.lease
    };
    let Some(seat) = seats.iter().find(named) else {
        let detail = format!(
            "there is no lease {:?}; GET /v1/leases lists PROCESSOR/STREAM/PARTITION, and node/NAME is all that a node has",
            asked.lease
        );
        return Err(Failure::new(Code::LeaseNotFound, detail));
    };
    cluster.break_seat(seat).await?;
    Ok(Json(asked))
}

/// Refuses what only several nodes could do.
fn together(node: &Node) -> Result<()> {
    if node.engine().node().is_some() {
        return Ok(());
    }
    let detail = "this node works alone on its store: nobody else could take its work";
    Err(Failure::new(Code::NodeConflict, detail))
}

impl From<ClusterError> for Failure {
    fn from(error: ClusterError) -> Self {
        match error {
            ClusterError::NoNode(_) => {
                Self::new(Code::NodeNotFound, format!("{error}; GET /v1/nodes lists all"))
            }
            ClusterError::Several { .. } => Self::new(Code::NodeConflict, error.to_string()),
            ClusterError::Store(error) => error.into(),
        }
    }
}

/// What the leader has planned. Nothing plans tasks yet.
#[utoipa::path(get, path = "/v1/tasks", tag = "cluster", responses((status = 200, body = wire::Tasks)))]
pub(super) async fn tasks() -> Json<wire::Tasks> {
    Json(wire::Tasks { items: Vec::new() })
}
