//! Workers: who carries out runs.
//!
//! A task of its own for every run costs more than most runs do. While runs take next to no time, whoever starts them
//! also carries them out: nobody has to be woken. Otherwise a worker takes one run after the other and polls it once; a
//! run that then waits for something gets a task of its own. A worker that leaves runs behind has another one
//! called before it begins, so that a run which keeps its thread keeps nobody else: while runs wait there is always a
//! worker that has not begun, and the runtime lets it begin as soon as a thread is free.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::future::BoxFuture;
use laneway_core::Steady;
use parking_lot::Mutex;

use super::carry::Place;
use crate::service::Env;

/// A run with everything that follows from it. Answers the place it had, unless that is used up.
pub(super) type Carrying = BoxFuture<'static, Option<Place>>;

/// How long a worker goes on before it lets other tasks of its thread run.
const GOES_ON: Duration = Duration::from_micros(200);
/// A run that comes to its end, or to its first wait, within this time is brisk.
const BRISK: Duration = Duration::from_micros(20);
/// A run that keeps its thread for longer than this computes: few interruptions by the system last that long.
const COMPUTES: Duration = Duration::from_millis(2);
/// A run that is over within this time is brief.
const BRIEF: Duration = Duration::from_millis(1);

/// The workers of a processor on this node.
pub(crate) struct Workers {
    env: Env,
    waiting: Mutex<VecDeque<Carrying>>,
    /// A worker was called and has not begun.
    is_called: AtomicBool,
    brisk: Habit,
    brief: Habit,
}

impl Workers {
    pub(crate) fn new(env: Env) -> Arc<Self> {
        Arc::new(Self {
            env,
            waiting: Mutex::default(),
            is_called: AtomicBool::new(false),
            brisk: Habit::default(),
            brief: Habit::default(),
        })
    }

    /// Notes how long a run took from its start to its end.
    pub(crate) fn took(&self, time: Duration) {
        self.brief.note(time <= BRIEF);
    }

    /// Whether runs are expected to be over within a moment.
    pub(crate) fn runs_are_brief(&self) -> bool {
        self.brief.holds()
    }

    /// Whether those who start runs carry them out.
    pub(super) fn are_brisk(&self) -> bool {
        self.brisk.holds()
    }

    /// The time until which a task that starts at `now` may carry out runs before it yields its thread.
    pub(super) fn until(now: Steady) -> Steady {
        now.after(GOES_ON)
    }

    /// Has runs carried out: here and now while they are brisk, until `until` at most; the others by workers. Answers the
    /// places of those that are over.
    pub(super) fn carry_out(self: &Arc<Self>, runs: Vec<Carrying>, until: Steady) -> Vec<Place> {
        let mut free = Vec::new();
        let mut runs = runs.into_iter();
        let mut now = self.env.steady();
        while self.are_brisk()
            && now < until
            && let Some(run) = runs.next()
        {
            // A run that waits is polled again by the task it gets, so nobody needs to be woken by this first poll.
            let (place, began) = self.begin(run, &mut Context::from_waker(Waker::noop()), now);
            free.extend(place);
            now = began;
        }
        if runs.len() > 0 {
            self.waiting.lock().extend(runs);
            self.call_one();
        }
        free
    }

    fn call_one(self: &Arc<Self>) {
        if !self.is_called.swap(true, Ordering::AcqRel) {
            let workers = Arc::clone(self);
            // It ends by itself when nothing waits.
            drop(self.env.spawn(poll_fn(move |context| workers.work(context))));
        }
    }

    /// Polls runs until none waits, or for a while.
    fn work(self: &Arc<Self>, context: &mut Context<'_>) -> Poll<()> {
        self.is_called.store(false, Ordering::Release);
        let mut now = self.env.steady();
        let until = Self::until(now);
        while let Some((run, others_wait)) = self.next() {
            if others_wait {
                self.call_one();
            }
            let (place, began) = self.begin(run, context, now);
            drop(place);
            now = began;
            if others_wait && now >= until {
                break;
            }
        }
        Poll::Ready(())
    }

    /// Begins a run, and notes how long that took. Answers its place if it is over, and the time afterwards.
    fn begin(&self, mut run: Carrying, context: &mut Context<'_>, began: Steady) -> (Option<Place>, Steady) {
        let place = match run.as_mut().poll(context) {
            Poll::Ready(place) => place,
            Poll::Pending => {
                drop(self.env.spawn(run));
                None
            }
        };
        let now = self.env.steady();
        let took = now.since(began);
        if took > COMPUTES {
            // Another one like it would keep the thread of a seat, and with it the seat's commits.
            self.brisk.end();
        } else {
            self.brisk.note(took <= BRISK);
        }
        (place, now)
    }

    /// The next run, and whether others wait.
    fn next(&self) -> Option<(Carrying, bool)> {
        let mut waiting = self.waiting.lock();
        let run = waiting.pop_front()?;
        Some((run, !waiting.is_empty()))
    }
}

/// Whether runs of late had a property, as far as it says something about the next ones. A few that lack it are let pass: a
/// run takes long too when the system gives its thread to others meanwhile.
#[derive(Default)]
struct Habit(AtomicU32);

impl Habit {
    const MOST: u32 = 128;
    const ENOUGH: u32 = 64;
    /// What a run that lacks the property takes away, and so many that have it give.
    const LOSS: u32 = 32;

    fn note(&self, holds: bool) {
        let before = self.0.load(Ordering::Relaxed);
        let after = if holds { (before + 1).min(Self::MOST) } else { before.saturating_sub(Self::LOSS) };
        // Otherwise all threads would write to it for every run. What two write at one time need not be exact.
        if after != before {
            self.0.store(after, Ordering::Relaxed);
        }
    }

    /// The next runs are expected to lack the property.
    fn end(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    fn holds(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= Self::ENOUGH
    }
}

#[cfg(test)]
mod tests {
    use laneway_core::{Clock, ManualClock};

    use super::*;

    #[test]
    fn a_few_exceptions_do_not_end_a_habit_and_many_do() {
        let habit = Habit::default();
        (0..Habit::ENOUGH).for_each(|_| habit.note(true));
        assert!(habit.holds());
        for _ in 0..100 {
            (0..100).for_each(|_| habit.note(true));
            habit.note(false);
            assert!(habit.holds(), "one in a hundred");
        }
        (0..100).for_each(|run| habit.note(run % 10 != 0));
        assert!(!habit.holds(), "one in ten");
    }

    /// A seat that starts runs, on a clock that only its runs move.
    struct Starter {
        clock: ManualClock,
        workers: Arc<Workers>,
        over: Arc<AtomicU32>,
    }

    impl Starter {
        /// One whose runs have been brisk for long.
        fn brisk() -> Self {
            let clock = ManualClock::default();
            let workers = Workers::new(Env::seeded(Arc::new(clock.clone()), 7));
            (0..Habit::MOST).for_each(|_| workers.brisk.note(true));
            Self { clock, workers, over: Arc::default() }
        }

        /// Starts runs that compute for so long. Answers how many were over when it went on.
        fn start(&self, runs: &[Duration]) -> u32 {
            let before = self.over.load(Ordering::Relaxed);
            let run = |took: &Duration| -> Carrying {
                let (clock, over, took) = (self.clock.clone(), Arc::clone(&self.over), *took);
                Box::pin(async move {
                    clock.advance(took);
                    over.fetch_add(1, Ordering::Relaxed);
                    None
                })
            };
            let until = Workers::until(self.clock.steady());
            let free = self.workers.carry_out(runs.iter().map(run).collect(), until);
            assert_eq!(free.len(), 0, "they have no places");
            self.over.load(Ordering::Relaxed) - before
        }
    }

    #[tokio::test]
    async fn run_that_computes_ends_the_habit_and_those_behind_it_go_to_workers() {
        let starter = Starter::brisk();
        let [brisk, computes] = [Duration::ZERO, COMPUTES + Duration::from_micros(1)];
        assert_eq!(starter.start(&[brisk, computes, brisk, brisk]), 2, "the rest does not wait for the seat");
        assert_eq!(starter.start(&[brisk, brisk]), 0, "the next one may compute too");
    }

    #[tokio::test]
    async fn interrupted_run_does_not_end_the_habit() {
        let starter = Starter::brisk();
        let [brisk, interrupted] = [Duration::ZERO, COMPUTES];
        assert_eq!(starter.start(&[interrupted, brisk]), 1, "the seat has had its time");
        assert_eq!(starter.start(&[brisk, brisk]), 2);
    }
}
