//! What callers and the write thread tell each other: whether a group is open, and how far the store got.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::file::log::Space;

/// How long a call that may wait is kept for a group that others open.
const COMPANY_WITHIN: Duration = Duration::from_millis(5);
/// After a call that may wait, the write thread expects another one for this many groups.
const COMPANY_GROUPS: u32 = 16;

/// How far the store got, for those who wait for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Durable {
    /// Groups that are durable.
    pub(crate) groups: u64,
    /// Why there will be no more.
    pub(crate) failed: Option<Arc<str>>,
}

/// Between callers and the write thread.
#[derive(Debug, Default)]
pub(crate) struct Pipeline {
    inner: Mutex<Inner>,
    changed: Condvar,
    /// Calls that wait for a moment in which everything is durable; others let them go first.
    pub(crate) waiting_first: AtomicUsize,
    /// Bytes left in the log's current segment as of the last write: for new work, and for settling.
    ordinary_room: AtomicU64,
    reserve_room: AtomicU64,
}

#[derive(Debug, Default)]
struct Inner {
    /// The open group has calls.
    open: bool,
    /// The open group has calls that may wait.
    patient: bool,
    /// For how many more groups the write thread waits with a time limit, so that calls that may wait need not wake it.
    expects_patient: u32,
    /// The write thread waits until it is woken.
    asleep: bool,
    /// Somebody in the open group needs it synced, whatever the mode.
    synced: bool,
    /// Groups that are durable.
    groups: u64,
    /// Calls that are being applied.
    entered: usize,
    /// Why no call is applied any more.
    closed: Option<Arc<str>>,
    failed: bool,
}

impl Pipeline {
    /// Begins to apply a call, or says why none is applied any more. The write thread stays until this is dropped,
    /// so that a group which is opened meanwhile is still written.
    pub(super) fn enter(&self) -> Result<Entered<'_>, Arc<str>> {
        let mut inner = self.inner.lock();
        match &inner.closed {
            Some(reason) => Err(Arc::clone(reason)),
            None => {
                inner.entered += 1;
                Ok(Entered(self))
            }
        }
    }

    /// A call joined the open group. Answers whether the write thread is to be woken: by the first call that cannot
    /// wait, or if it would not look by itself.
    pub(super) fn opened(&self, synced: bool, may_wait: bool) -> bool {
        let mut inner = self.inner.lock();
        inner.synced |= synced;
        inner.patient |= may_wait;
        if may_wait && !inner.asleep {
            return false;
        }
        !std::mem::replace(&mut inner.open, true)
    }

    /// Wakes the write thread for a group that was opened.
    pub(super) fn wake_writer(&self) {
        self.changed.notify_all();
    }

    /// Has the open group written although its calls may wait: somebody waits for it now.
    pub(crate) fn hurry(&self) {
        let mut inner = self.inner.lock();
        let is_new = inner.patient && !std::mem::replace(&mut inner.open, true);
        drop(inner);
        if is_new {
            self.wake_writer();
        }
    }

    /// Waits for an open group; false when there will be none.
    pub(super) fn wait_for_group(&self) -> bool {
        let mut inner = self.inner.lock();
        while !inner.open && (inner.closed.is_none() || inner.entered > 0) && !inner.failed {
            if inner.patient || inner.expects_patient > 0 {
                if self.changed.wait_for(&mut inner, COMPANY_WITHIN).timed_out() {
                    inner.expects_patient = 0;
                    inner.open = inner.patient;
                }
            } else {
                inner.asleep = true;
                self.changed.wait(&mut inner);
                inner.asleep = false;
            }
        }
        inner.open |= inner.patient;
        inner.open && !inner.failed
    }

    /// Takes the open group, if there is one and it is still to be written; answers whether it must be synced whatever the mode.
    pub(super) fn take(&self) -> Option<bool> {
        let mut inner = self.inner.lock();
        let taken = std::mem::take(&mut inner.open) && !inner.failed;
        if !taken {
            return None;
        }
        let patient = std::mem::take(&mut inner.patient);
        inner.expects_patient =
            if patient { COMPANY_GROUPS } else { inner.expects_patient.saturating_sub(1) };
        Some(std::mem::take(&mut inner.synced))
    }

    /// The group with this number is durable. Whoever learns it here finds it told everywhere else too.
    pub(super) fn written(&self, number: u64, tell: impl FnOnce()) {
        let mut inner = self.inner.lock();
        tell();
        inner.groups = number;
        drop(inner);
        self.changed.notify_all();
    }

    /// Groups that are durable.
    pub(crate) fn groups(&self) -> u64 {
        self.inner.lock().groups
    }

    /// Waits, on a thread, until this group is durable; false if it will never be.
    pub(super) fn wait_for(&self, number: u64) -> bool {
        let mut inner = self.inner.lock();
        while inner.groups < number && !inner.failed {
            self.changed.wait(&mut inner);
        }
        inner.groups >= number
    }

    /// Applies no more calls, for this reason; what was applied is still written. The first reason stays.
    pub(crate) fn close(&self, reason: &str) {
        self.inner.lock().closed.get_or_insert_with(|| reason.into());
        self.changed.notify_all();
    }

    /// Nothing more will be written.
    pub(crate) fn fail(&self, reason: &str) {
        let mut inner = self.inner.lock();
        inner.closed.get_or_insert_with(|| reason.into());
        inner.failed = true;
        drop(inner);
        self.changed.notify_all();
    }

    /// Whether nothing more will be written.
    pub(super) fn has_failed(&self) -> bool {
        self.inner.lock().failed
    }

    /// Whether no call is applied any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.inner.lock().closed.is_some()
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

/// A call that is being applied.
pub(super) struct Entered<'a>(&'a Pipeline);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut inner = self.0.inner.lock();
        inner.entered -= 1;
        if inner.closed.is_some() {
            drop(inner);
            self.0.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_that_may_wait_goes_with_the_next_one_that_cannot() {
        let pipeline = Pipeline::default();
        assert!(!pipeline.opened(false, true), "the write thread is at work and looks by itself");
        assert_eq!(pipeline.take(), None, "nobody waits for it");
        assert!(pipeline.opened(true, false));
        assert!(!pipeline.opened(false, true));
        assert_eq!(pipeline.take(), Some(true), "both go together");
        assert_eq!(pipeline.take(), None);
    }

    #[test]
    fn call_that_may_wait_is_written_without_company_too() {
        let pipeline = Pipeline::default();
        pipeline.opened(false, true);
        assert!(pipeline.wait_for_group(), "after a while");
        assert_eq!(pipeline.take(), Some(false));
    }

    #[test]
    fn call_that_may_wait_is_written_once_somebody_waits_for_it() {
        let pipeline = Pipeline::default();
        pipeline.hurry();
        assert_eq!(pipeline.take(), None, "there was nothing to hurry for");
        pipeline.opened(false, true);
        pipeline.hurry();
        assert_eq!(pipeline.take(), Some(false));
    }

    #[test]
    fn call_that_may_wait_is_written_before_the_store_closes() {
        let pipeline = Pipeline::default();
        pipeline.opened(false, true);
        pipeline.close("enough");
        assert!(pipeline.wait_for_group());
        assert_eq!(pipeline.take(), Some(false));
        assert!(!pipeline.wait_for_group());
    }

    #[test]
    fn call_that_may_wait_wakes_a_write_thread_that_sleeps() {
        let pipeline = Pipeline::default();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| pipeline.wait_for_group());
            while !pipeline.inner.lock().asleep {
                std::thread::yield_now();
            }
            assert!(pipeline.opened(false, true));
            pipeline.wake_writer();
            assert!(writer.join().unwrap());
        });
    }

    #[test]
    fn group_opened_by_a_call_that_entered_before_the_close_is_still_written() {
        let pipeline = Pipeline::default();
        std::thread::scope(|scope| {
            let entered = pipeline.enter().unwrap();
            let writer = scope.spawn(|| pipeline.wait_for_group());
            pipeline.close("enough");
            assert_eq!(pipeline.enter().err().as_deref(), Some("enough"));
            assert!(pipeline.opened(false, false));
            pipeline.wake_writer();
            drop(entered);
            assert!(writer.join().unwrap(), "the write thread left before the group came");
        });
        assert_eq!(pipeline.take(), Some(false));
        assert_eq!(pipeline.take(), None, "it was taken");
        assert!(!pipeline.wait_for_group(), "nobody can open another");
    }
}
