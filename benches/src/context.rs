//! What every row needs to know: how long to run, where its files go, which rows are wanted.

use std::time::Duration;

use crate::place::Place;

pub(crate) struct Context {
    pub(crate) quick: bool,
    pub(crate) only: Option<String>,
    pub(crate) place: Place,
}

impl Context {
    /// Whether a row of this name is to be run.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|prefix| name.starts_with(prefix.as_str()))
    }

    /// The short value with `--quick`, the long one without.
    pub(crate) fn choose<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// A length of time in milliseconds, by mode.
    pub(crate) fn length(&self, quick_ms: u64, full_ms: u64) -> Duration {
        Duration::from_millis(self.choose(quick_ms, full_ms))
    }
}

/// Tells how far the run is; the figures themselves go to standard output.
#[expect(clippy::print_stderr, reason = "progress is for the person at the terminal")]
pub(crate) fn progress(text: &str) {
    eprintln!("laneway-bench: {text}");
}
