//! Whether the process lives, and whether it takes work.

use axum::extract::State;

use super::code::Code;
use super::error::{Failure, Result};
use crate::node::Node;

/// Whether the process lives.
#[utoipa::path(get, path = "/livez", tag = "operations", responses((status = 200, body = String)))]
pub(super) async fn live() -> &'static str {
    "ok\n"
}

/// Whether the store answers and the process is not about to end.
#[utoipa::path(get, path = "/readyz", tag = "operations", responses((status = 200, body = String)))]
pub(super) async fn ready(State(node): State<Node>) -> Result<&'static str> {
    if node.is_stopping() {
        return Err(Failure::new(Code::ShuttingDown, "the server lets its runs finish and then ends"));
    }
    node.engine().catalogue().refresh().await?;
    Ok("ok\n")
}
