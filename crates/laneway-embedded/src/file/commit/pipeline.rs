//! The open group between the two threads, and how far the store got.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};

use super::op::Op;
use crate::file::log::Space;

/// How far the store got, for those who wait for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Durable {
    /// Groups that are durable.
    pub(crate) groups: u64,
    /// Why there will be no more.
    pub(crate) failed: Option<Arc<str>>,
}

/// Calls that were applied and wait for the write thread.
///
/// Changed only under the state's lock where it must agree with the state: which calls are in the open group, and
/// whether the store has failed.
#[derive(Default)]
pub(crate) struct Pipeline {
    inner: Mutex<Inner>,
    changed: Condvar,
    /// Bytes left in the log's current segment as of the last write: for new work, and for settling.
    ordinary_room: AtomicU64,
    reserve_room: AtomicU64,
}

#[derive(Default)]
struct Inner {
    ops: Vec<Box<dyn Op>>,
    writing: bool,
    /// No call will be applied any more.
    ended: bool,
    failed: bool,
}

impl Pipeline {
    /// Adds a call that was applied to the open group.
    pub(super) fn add(&self, ops: impl IntoIterator<Item = Box<dyn Op>>) {
        self.inner.lock().ops.extend(ops);
        self.changed.notify_all();
    }

    /// Waits for an open group; false when there will be none.
    pub(super) fn wait_for_group(&self) -> bool {
        let mut inner = self.inner.lock();
        while inner.ops.is_empty() && !inner.ended && !inner.failed {
            self.changed.wait(&mut inner);
        }
        !inner.ops.is_empty() && !inner.failed
    }

    /// Takes the calls of the open group, which is being written from now on.
    pub(super) fn take(&self) -> Vec<Box<dyn Op>> {
        let mut inner = self.inner.lock();
        inner.writing = true;
        let ops = std::mem::take(&mut inner.ops);
        drop(inner);
        self.changed.notify_all();
        ops
    }

    /// The group that was being written is durable.
    pub(super) fn written(&self) {
        self.inner.lock().writing = false;
        self.changed.notify_all();
    }

    /// Waits until the open group was taken; false if the store failed.
    pub(super) fn wait_until_taken(&self) -> bool {
        let mut inner = self.inner.lock();
        while !inner.ops.is_empty() && !inner.failed {
            self.changed.wait(&mut inner);
        }
        !inner.failed
    }

    /// Waits until everything applied is durable; false if the store failed.
    pub(super) fn wait_until_durable(&self) -> bool {
        let mut inner = self.inner.lock();
        while (inner.writing || !inner.ops.is_empty()) && !inner.failed {
            self.changed.wait(&mut inner);
        }
        !inner.failed
    }

    /// Nothing more will be applied.
    pub(super) fn end(&self) {
        self.inner.lock().ended = true;
        self.changed.notify_all();
    }

    /// The store failed: hands out the calls of the open group, which will never be written.
    pub(crate) fn fail(&self) -> Vec<Box<dyn Op>> {
        let mut inner = self.inner.lock();
        inner.failed = true;
        let ops = std::mem::take(&mut inner.ops);
        drop(inner);
        self.changed.notify_all();
        ops
    }

    pub(super) fn has_failed(&self) -> bool {
        self.inner.lock().failed
    }

    pub(super) fn set_room(&self, space: Space, bytes: u64) {
        self.room_of(space).store(bytes, Ordering::Relaxed);
    }

    pub(super) fn room(&self, space: Space) -> u64 {
        self.room_of(space).load(Ordering::Relaxed)
    }

    fn room_of(&self, space: Space) -> &AtomicU64 {
        match space {
            Space::Ordinary => &self.ordinary_room,
            Space::Reserve => &self.reserve_room,
        }
    }
}

impl std::fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pipeline({} applied)", self.inner.lock().ops.len())
    }
}
