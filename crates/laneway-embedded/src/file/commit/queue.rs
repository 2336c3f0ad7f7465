//! Where calls wait for the commit thread: whatever has come while it was busy is its next group.

use std::collections::VecDeque;

use laneway_core::StoreError;
use parking_lot::{Condvar, Mutex};

use super::op::Op;

/// The waiting calls.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

#[derive(Default)]
struct Waiting {
    ops: VecDeque<Box<dyn Op>>,
    closed: Option<String>,
}

impl Queue {
    /// Adds a call, or refuses it because the store takes no more.
    pub(crate) fn push(&self, op: Box<dyn Op>) {
        let mut waiting = self.waiting.lock();
        if let Some(reason) = &waiting.closed {
            let reason = reason.clone();
            drop(waiting);
            return op.refuse(StoreError::Down { reason });
        }
        waiting.ops.push_back(op);
        let first = waiting.ops.len() == 1;
        drop(waiting);
        if first {
            self.arrived.notify_one();
        }
    }

    /// Moves all waiting calls behind those in `ops`; waits for one if there is none. False when closed and
    /// empty.
    pub(crate) fn take(&self, ops: &mut VecDeque<Box<dyn Op>>) -> bool {
        let mut waiting = self.waiting.lock();
        while ops.is_empty() && waiting.ops.is_empty() {
            if waiting.closed.is_some() {
                return false;
            }
            self.arrived.wait(&mut waiting);
        }
        ops.append(&mut waiting.ops);
        true
    }

    /// Takes no more calls, for this reason; those that wait are still served. The first reason stays.
    pub(crate) fn close(&self, reason: &str) {
        self.waiting.lock().closed.get_or_insert_with(|| reason.to_owned());
        self.arrived.notify_one();
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Queue({} waiting)", self.waiting.lock().ops.len())
    }
}
