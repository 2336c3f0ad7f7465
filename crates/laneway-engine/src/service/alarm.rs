//! A timer that a loop keeps: set anew only when it must ring earlier.
//!
//! A loop's next moment moves with almost every turn, mostly further away. Registering a timer each time would cost more
//! than the turn itself, so an alarm may ring too early, and the loop looks again.

use std::pin::Pin;

use laneway_core::Steady;
use tokio::time::Sleep;

use super::env::Env;

/// Rings at a moment or before it.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    set: Option<(Steady, Pin<Box<Sleep>>)>,
}

impl Alarm {
    /// Resolves at this moment at the latest.
    pub(crate) async fn ring(&mut self, env: &Env, until: Steady) {
        if self.set.as_ref().is_none_or(|(at, _)| until < *at) {
            self.set = Some((until, Box::pin(env.timer(until))));
        }
        let (_, timer) = self.set.as_mut().expect("it was just set");
        timer.await;
        self.set = None;
    }
}
