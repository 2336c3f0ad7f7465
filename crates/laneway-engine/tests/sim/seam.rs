//! The seam of this test binary: it runs worlds on as many threads as there are cores, and reads what to replay.

use std::sync::atomic::{AtomicU64, Ordering};

/// Calls `each` with every number of the range, on every core, in no particular order.
pub(crate) fn on_every_core(numbers: std::ops::Range<u64>, each: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(numbers.start);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= numbers.end {
                        return;
                    }
                    each(number);
                }
            });
        }
    });
}

/// A number from the environment.
pub(crate) fn number_from(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, must be a number")))
}
