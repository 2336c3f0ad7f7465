//! All calls of the API, in one list.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::code::Code;
use super::error::Failure;
use super::gate::{self, Gate};
use super::{
    backup, claims, cluster, dead_letters, events, health, job, job_lists, jobs, lane_list, lane_wishes,
    lanes, metrics, openapi, processors, refusals, schedules, streams, trace,
};
use crate::node::Node;

/// Answers every call of the API on this node.
pub(crate) fn router(node: Node, gate: Arc<Gate>) -> Router {
    let (router, mut described) = calls().split_for_parts();
    let answers = Arc::new(refusals::described(&mut described));
    let description = openapi::text(described);
    let router = router
        .route("/openapi.json", axum::routing::get(move || openapi::answer(description.clone())))
        .fallback(no_route)
        .method_not_allowed_fallback(other_method)
        .layer(middleware::from_fn(trace::follow))
        .layer(middleware::from_fn_with_state(gate, gate::check));
    let router = if cfg!(debug_assertions) {
        router.layer(middleware::from_fn_with_state(answers, refusals::compare))
    } else {
        router
    };
    router.with_state(node)
}

/// The calls, each with its description.
pub(super) fn calls() -> OpenApiRouter<Node> {
    OpenApiRouter::with_openapi(openapi::head())
        .routes(routes!(streams::list))
        .routes(routes!(streams::put, streams::get, streams::delete))
        .routes(routes!(events::append, events::page))
        .routes(routes!(events::one))
        .routes(routes!(lanes::one))
        .routes(routes!(lane_list::list))
        .routes(routes!(lane_wishes::pause))
        .routes(routes!(lane_wishes::resume))
        .routes(routes!(lane_wishes::retry))
        .routes(routes!(lane_wishes::skip))
        .routes(routes!(jobs::submit))
        .routes(routes!(job_lists::list))
        .routes(routes!(job_lists::query))
        .routes(routes!(job_lists::cancel))
        .routes(routes!(job::get, job::delete))
        .routes(routes!(job::cancel))
        .routes(routes!(job::retry))
        .routes(routes!(job::take))
        .routes(routes!(processors::list))
        .routes(routes!(processors::put, processors::get, processors::delete))
        .routes(routes!(processors::pause))
        .routes(routes!(processors::resume))
        .routes(routes!(processors::reset))
        .routes(routes!(claims::claim))
        .routes(routes!(claims::settle))
        .routes(routes!(claims::extend))
        .routes(routes!(dead_letters::list))
        .routes(routes!(dead_letters::redrive))
        .routes(routes!(dead_letters::discard))
        .routes(routes!(schedules::list))
        .routes(routes!(schedules::put, schedules::get, schedules::delete))
        .routes(routes!(schedules::run))
        .routes(routes!(cluster::nodes))
        .routes(routes!(cluster::drain, cluster::undrain))
        .routes(routes!(cluster::leases))
        .routes(routes!(cluster::break_lease))
        .routes(routes!(cluster::tasks))
        .routes(routes!(backup::backup))
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
        .routes(routes!(health::started))
        .routes(routes!(metrics::metrics))
}

async fn no_route(request: Request) -> Failure {
    let detail = format!("there is no call {:?}; /openapi.json describes all of them", request.uri().path());
    Failure::new(Code::NoRoute, detail)
}

async fn other_method(request: Request) -> Failure {
    let (method, path) = (request.method(), request.uri().path());
    Failure::new(
        Code::MethodNotAllowed,
        format!("{path:?} has no call {method}; /openapi.json describes all of them"),
    )
}
