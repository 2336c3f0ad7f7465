//! Whether the process lives, has started, and takes work.

use std::time::Duration;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use laneway_client::wire::Readiness;

use super::answer::Json;
use super::code::Code;
use super::error::{Failure, Result, chain};
use super::query::Query;
use super::wire as convert;
use crate::node::Node;
use crate::seam;

/// How far the store's time may be ahead of the wall clock before it is told.
const AHEAD_MAX: Duration = Duration::from_secs(60);

/// Whether the process lives.
#[utoipa::path(get, path = "/livez", tag = "operations", responses((status = 200, body = String)))]
pub(super) async fn live() -> &'static str {
    "ok\n"
}

/// Whether the process has started: its store is open and its processors run. Until then nobody answers.
#[utoipa::path(get, path = "/startupz", tag = "operations", responses((status = 200, body = String)))]
pub(super) async fn started() -> &'static str {
    "ok\n"
}

/// Whether the store answers and the process is not about to end; with `verbose` as JSON, with what stands behind it.
#[utoipa::path(
    get, path = "/readyz", tag = "operations",
    params(("verbose" = Option<String>, Query, description = "answers JSON; its value means nothing")),
    responses(
        (status = 200, description = "`ok`, or JSON with `verbose`", content((String = "text/plain"), (Readiness = "application/json"))),
        (status = 503, description = "with `verbose`", body = Readiness),
    ),
)]
pub(super) async fn ready(State(node): State<Node>, RawQuery(query): RawQuery) -> Result<Response> {
    let query = Query::read(query.as_deref(), &["verbose"])?;
    let draining = node.is_stopping();
    let answered = node.engine().catalogue().refresh().await;
    if query.bytes("verbose").is_some() {
        let ready = answered.is_ok() && !draining;
        let told = Readiness {
            ready,
            store: answered.map_or_else(|error| chain(&error), |()| "answers".to_owned()),
            durability: node.engine().stores().store.about().capabilities.durability.to_string(),
            seats_owned: node.engine().seats_owned(),
            draining,
            clock_ahead: clock_ahead(&node).await,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        return Ok((status, Json(told)).into_response());
    }
    if draining {
        return Err(Failure::new(Code::ShuttingDown, "the server lets its runs finish and then ends"));
    }
    answered?;
    Ok("ok\n".into_response())
}

/// How far the store's time is ahead of the wall clock, if that is worth a word. A store that cannot say is told apart.
async fn clock_ahead(node: &Node) -> Option<String> {
    let store = node.engine().stores().documents.clock().await.ok()??;
    let ahead = Duration::from_micros(store.0.saturating_sub(seam::now().0));
    (ahead > AHEAD_MAX).then(|| convert::length_text(Duration::from_secs(ahead.as_secs() / 60 * 60)))
}
