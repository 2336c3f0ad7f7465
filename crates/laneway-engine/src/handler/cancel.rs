//! The request to stop a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Tells a run that it is to stop. Cheap to clone; a run that never stops is dropped after a grace.
#[derive(Debug, Clone)]
pub struct CancelToken(Arc<Wish>);

/// The side that asks.
#[derive(Debug, Clone)]
pub(crate) struct Canceller(Arc<Wish>);

/// The wish that a run stops.
#[derive(Debug, Default)]
struct Wish {
    asked: AtomicBool,
    told: Notify,
}

impl Canceller {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    pub(crate) fn token(&self) -> CancelToken {
        CancelToken(Arc::clone(&self.0))
    }

    pub(crate) fn cancel(&self) {
        self.0.asked.store(true, Ordering::Release);
        self.0.told.notify_waiters();
    }
}

impl CancelToken {
    /// Whether the run is to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.asked.load(Ordering::Acquire)
    }

    /// Resolves when the run is to stop.
    pub async fn cancelled(&self) {
        loop {
            // Listens before it looks: a wish in between is not missed.
            let told = self.0.told.notified();
            if self.is_cancelled() {
                return;
            }
            told.await;
        }
    }
}
