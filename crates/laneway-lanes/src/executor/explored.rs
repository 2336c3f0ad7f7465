//! The executor's own source once more, compiled against the locks, the clock and the tasks of a schedule explorer.
//!
//! Shuttle runs each test over many schedules of its threads and tasks, and stops when all of them wait: a lost
//! wake-up shows as a deadlock. The control at the end plants one, to show that it would be found.
#![expect(dead_code, unreachable_pub, reason = "the copy is used by the tests below only, and not exported")]
#![expect(clippy::duplicate_mod, reason = "the copy is the point: the same source with other locks")]

#[path = "attempt.rs"]
mod attempt;
#[path = "drain.rs"]
mod drain;
#[path = "entry.rs"]
mod entry;
#[path = "fence.rs"]
mod fence;
#[path = "gate.rs"]
mod gate;
#[path = "hall.rs"]
mod hall;
#[path = "hub.rs"]
mod hub;
#[path = "lanes.rs"]
mod lanes;
#[path = "outcome.rs"]
mod outcome;
#[path = "push.rs"]
mod push;
#[path = "run.rs"]
mod run;
#[path = "settings.rs"]
mod settings;
#[path = "ticket.rs"]
mod ticket;
#[path = "timekeeper.rs"]
mod timekeeper;
#[path = "visit.rs"]
mod visit;
#[path = "waiting.rs"]
mod waiting;
#[path = "worker.rs"]
mod worker;

/// Shuttle's locks in place of the real ones.
mod sync {
    pub(super) use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    pub(super) use shuttle::sync::{Mutex, MutexGuard};
    use std::sync::TryLockError;

    pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().expect("not poisoned")
    }

    /// Trying again would only add schedules that differ in nothing.
    pub(super) fn lock_brief<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        lock(mutex)
    }

    pub(super) fn lock_unshared<T>(mutex: &mut Mutex<T>) -> &mut T {
        mutex.get_mut().expect("not poisoned")
    }

    pub(super) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
        match mutex.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Poisoned(_)) => panic!("not poisoned"),
        }
    }
}

/// Shuttle's tasks, and a clock that stands still: no timer ever helps a lost wake-up out.
mod seam {
    use std::cell::RefCell;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use shuttle::future::JoinHandle;

    use crate::table::Tick;

    thread_local! {
        /// Services of the present schedule; shuttle runs all of a schedule on one thread.
        static SERVICES: RefCell<Vec<JoinHandle<()>>> = const { RefCell::new(Vec::new()) };
    }

    /// Waits until every service has ended by itself.
    pub(super) async fn all_services_end() {
        let services = SERVICES.take();
        assert!(!services.is_empty(), "an executor was started");
        for service in services {
            service.await.expect("a service ends");
        }
    }

    #[derive(Debug, Clone, Copy)]
    pub(super) struct Clock;

    impl Clock {
        pub(super) fn start() -> Self {
            Self
        }

        pub(super) fn now(&self) -> Tick {
            Tick::START
        }

        pub(super) fn timer(&self, _at: Tick) -> Timer {
            Timer
        }
    }

    #[derive(Debug)]
    pub(super) struct Timer;

    impl Future for Timer {
        type Output = ();

        fn poll(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<()> {
            Poll::Pending
        }
    }

    pub(super) fn spawn(service: impl Future<Output = ()> + Send + 'static) {
        SERVICES.with_borrow_mut(|services| services.push(shuttle::future::spawn(service)));
    }

    pub(super) fn default_workers() -> usize {
        2
    }
}

mod tests {
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll};
    use std::time::Duration;

    use shuttle::future::{block_on, yield_now};

    use super::hub::Hub;
    use super::lanes::Lanes;
    use super::outcome::{End, Outcome};
    use super::run::Run;
    use super::seam::{Clock, all_services_end};
    use super::settings::Settings;
    use super::visit::{Basket, Next, Settled, Visit};
    use super::waiting::Pushing;
    use crate::table::{Mode, Verdict};
    use shuttle::future::batch_semaphore::{BatchSemaphore, Fairness};

    const SCHEDULES: usize = 1_500;

    type Numbers = Lanes<u8, u32, u32, ()>;

    /// Drains the lanes and sees every worker off.
    fn wind_up<R: Send + 'static>(lanes: &Lanes<u8, u32, R, ()>) {
        let drained = block_on(lanes.drain(Duration::ZERO));
        assert!(drained.in_time);
        block_on(all_services_end());
    }

    /// Random schedules and schedules with few, well placed preemptions: they find different faults.
    fn explore(scenario: fn()) {
        shuttle::check_random(scenario, SCHEDULES);
        shuttle::check_pct(scenario, SCHEDULES, 3);
    }

    fn narrow() -> Settings {
        Settings { capacity: 2, concurrency: 2, workers: 2, ..Settings::default() }
    }

    /// Doubles the value; odd values take two polls.
    fn start(settings: Settings) -> Numbers {
        let handler = |run: Run<u8, u32>| async move {
            if run.value() % 2 == 1 {
                yield_now().await;
            }
            Outcome::Done(run.value() * 2)
        };
        Lanes::start(settings, handler).expect("settings in range")
    }

    async fn push_and_check(lanes: &Numbers, key: u8, values: [u32; 2]) {
        for value in values {
            let ticket = lanes.push((key, value)).await.expect("the lanes are open");
            assert_eq!(ticket.await, End::Done(value * 2));
        }
    }

    #[test]
    fn every_push_ends_under_every_schedule() {
        explore(|| {
            let lanes = start(narrow());
            let producers = [(1, [1, 2]), (1, [3, 4]), (2, [5, 6])].map(|(key, values)| {
                let lanes = lanes.clone();
                shuttle::thread::spawn(move || block_on(push_and_check(&lanes, key, values)))
            });
            producers.into_iter().for_each(|producer| producer.join().expect("a producer ends"));
            wind_up(&lanes);
            assert_eq!(lanes.snapshot().totals.done, 6);
        });
    }

    fn closed_semaphore() -> Arc<BatchSemaphore> {
        Arc::new(BatchSemaphore::new(0, Fairness::StrictlyFair))
    }

    /// More runs become ready together than a worker hands back at a time.
    #[test]
    fn runs_that_become_ready_together_all_end_under_every_schedule() {
        explore(|| {
            let gathered = closed_semaphore();
            let gate = Arc::clone(&gathered);
            let handler = move |run: Run<u8, u32>| {
                let gate = Arc::clone(&gate);
                async move {
                    gate.acquire(1).await.expect("it stays open");
                    Outcome::<u32, ()>::Done(*run.value())
                }
            };
            let settings = Settings { capacity: 4, concurrency: 4, ..narrow() };
            let lanes = Lanes::start(settings, handler).expect("settings in range");
            block_on(async {
                let mut tickets = Vec::new();
                for key in 0..4 {
                    tickets.push(lanes.push((key, u32::from(key))).await.expect("open"));
                }
                gathered.release(4);
                for (value, ticket) in (0..).zip(tickets) {
                    assert_eq!(ticket.await, End::Done(value));
                }
            });
            wind_up(&lanes);
        });
    }

    #[test]
    fn order_of_waiting_pushes_holds_under_every_schedule() {
        explore(|| {
            let seen = Arc::new(super::sync::Mutex::new(Vec::new()));
            let log = Arc::clone(&seen);
            let lanes = Lanes::start(narrow(), move |run: Run<u8, u32>| {
                let log = Arc::clone(&log);
                async move {
                    log.lock().expect("not poisoned").push(*run.value());
                    yield_now().await;
                    Outcome::<(), ()>::Done(())
                }
            })
            .expect("settings in range");
            let pushes: Vec<_> = (0..5).map(|value| lanes.push((1, value))).collect();
            block_on(async {
                for push in pushes.into_iter().rev() {
                    assert_eq!(push.await.expect("the lanes are open").await, End::Done(()));
                }
            });
            wind_up(&lanes);
            assert_eq!(*seen.lock().expect("not poisoned"), [0, 1, 2, 3, 4]);
        });
    }

    #[test]
    fn withdrawn_push_leaks_no_room_under_any_schedule() {
        explore(|| {
            let lanes = start(Settings { capacity: 1, ..narrow() });
            let other = lanes.clone();
            let fickle = shuttle::thread::spawn(move || {
                let push = other.push((1, 1));
                shuttle::thread::yield_now();
                drop(push);
            });
            block_on(push_and_check(&lanes, 2, [2, 3]));
            fickle.join().expect("it ends");
            wind_up(&lanes);
            assert_eq!(lanes.snapshot().waiting_for_capacity, 0);
        });
    }

    #[test]
    fn pause_resume_and_cancel_strand_nobody_under_any_schedule() {
        explore(|| {
            let lanes = start(narrow());
            let other = lanes.clone();
            let operator = shuttle::thread::spawn(move || {
                other.pause(1);
                other.cancel(&2);
                other.resume(&1);
            });
            block_on(async {
                let first = lanes.push((1, 1)).await.expect("the lanes are open");
                let second = lanes.push((2, 2)).await.expect("the lanes are open");
                assert_eq!(first.await, End::Done(2));
                let end = second.await;
                assert!(matches!(end, End::Done(4) | End::Cancelled), "{end:?}");
            });
            operator.join().expect("it ends");
            wind_up(&lanes);
        });
    }

    #[test]
    fn newest_push_always_runs_in_latest_mode_under_every_schedule() {
        explore(|| {
            let lanes = start(Settings { mode: Mode::Latest, ..narrow() });
            let other = lanes.clone();
            let older =
                shuttle::thread::spawn(move || drop(other.push(super::push::Push::new(1, 1).generation(1))));
            let newest = lanes.push(super::push::Push::new(1, 4).generation(2));
            let end = block_on(async { newest.await.expect("the lanes are open").await });
            assert_eq!(end, End::Done(8));
            older.join().expect("it ends");
            wind_up(&lanes);
        });
    }

    #[test]
    fn last_handle_dropped_ends_every_worker_under_every_schedule() {
        explore(|| {
            let lanes = start(narrow());
            let ticket = block_on(lanes.push((1, 1))).expect("the lanes are open");
            let other = lanes.clone();
            let holder = shuttle::thread::spawn(move || drop(other));
            drop(lanes);
            assert_eq!(block_on(ticket), End::Done(2));
            holder.join().expect("it ends");
            block_on(all_services_end());
        });
    }

    /// A worker reduced to its visits.
    struct Visitor {
        hub: Arc<Hub<u8, u32, (), ()>>,
        basket: Basket<u8, u32, (), ()>,
        /// Registers itself after letting go of the locks under which it looked.
        parks_late: bool,
    }

    impl Future for Visitor {
        type Output = ();

        fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
            let this = &mut *self;
            loop {
                let visit = Visit { parks: !this.parks_late, ..Visit::patient(0, context.waker()) };
                match this.hub.exchange(&mut this.basket, &visit).0 {
                    Next::Finished => return Poll::Ready(()),
                    Next::Parked => return Poll::Pending,
                    Next::Nothing => {
                        this.hub.gate().park(0, context.waker());
                        return Poll::Pending;
                    }
                    Next::Busy => panic!("a visitor waits for the hall"),
                    Next::Work | Next::WorkAfterOthers => {
                        let turns = this.basket.batch.drain(..);
                        let done = turns.map(|turn| Settled {
                            turn,
                            verdict: Verdict::Done,
                            end: Some(End::Done(())),
                            ending: None,
                        });
                        this.basket.settled.extend(done);
                    }
                }
            }
        }
    }

    fn one_visitor(parks_late: bool) {
        let settings = Settings { workers: 1, ..narrow() };
        let hub = Arc::new(Hub::new(settings, Clock::start()));
        let visitor = Visitor { hub: Arc::clone(&hub), basket: Basket::new(1), parks_late };
        let worker = shuttle::future::spawn(visitor);
        block_on(async {
            let ticket = Pushing::start(&hub, (1, 1).into()).await.expect("the lanes are open");
            assert_eq!(ticket.await, End::Done(()));
            hub.close();
            worker.await.expect("the worker ends");
        });
    }

    #[test]
    fn worker_that_parks_under_the_lock_is_never_missed() {
        explore(|| one_visitor(false));
    }

    #[test]
    fn control_a_worker_that_parks_late_is_caught() {
        let caught = std::panic::catch_unwind(|| shuttle::check_random(|| one_visitor(true), SCHEDULES));
        let fault = caught.expect_err("the planted lost wake-up is found");
        let message = fault.downcast_ref::<String>().map_or("", String::as_str);
        assert!(message.contains("deadlock"), "found as a deadlock, not as {message:?}");
    }
}
