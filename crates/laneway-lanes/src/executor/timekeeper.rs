//! The timekeeper: lets time pass in the table when a back-off ends or a push expires.
//!
//! One per executor, asleep while no moment is due.

use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::hub::{Due, Hub};
use super::seam::Timer;
use crate::table::Tick;

pub(super) struct Timekeeper<K, V, R, E> {
    hub: Arc<Hub<K, V, R, E>>,
    timer: Option<(Tick, Timer)>,
}

impl<K, V, R, E> Timekeeper<K, V, R, E> {
    pub(super) fn new(hub: Arc<Hub<K, V, R, E>>) -> Self {
        Self { hub, timer: None }
    }
}

impl<K: Hash + Eq + Clone, V, R, E> Future for Timekeeper<K, V, R, E> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        loop {
            let at = match this.hub.keep_time(context.waker()) {
                Due::NeverAgain => return Poll::Ready(()),
                Due::Unknown => {
                    this.timer = None;
                    return Poll::Pending;
                }
                Due::At(at) => at,
            };
            if this.timer.as_ref().is_none_or(|(set, _)| *set != at) {
                this.timer = Some((at, this.hub.clock.timer(at)));
            }
            let waits =
                this.timer.as_mut().is_some_and(|(_, timer)| Pin::new(timer).poll(context).is_pending());
            if waits {
                return Poll::Pending;
            }
            this.timer = None;
        }
    }
}
