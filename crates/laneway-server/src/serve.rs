//! Serves an app over HTTP until it is asked to end.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use laneway::Laneway;
use tokio::sync::oneshot;

use crate::duties::Duties;
use crate::handlers::Rules;
use crate::http::{self, Gate};
use crate::listen::Door;
use crate::node::{Ending, Node};
use crate::seam;
use crate::telemetry;

/// How long runs may take to finish.
const DRAIN: Duration = Duration::from_secs(30);
/// How long answers that are under way may take after that.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// Serves an app until `end` has come; then lets its runs finish, and its last answers.
///
/// Calls are answered while runs finish. What remote workers have stays theirs: it is written down, and whoever owns its
/// partition next lets them settle it.
pub(crate) async fn serve(
    door: Door,
    gate: Arc<Gate>,
    app: Laneway,
    duties: Duties,
    webhooks: Option<Arc<Rules>>,
    backup_dir: Option<PathBuf>,
    end: impl Future<Output = ()>,
) {
    let engine = app.engine().clone();
    let (node, ending) = Node::new(app, duties, webhooks, backup_dir);
    let (close, closed) = oneshot::channel::<()>();
    let served = door.serve(http::router(node, gate), async {
        // A sender that is gone means the same.
        drop(closed.await);
    });
    let ended = async {
        end.await;
        ending.send_replace(Ending::Stopping);
        engine.drain(DRAIN).await;
        ending.send_replace(Ending::Drained);
        drop(close);
        seam::pass(LAST_ANSWERS).await;
        tracing::warn!("connections were cut that took too long to end");
    };
    tokio::select! {
        () = served => {}
        () = ended => {}
        never = telemetry::keep_up() => match never {},
    }
}
