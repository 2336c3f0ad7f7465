//! The executor's settings, checked whole, and what it shows of itself.

use std::fmt;
use std::time::Duration;

use super::seam;
use crate::table::{self, Mode, Snapshot};

/// How lanes run. Plain data; fill in what differs from the default.
///
/// ```
/// use laneway_lanes::{Settings, table::Mode};
/// use std::time::Duration;
/// let settings = Settings { mode: Mode::Latest, timeout: Some(Duration::from_secs(30)), ..Settings::default() };
/// assert!(settings.check().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Every push runs, or only the newest of each key. Default: queue.
    pub mode: Mode,
    /// Handlers that may be running at the same time, over all keys. Default: 1,024.
    pub concurrency: usize,
    /// Pushes in flight (waiting and running) before `push` waits and `try_push` refuses. Default: 2,048, so
    /// that what is in flight stays in the processor's cache.
    pub capacity: usize,
    /// Tasks that take turns and poll handlers. Default: one per processor, at least 2.
    pub workers: usize,
    /// Pushes of one key that may start in a row while other keys are ready. Default: 16.
    pub quantum: u32,
    /// Every so many turns the key that has been ready longest goes first, whatever its priority; 0 is never. Default: 16.
    pub ageing: u32,
    /// Runs of one push at most, the first included, when the handler answers retry. Default: 5.
    pub attempts_max: u32,
    /// How long one run may take; then its future is dropped and the push fails. Default: no limit.
    pub timeout: Option<Duration>,
    /// How long a run that was asked to stop may go on before its future is dropped. Default: 1 s.
    pub stop_grace: Duration,
    /// Latest mode: a newer push asks the running one of its key to stop. Default: false.
    pub supersede_running: bool,
    /// Latest mode: idle keys whose newest accepted version and last done push are remembered, oldest forgotten
    /// first. A forgotten key is like a new one: an old generation of it is accepted again. Default: 100,000.
    pub remember: usize,
    /// Latest mode: remember the value of the last done push too, for the handler to see. Default: true.
    pub keep_last: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let table = table::Settings::default();
        Self {
            mode: table.mode,
            concurrency: table.concurrency,
            capacity: 2_048,
            workers: seam::default_workers(),
            quantum: table.quantum,
            ageing: table.ageing,
            attempts_max: 5,
            timeout: None,
            stop_grace: Duration::from_secs(1),
            supersede_running: table.supersede_running,
            remember: table.remember,
            keep_last: table.keep_last,
        }
    }
}

impl Settings {
    /// Checks every field and reports all faults at once.
    ///
    /// # Errors
    /// Names each field that is out of range, with its value and its limit.
    pub fn check(&self) -> Result<(), SettingsError> {
        let least_one = [
            ("concurrency", self.concurrency),
            ("capacity", self.capacity),
            ("workers", self.workers),
            ("quantum", self.quantum as usize),
            ("attempts_max", self.attempts_max as usize),
        ];
        let mut faults: Vec<String> = least_one
            .into_iter()
            .filter(|(_, value)| *value == 0)
            .map(|(field, value)| format!("{field} is {value}, must be at least 1"))
            .collect();
        if self.timeout == Some(Duration::ZERO) {
            faults.push("timeout is 0, must be longer, or absent for no limit".to_owned());
        }
        if self.supersede_running && self.mode == Mode::Queue {
            faults.push("supersede_running is true in queue mode, where nothing is superseded".to_owned());
        }
        if faults.is_empty() { Ok(()) } else { Err(SettingsError { faults }) }
    }

    pub(super) fn for_table(&self) -> table::Settings {
        table::Settings {
            mode: self.mode,
            concurrency: self.concurrency,
            quantum: self.quantum,
            ageing: self.ageing,
            remember: self.remember,
            keep_last: self.keep_last,
            supersede_running: self.supersede_running,
        }
    }
}

/// Settings that cannot be run with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsError {
    /// One fragment per fault: field, value, limit.
    pub faults: Vec<String>,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "settings: {}", self.faults.join("; "))
    }
}

impl std::error::Error for SettingsError {}

/// Ends since the start, by kind, and runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Runs that came to an answer, retries included.
    pub runs: u64,
    /// Pushes done.
    pub done: u64,
    /// Pushes failed.
    pub failed: u64,
    /// Pushes superseded.
    pub superseded: u64,
    /// Pushes that were stale.
    pub stale: u64,
    /// Pushes cancelled.
    pub cancelled: u64,
    /// Pushes expired.
    pub expired: u64,
}

/// The whole executor at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// What the lane table holds.
    pub table: Snapshot,
    /// Pushes that wait for room.
    pub waiting_for_capacity: usize,
    /// Whether pushes are refused because of a drain or shutdown.
    pub closed: bool,
    /// What has ended so far.
    pub totals: Totals,
}
