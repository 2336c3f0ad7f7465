//! Drain: no more pushes, finish what is there, cancel what is late.

use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::hub::Hub;
use super::settings::Totals;

/// How a drain went: what ended between its start and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Whether everything ended by itself before the deadline.
    pub in_time: bool,
    /// Ends during the drain; `cancelled` is what the deadline cut off, unless somebody else cancelled too.
    pub ends: Totals,
}

pub(super) async fn drain<K, V, R, E>(hub: Arc<Hub<K, V, R, E>>, within: Duration) -> Drained
where
    K: Hash + Eq + Clone,
{
    let mut deadline = hub.clock.timer(hub.clock.now().after(within));
    let before = hub.totals();
    hub.close();
    let in_time = std::future::poll_fn(|context| {
        if hub.gate().poll_quiet(context).is_ready() {
            return Poll::Ready(true);
        }
        Pin::new(&mut deadline).poll(context).map(|()| false)
    })
    .await;
    if !in_time {
        hub.with(|hall, aftermath| aftermath.stop(hall.table.cancel_all().running));
        std::future::poll_fn(|context| hub.gate().poll_quiet(context)).await;
    }
    let after = hub.totals();
    Drained { in_time, ends: after.since(before) }
}

impl Totals {
    fn since(self, before: Totals) -> Totals {
        Totals {
            runs: self.runs - before.runs,
            done: self.done - before.done,
            failed: self.failed - before.failed,
            superseded: self.superseded - before.superseded,
            stale: self.stale - before.stale,
            cancelled: self.cancelled - before.cancelled,
            expired: self.expired - before.expired,
        }
    }
}
