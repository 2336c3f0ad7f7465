//! What only the node that runs a processor knows: whether its places are taken, and whether workers ask for lanes.
//!
//! Read at the moment somebody asks why; nothing is counted for it while events run. Other nodes do not know it and say
//! that the event waits for its turn. A run shows in the store after a second, so for that long a head that runs is told
//! to wait for the place that it has itself.

use std::sync::Arc;

use hashbrown::HashMap;
use laneway_core::ProcessorId;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::why::Short;
use crate::handler::Desk;

/// The processors that run on this node. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Nearby(Arc<Mutex<HashMap<ProcessorId, Places>>>);

/// Where the runs of a processor find their places.
#[derive(Clone)]
pub(crate) enum Places {
    /// In this process.
    Here {
        /// Runs at the same time.
        concurrency: usize,
        /// Those that are free.
        free: Arc<Semaphore>,
    },
    /// With remote workers.
    Desk {
        /// Lanes that workers may have at the same time.
        concurrency: usize,
        /// Where they ask.
        desk: Arc<Desk>,
    },
}

impl Nearby {
    pub(crate) fn runs(&self, processor: ProcessorId, places: Places) {
        self.0.lock().insert(processor, places);
    }

    pub(crate) fn stopped(&self, processor: ProcessorId) {
        self.0.lock().remove(&processor);
    }

    /// What a head has to wait for, if it is known.
    pub(super) fn short_of(&self, processor: ProcessorId) -> Option<Short> {
        match self.0.lock().get(&processor)? {
            Places::Here { concurrency, free } => {
                (free.available_permits() == 0).then_some(Short::Places { concurrency: *concurrency })
            }
            Places::Desk { concurrency, desk } if desk.is_full() => {
                Some(Short::Places { concurrency: *concurrency })
            }
            Places::Desk { desk, .. } => (desk.places().available_permits() == 0).then_some(Short::Workers),
        }
    }
}
