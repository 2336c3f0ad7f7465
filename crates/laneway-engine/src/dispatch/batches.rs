//! Batches that wait to be full, for a while (`within`).
//!
//! A head whose batch is not full is put off until its time is over: nothing polls it, and a batch that is full before
//! starts at once. Without `within` none of this happens.

use std::time::Duration;

use laneway_core::{LaneName, Steady};

use super::seat::Seat;
use super::settings::Batch;
use crate::lane::LaneTurn;
use crate::service::Now;

impl Seat {
    /// How long batches wait to be full, and for how many of what.
    fn batch_wait(&self) -> Option<(Batch, usize, Duration)> {
        match self.settings.batch {
            batch @ (Batch::Lane { max, within } | Batch::Lanes { max, within })
                if !within.is_zero() && !self.remote =>
            {
                Some((batch, max, within))
            }
            _ => None,
        }
    }

    /// Until when the batch of a head waits for more events of its lane; `None` means it runs now.
    pub(super) fn batch_waits_until(&self, turn: &LaneTurn, now: Now) -> Option<Steady> {
        let Some((Batch::Lane { .. }, max, within)) = self.batch_wait() else { return None };
        let memo = self.book.memo(&turn.key)?;
        let until = memo.runnable_since?.after(within);
        let again = memo.record.as_ref().is_some_and(|record| record.attempts > 0);
        let len = 1 + self.batch_behind(turn, max - 1).len();
        // What is in its siding, or must not start yet, comes with a later batch: waiting brings nothing.
        let grows = len < max && len == self.book.len_of(&turn.key) && !memo.more && !again;
        let expires = turn.payload.event.expires_at.is_some();
        (grows && !expires && until > now.steady && !self.is_draining()).then_some(until)
    }

    /// Until when the batch of a head was put off, because it is not full.
    pub(super) fn batch_put_off_until(&self, lane: &LaneName, now: Now) -> Option<Steady> {
        let Some((Batch::Lane { .. }, _, within)) = self.batch_wait() else { return None };
        let memo = self.book.memo(lane).filter(|memo| memo.batch_waits)?;
        Some(memo.runnable_since?.after(within)).filter(|until| *until > now.steady)
    }

    /// An event joined a lane in memory: a batch that waits for it may be full now.
    pub(super) fn batch_grew(&mut self, lane: &LaneName) {
        let Some((Batch::Lane { .. }, max, _)) = self.batch_wait() else { return };
        let waits = self.book.memo(lane).is_some_and(|memo| memo.batch_waits);
        if waits
            && self.book.len_of(lane) >= max
            && let Some(turn) = self.book.start_lane(lane)
        {
            self.book.memo_mut(lane).batch_waits = false;
            self.granted.push_back(turn);
        }
    }

    /// Whether a batch over lanes waits for more of them.
    pub(super) fn waits_for_lanes(&mut self, now: Now) -> bool {
        let Some((Batch::Lanes { .. }, max, within)) = self.batch_wait() else { return false };
        let ready = self.ready();
        let since = *self.lanes_since.get_or_insert(now.steady);
        if ready == 0 || ready >= max || now.steady >= since.after(within) {
            self.lanes_since = None;
            return false;
        }
        true
    }

    /// Until when a batch over lanes waits for more of them.
    pub(super) fn lanes_wait_until(&self, now: Now) -> Option<Steady> {
        let (_, _, within) = self.batch_wait()?;
        self.lanes_since.map(|since| since.after(within)).filter(|at| *at > now.steady)
    }

    /// When a batch over lanes that is not full runs all the same.
    pub(crate) fn next_by_batch(&mut self, now: Now) -> Option<Steady> {
        self.batch_wait()?;
        if !self.can_start(now) {
            self.lanes_since = None;
        }
        // One whose time is over waits for a place, which wakes it.
        self.lanes_wait_until(now)
    }
}
