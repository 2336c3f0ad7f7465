//! How far a run is, as its handler last said.

use std::sync::Arc;

use bytes::Bytes;
use laneway_core::limits::CAUSE_BYTES_MAX;
use parking_lot::Mutex;

/// Where a handler says how far it is. The last word counts; it is stored with the next commit once the run has
/// taken long enough to show as running.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Mutex<Bytes>>);

impl Progress {
    /// Says how far the run is. Words beyond the limit are cut off.
    pub fn report(&self, words: impl Into<Bytes>) {
        let words: Bytes = words.into();
        *self.0.lock() = words.slice(..words.len().min(CAUSE_BYTES_MAX));
    }

    pub(crate) fn last(&self) -> Bytes {
        self.0.lock().clone()
    }
}
