//! Serves an app over HTTP until it is asked to end.

use std::future::Future;
use std::io;
use std::time::Duration;

use axum::serve::ListenerExt as _;
use laneway::Laneway;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::http;
use crate::node::{Ending, Node};
use crate::seam;

/// How long runs may take to finish.
const DRAIN: Duration = Duration::from_secs(30);
/// How long answers that are under way may take after that.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// Serves an app until `end` has come; then lets its runs finish, and its last answers.
///
/// Calls are answered while runs finish. What remote workers have stays theirs: it is written down, and whoever owns its
/// partition next lets them settle it.
pub(crate) async fn serve(
    listener: TcpListener,
    app: Laneway,
    end: impl Future<Output = ()>,
) -> io::Result<()> {
    let engine = app.engine().clone();
    let (node, ending) = Node::new(app);
    let (close, closed) = oneshot::channel::<()>();
    // Answers are small and waited for.
    let listener = listener.tap_io(|connection| {
        if let Err(error) = connection.set_nodelay(true) {
            tracing::debug!(%error, "a connection cannot send small answers at once");
        }
    });
    let served = axum::serve(listener, http::router(node)).with_graceful_shutdown(async {
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
        served = served.into_future() => served,
        () = ended => Ok(()),
    }
}
