//! Whether the process lives, has started, and takes work.

use std::time::Duration;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use laneway::core::ClockReport;
use laneway_client::wire::Readiness;

use super::answer::Json;
use super::code::Code;
use super::error::{Failure, Result, chain};
use super::query::Query;
use super::wire as convert;
use crate::node::Node;

/// Report clocks that differ by more than this.
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
        let clock = node.engine().stores().store.clock_report();
        let told = Readiness {
            ready,
            store: answered.map_or_else(|error| chain(&error), |()| "answers".to_owned()),
            durability: node.engine().stores().store.about().capabilities.durability.to_string(),
            seats_owned: node.engine().seats_owned(),
            draining,
            clock: clock.as_ref().and_then(clock_words),
            clock_ahead: clock.as_ref().and_then(clock_ahead),
            held: held(&node).await,
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

/// Describes the processors that keep the store from deleting old files.
async fn held(node: &Node) -> Vec<String> {
    match node.engine().held().await {
        Ok(held) => {
            let by_processors = held.into_iter().filter(|held| held.processor.is_some());
            by_processors.map(|held| held.to_string()).collect()
        }
        Err(error) => vec![format!("unknown: {}", chain(&error))],
    }
}

/// How far log time is ahead of the time of day, if that is worth a word.
fn clock_ahead(clock: &ClockReport) -> Option<String> {
    (clock.log_ahead > AHEAD_MAX).then(|| whole_minutes(clock.log_ahead))
}

/// Why the wall clock is not trusted.
fn clock_words(clock: &ClockReport) -> Option<String> {
    if clock.is_settled() {
        return None;
    }
    let left = convert::length_text(Duration::from_secs(clock.settles_in.as_secs().max(1)));
    let jump = Duration::from_micros(clock.offset.unsigned_abs());
    let side = if clock.offset > 0 { "ahead" } else { "back" };
    Some(if jump > AHEAD_MAX {
        format!("it jumped {} {side}, and is believed in {left} if it stays there", whole_minutes(jump))
    } else {
        format!("it jumped or the machine booted, and it has settled in {left}")
    })
}

fn whole_minutes(length: Duration) -> String {
    convert::length_text(Duration::from_secs(length.as_secs() / 60 * 60))
}
