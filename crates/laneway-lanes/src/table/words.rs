//! The small words of the table: time, priority, mode and settings.
//!
//! Plain data. Nothing here decides anything.

use std::time::Duration;

/// A moment on the caller's clock, in microseconds since a start of the caller's choice.
///
/// The table never reads a clock; whoever drives it says what time it is.
///
/// ```
/// use laneway_lanes::table::Tick;
/// use std::time::Duration;
/// let start = Tick::from_micros(1_000);
/// assert_eq!(start.after(Duration::from_millis(2)), Tick::from_micros(3_000));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tick(u64);

impl Tick {
    /// The start of the clock.
    pub const START: Tick = Tick(0);

    /// The moment `micros` microseconds after the start.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the start.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// This moment moved by `wait`; a wait beyond the end of the clock stays at the end.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(wait.as_micros()).unwrap_or(u64::MAX)))
    }

    /// How long from `earlier` to this moment; zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Tick) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// How urgent an item is. Chooses between lane heads only: it never changes the order inside a lane.
///
/// A lane is as urgent as the most urgent item waiting in it, so that an urgent push also pulls what stands before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Priority {
    /// Runs when nothing else wants to.
    Background,
    /// The usual one.
    #[default]
    Normal,
    /// Before the usual.
    High,
    /// Before everything else.
    Urgent,
}

impl Priority {
    pub(super) const LEVELS: usize = 4;

    pub(super) const fn level(self) -> usize {
        self as usize
    }

    pub(super) const fn of_level(level: usize) -> Self {
        match level {
            0 => Self::Background,
            1 => Self::Normal,
            2 => Self::High,
            _ => Self::Urgent,
        }
    }
}

/// What a lane does with an item that arrives while another waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// Every item runs, in order.
    #[default]
    Queue,
    /// One pending slot per lane: the newest generation wins, what it replaces ends superseded.
    Latest,
}

/// How a table decides.
///
/// ```
/// use laneway_lanes::table::{Mode, Settings, Table};
/// let settings = Settings { mode: Mode::Latest, remember: 1_000, ..Settings::default() };
/// let table: Table<String, &str> = Table::new(settings);
/// assert!(table.is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Queue or latest. Default: queue.
    pub mode: Mode,
    /// Items that may run at the same time, over all lanes; 0 counts as 1. Default: 1,024.
    pub concurrency: usize,
    /// Items a lane may start in a row while other lanes of its priority are ready; then it goes to the back. 0 counts as 1. Default: 16.
    pub quantum: u32,
    /// Every so many turns the lane that has been ready longest gets the turn, whatever its priority, so that
    /// nothing starves. 0 switches this off: strict priority. Default: 16.
    pub ageing: u32,
    /// Latest mode: idle keys whose newest accepted version and last done item are remembered, oldest forgotten
    /// first. A forgotten key is like a new one: an old generation of it is accepted again. Default: 100,000.
    pub remember: usize,
    /// Latest mode: keep the payload of the last done item of a remembered key, not only its version. Default: true.
    pub keep_last: bool,
    /// Latest mode: a newer push asks the running item of its lane to stop. Default: false.
    pub supersede_running: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::Queue,
            concurrency: 1_024,
            quantum: 16,
            ageing: 16,
            remember: 100_000,
            keep_last: true,
            supersede_running: false,
        }
    }
}
