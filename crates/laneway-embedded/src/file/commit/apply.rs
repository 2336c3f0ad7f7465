//! The apply thread: the only one that changes the state. It applies calls as they come, as long as there is room.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use laneway_core::{FullReason, Refusal, StoreError};

use super::op::{Cost, Op};
use crate::file::log::Space;
use crate::file::store::Shared;

/// Most bytes of a group: what a crash may have to cut, and how long a call may wait for others.
const GROUP_BYTES: usize = 4 << 20;
/// Most calls applied under one lock, so that readers of the state wait no longer than for these.
const CALLS_AT_ONCE: usize = 64;

/// Applies calls.
pub(crate) struct ApplyThread {
    shared: Arc<Shared>,
    /// Bytes of the open group, at most, since it was last known to be empty.
    bytes: usize,
}

impl ApplyThread {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, bytes: 0 }
    }

    /// Serves calls until the store is closed or fails.
    pub(crate) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        // A rule that panics may have left half a call behind: the state goes back to what is durable.
        if catch_unwind(AssertUnwindSafe(|| self.serve())).is_err() {
            shared.fail(&"a rule of the store panicked; see its message, then restart".into());
        }
        shared.pipeline.end();
    }

    fn serve(&mut self) {
        let mut waiting = VecDeque::new();
        while self.shared.queue.take(&mut waiting) {
            while !waiting.is_empty() {
                let group = self.gather(&mut waiting);
                self.apply(group);
            }
        }
    }

    /// Takes calls from the front that may be applied together now; waits where one must wait.
    fn gather(&mut self, waiting: &mut VecDeque<Box<dyn Op>>) -> Vec<Box<dyn Op>> {
        let limit = self.shared.log.body_len_max();
        let mut group: Vec<Box<dyn Op>> = Vec::new();
        while let Some(op) = waiting.front() {
            let cost = op.cost();
            let full = self.bytes + cost.bytes > GROUP_BYTES.min(limit);
            if !group.is_empty() && (cost.first || full || group.len() >= CALLS_AT_ONCE) {
                break;
            }
            let Some(op) = waiting.pop_front() else { break };
            if cost.bytes > limit {
                op.refuse(too_large(cost.bytes, limit));
            } else if let Err(error) = self.admit(cost, full) {
                op.refuse(error);
            } else {
                self.bytes += cost.bytes;
                group.push(op);
            }
        }
        group
    }

    /// Waits until the call may join the open group, or says why it may not.
    fn admit(&mut self, cost: Cost, full: bool) -> Result<(), StoreError> {
        let pipeline = &self.shared.pipeline;
        let healthy = match (cost.first, full) {
            (true, _) => pipeline.wait_until_durable(),
            (false, true) => pipeline.wait_until_taken(),
            (false, false) => !pipeline.has_failed(),
        };
        if !healthy {
            return Err(StoreError::Down { reason: self.shared.failure() });
        }
        if cost.first || full {
            self.bytes = 0;
        }
        self.check_space(cost)
    }

    /// On a full disk new work is refused as soon as only the reserve is left, and everything once that is used up.
    fn check_space(&self, cost: Cost) -> Result<(), StoreError> {
        let spares = self.shared.log.spares();
        let needed = (self.bytes + cost.bytes) as u64;
        let left = match cost.space {
            Space::Ordinary => spares.ready.saturating_sub(1),
            Space::Reserve => spares.ready,
        };
        if !spares.full || left > 0 || self.shared.pipeline.room(cost.space) > 2 * needed {
            return Ok(());
        }
        self.shared.log.poke_spares();
        let dir = self.shared.dir.display();
        let reason = format!("disk full: no prepared space for {needed} bytes in {dir}; free space and repeat");
        Err(StoreError::Full(FullReason::Store { reason }))
    }

    fn apply(&mut self, mut group: Vec<Box<dyn Op>>) {
        if group.is_empty() {
            return;
        }
        let now = self.shared.clock.now();
        let mut state = self.shared.state.write();
        if self.shared.pipeline.has_failed() {
            drop(state);
            let reason = self.shared.failure();
            return group.into_iter().for_each(|op| op.refuse(StoreError::Down { reason: reason.clone() }));
        }
        let now = state.open_group(now);
        group.iter_mut().for_each(|op| op.apply(&mut state, now));
        self.shared.pipeline.add(group);
    }
}

fn too_large(bytes: usize, limit: usize) -> StoreError {
    Refusal::new("bytes of the call", bytes.to_string(), format!("at most {limit} (segment_bytes)")).into()
}
