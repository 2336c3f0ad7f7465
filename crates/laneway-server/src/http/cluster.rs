//! The cluster as it is: this node, what it owns, and what is planned.

use axum::extract::State;
use laneway::engine::observe::OwnedSeat;
use laneway_client::wire;

use super::answer::Json;
use super::error::Result;
use super::wire as convert;
use crate::node::Node;
use crate::seam;

/// The running processes. A store that is a folder has one: this.
#[utoipa::path(get, path = "/v1/nodes", tag = "cluster", responses((status = 200, body = wire::Nodes)))]
pub(super) async fn nodes(State(node): State<Node>) -> Result<Json<wire::Nodes>> {
    let processors = node.engine().processors().await?.into_iter().filter(|view| view.runs_here);
    let birth = node.birth();
    let view = wire::NodeView {
        node: birth.token.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        roles: vec![node.duties().role.word().to_owned()],
        tags: node.duties().tags.clone(),
        processors: processors.map(|view| view.name).collect(),
        started_at: convert::date_of(birth.at),
        uptime_seconds: seam::steady().since(birth.steady).as_secs(),
        seats: node.engine().looker().owned_seats().await?.len(),
        stopping: node.is_stopping(),
    };
    Ok(Json(wire::Nodes { items: vec![view] }))
}

/// The seats that nodes own, each with its term. In a folder they last as long as the process.
#[utoipa::path(get, path = "/v1/leases", tag = "cluster", responses((status = 200, body = wire::Leases)))]
pub(super) async fn leases(State(node): State<Node>) -> Result<Json<wire::Leases>> {
    let token = &node.birth().token;
    let seats = node.engine().looker().owned_seats().await?.into_iter();
    let items = seats.map(|OwnedSeat { stream, partition, processor, term }| wire::Lease {
        stream,
        partition: partition.0,
        processor,
        node: token.clone(),
        term: term.0,
    });
    Ok(Json(wire::Leases { items: items.collect() }))
}

/// What the leader has planned. Nothing plans tasks yet.
#[utoipa::path(get, path = "/v1/tasks", tag = "cluster", responses((status = 200, body = wire::Tasks)))]
pub(super) async fn tasks() -> Json<wire::Tasks> {
    Json(wire::Tasks { items: Vec::new() })
}
