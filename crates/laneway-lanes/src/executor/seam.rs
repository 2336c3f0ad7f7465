//! The seam to the runtime: clock, timers, spawning, and how many workers a machine wants.
//!
//! The only file of this crate that names tokio's time and tasks. Tests drive it with tokio's paused clock.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::table::Tick;

/// A clock that starts with the executor. Follows tokio's clock, so that tests can stop and move it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    start: tokio::time::Instant,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the seam is where the executor reads the clock")]
    pub(super) fn start() -> Self {
        Self { start: tokio::time::Instant::now() }
    }

    #[expect(clippy::disallowed_methods, reason = "the seam is where the executor reads the clock")]
    pub(super) fn now(&self) -> Tick {
        Tick::START.after(self.start.elapsed())
    }

    /// Becomes ready at `at`.
    #[expect(clippy::disallowed_methods, reason = "the seam is where the executor sets timers")]
    pub(super) fn timer(&self, at: Tick) -> Timer {
        let wait = at.since(self.now());
        Timer { sleep: Box::pin(tokio::time::sleep(wait)) }
    }
}

/// A wait for one moment.
#[derive(Debug)]
pub(super) struct Timer {
    sleep: Pin<Box<tokio::time::Sleep>>,
}

impl Future for Timer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.sleep.as_mut().poll(context)
    }
}

/// Runs a service on the current runtime. It ends by itself when its hub has finished.
#[expect(clippy::disallowed_methods, reason = "the seam is where the executor spawns its services")]
pub(super) fn spawn(service: impl Future<Output = ()> + Send + 'static) {
    drop(tokio::spawn(service));
}

/// One worker per processor, at least two, so that a handler that holds a thread for a while never holds all of them.
pub(super) fn default_workers() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get).max(2)
}
