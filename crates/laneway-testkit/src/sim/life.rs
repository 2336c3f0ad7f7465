//! One life of the process: its tasks end together. And the one clock of a world.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use laneway_core::{Clock, Steady, Timestamp};
use laneway_engine::service::{Mortal, TokioClock};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::record::{Log, Record};
use crate::seam;

/// One reading of the time as it really is in a world.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrueNow {
    pub(crate) steady: Steady,
    pub(crate) calendar: Timestamp,
}

impl TrueNow {
    /// The time as a machine reads it whose clocks are off.
    pub(crate) fn read_with(self, skew: Skew) -> Self {
        let steady = self.steady.0 + self.steady.0 * skew.fast / 1_000_000;
        Self {
            steady: Steady(steady),
            calendar: Timestamp(self.calendar.0.saturating_add_signed(skew.ahead)),
        }
    }
}

/// Simulated time. It may be read wrongly, for the bug that reads the clock of whichever machine asks.
#[derive(Debug)]
pub(crate) struct SimClock {
    clock: TokioClock,
    skew: AtomicU64,
    /// When it was last asked, and how often at that moment.
    asked_at: AtomicU64,
    asked: AtomicU64,
}

/// Whoever asks for the time more often while it stands still turns in a circle.
const ASKED_MAX: u64 = 300_000;

impl SimClock {
    pub(crate) fn start() -> Self {
        let zero = || AtomicU64::new(0);
        Self { clock: TokioClock::start(), skew: zero(), asked_at: zero(), asked: zero() }
    }

    /// Whether time stood still while somebody turned in a circle.
    pub(crate) fn stood_still(&self) -> bool {
        self.asked.load(Ordering::Relaxed) >= ASKED_MAX
    }

    fn count(&self, now: u64) {
        if self.asked_at.swap(now, Ordering::Relaxed) != now && !self.stood_still() {
            self.asked.store(0, Ordering::Relaxed);
        }
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        // Again and again, until whoever turns has asked.
        assert!(
            asked == 0 || !asked.is_multiple_of(ASKED_MAX),
            "time stands still and somebody turns in a circle"
        );
    }

    pub(crate) fn true_now(&self) -> TrueNow {
        TrueNow { steady: self.clock.steady(), calendar: self.clock.calendar() }
    }

    /// From now on everybody who asks is told a time that is so much later.
    pub(crate) fn set_skew(&self, skew: Duration) {
        self.skew.store(u64::try_from(skew.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

impl Clock for SimClock {
    fn calendar(&self) -> Timestamp {
        Timestamp(self.clock.calendar().0 + self.skew.load(Ordering::Relaxed))
    }

    fn steady(&self) -> Steady {
        self.count(self.clock.steady().0);
        Steady(self.clock.steady().0 + self.skew.load(Ordering::Relaxed))
    }

    fn epoch(&self) -> u128 {
        self.clock.epoch()
    }
}

/// The clocks of the machine at one place: its wall clock is off, and its steady clock drifts.
#[derive(Debug)]
pub(crate) struct NodeClock {
    world: Arc<SimClock>,
    skew: Mutex<Skew>,
    /// Microseconds that the steady clock did not count, for the bug of one that stands still while the machine sleeps.
    missed: AtomicU64,
}

/// How the clocks of a machine go wrong.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Skew {
    /// Microseconds by which the wall clock is ahead of the store's.
    pub(crate) ahead: i64,
    /// Millionths by which the steady clock is too fast.
    pub(crate) fast: u64,
}

impl Skew {
    /// The same after the wall clock was set.
    pub(crate) fn set_by(self, micros: i64) -> Self {
        Self { ahead: self.ahead + micros, ..self }
    }
}

impl NodeClock {
    pub(crate) fn new(world: Arc<SimClock>, skew: Skew) -> Arc<Self> {
        Arc::new(Self { world, skew: Mutex::new(skew), missed: AtomicU64::new(0) })
    }

    fn skew(&self) -> Skew {
        *self.skew.lock()
    }

    /// So much time passed and the steady clock did not count it.
    pub(crate) fn miss(&self, length: Duration) {
        self.missed.fetch_add(u64::try_from(length.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

impl Clock for NodeClock {
    fn calendar(&self) -> Timestamp {
        let (steady, calendar) = (Steady(0), self.world.calendar());
        TrueNow { steady, calendar }.read_with(self.skew()).calendar
    }

    fn steady(&self) -> Steady {
        let (steady, calendar) = (self.world.steady(), Timestamp(0));
        let read = TrueNow { steady, calendar }.read_with(self.skew()).steady;
        Steady(read.0 - self.missed.load(Ordering::Relaxed))
    }

    fn epoch(&self) -> u128 {
        self.world.epoch()
    }
}

/// One life of the process.
pub(crate) struct Life {
    pub(crate) number: u32,
    tasks: Mortal,
    clock: Arc<NodeClock>,
    /// The steady clock stands still while this life is frozen.
    sleeps: bool,
    log: Arc<Log>,
    dead: AtomicBool,
    died: Notify,
}

impl Life {
    pub(crate) fn new(
        number: u32,
        tasks: Mortal,
        clock: Arc<NodeClock>,
        log: Arc<Log>,
        sleeps: bool,
    ) -> Arc<Self> {
        log.push(Record::Began { life: number, skew: clock.skew() });
        let (dead, died) = (AtomicBool::new(false), Notify::new());
        Arc::new(Self { number, tasks, clock, sleeps, log, dead, died })
    }

    /// Ends everything of this life at once. Whoever calls it from a task of this life must then wait for ever.
    pub(crate) fn die(&self, why: &'static str) {
        if !self.dead.swap(true, Ordering::Relaxed) {
            self.log.push(Record::Died { life: self.number, why });
            self.tasks.die();
            self.died.notify_one();
        }
    }

    /// Sets the wall clock of its machine.
    pub(crate) fn set_clock(&self, by_micros: i64) {
        let mut skew = self.clock.skew.lock();
        *skew = skew.set_by(by_micros);
    }

    /// Nothing of this life goes on for so long, while time does.
    pub(crate) fn freeze(&self, length: Duration) {
        self.tasks.freeze();
        let (tasks, clock, sleeps) = (self.tasks.clone(), Arc::clone(&self.clock), self.sleeps);
        drop(seam::spawn(async move {
            seam::pass(length).await;
            if sleeps {
                clock.miss(length);
            }
            tasks.thaw();
        }));
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    /// Waits for the end of this life.
    pub(crate) async fn death(&self) {
        if !self.is_dead() {
            self.died.notified().await;
        }
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }
}
