//! The metrics of this process, as Prometheus reads them.

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

use crate::telemetry;

/// The metrics of this process in the text format of Prometheus; `docs/reference/metrics.md` lists them.
#[utoipa::path(
    get, path = "/metrics", tag = "operations",
    responses((status = 200, body = String, content_type = "text/plain")),
)]
pub(super) async fn metrics() -> impl IntoResponse {
    ([(CONTENT_TYPE, telemetry::CONTENT_TYPE)], telemetry::render())
}
