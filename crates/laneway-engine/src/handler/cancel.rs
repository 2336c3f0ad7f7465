//! The request to stop a run.

use std::sync::Arc;

use tokio::sync::watch;

/// Tells a run that it is to stop. Cheap to clone; a run that never stops is dropped after a grace.
#[derive(Debug, Clone)]
pub struct CancelToken {
    asked: watch::Receiver<bool>,
    /// Keeps the channel open, so that waiting never ends by the asker's going away.
    _asker: Arc<watch::Sender<bool>>,
}

/// The side that asks.
#[derive(Debug, Clone)]
pub(crate) struct Canceller(Arc<watch::Sender<bool>>);

impl Canceller {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::channel(false).0))
    }

    pub(crate) fn token(&self) -> CancelToken {
        CancelToken { asked: self.0.subscribe(), _asker: Arc::clone(&self.0) }
    }

    pub(crate) fn cancel(&self) {
        self.0.send_replace(true);
    }
}

impl CancelToken {
    /// Whether the run is to stop.
    pub fn is_cancelled(&self) -> bool {
        *self.asked.borrow()
    }

    /// Resolves when the run is to stop.
    pub async fn cancelled(&self) {
        let mut asked = self.asked.clone();
        // The sender lives as long as this token.
        drop(asked.wait_for(|asked| *asked).await);
    }
}
