//! The end of a group, for the calls in it.

use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

/// Set once, when the group is durable or will never be.
#[derive(Debug, Default)]
pub(crate) struct Done {
    outcome: OnceLock<Result<(), Arc<str>>>,
    notify: Notify,
}

impl Done {
    /// Ends the group; the first outcome stays.
    pub(crate) fn set(&self, outcome: Result<(), Arc<str>>) {
        self.outcome.get_or_init(|| outcome);
        self.notify.notify_waiters();
    }

    /// Waits for the end.
    pub(super) async fn wait(&self) -> Result<(), Arc<str>> {
        // Made before the look, so that an end between the two is not missed.
        let ended = self.notify.notified();
        match self.outcome.get() {
            Some(outcome) => outcome.clone(),
            None => {
                ended.await;
                self.outcome.get().cloned().unwrap_or(Ok(()))
            }
        }
    }
}
