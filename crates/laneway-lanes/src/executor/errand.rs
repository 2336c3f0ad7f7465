//! Tests of a worker that was called for a push while something else keeps it, or that leaves the push to another.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use super::gate::{Admission, Patience};
use super::hub::{Due, Hub};
use super::outcome::Outcome;
use super::push::Push;
use super::run::Run;
use super::seam::Clock;
use super::settings::Settings;
use super::visit::{Basket, Next, Visit};
use super::worker::Worker;

type TestHub = Hub<u32, u32, (), ()>;

fn hub() -> Arc<TestHub> {
    Arc::new(Hub::new(Settings { workers: 2, ..Settings::default() }, Clock::start()))
}

fn push(hub: &TestHub, key: u32) {
    assert!(matches!(hub.push(Push::new(key, 1), Patience::GiveUp), Admission::Admitted(_)));
}

#[derive(Default)]
struct Bell(AtomicBool);

impl Bell {
    fn ring(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn has_rung(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring();
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_withdraws_with_empty_hands_is_called_should_the_other_take_long() {
    let hub = hub();
    push(&hub, 1);
    let mut other = Basket::new(1);
    let (next, _) = hub.exchange(&mut other, &Visit::patient(0, Waker::noop()));
    assert_eq!((next, other.batch.len()), (Next::Work, 1), "it has a run now that may take long");
    push(&hub, 2);
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let withdraws = Visit { brisk: true, withdraws: true, ..Visit::patient(1, &waker) };
    assert_eq!(hub.exchange(&mut Basket::new(1), &withdraws).0, Next::Parked);
    let due = hub.keep_time(Waker::noop());
    let Due::At(due) = due else { panic!("nobody looks after the second push: {due:?}") };
    hub.clock.timer(due).await;
    hub.keep_time(Waker::noop());
    assert!(bell.has_rung(), "the second push waits for the run of the first");
}

/// What the handler of the next test shares with it.
#[derive(Default)]
struct Watch {
    long_run: Mutex<Option<Waker>>,
    goes_on: AtomicBool,
    quick_runs: AtomicU32,
    /// How many quick runs there had been when the long run went on, plus one.
    seen: AtomicU32,
}

/// A run of key 1 waits, and goes on for long once it is woken; the others are quick.
async fn handle(run: Run<u32, u32>, watch: Arc<Watch>) -> Outcome<(), ()> {
    if *run.key() != 1 {
        watch.quick_runs.fetch_add(1, Ordering::Relaxed);
        return Outcome::Done(());
    }
    std::future::poll_fn(|context| {
        if watch.goes_on.load(Ordering::Relaxed) {
            return Poll::Ready(());
        }
        *watch.long_run.lock().expect("one thread") = Some(context.waker().clone());
        Poll::Pending
    })
    .await;
    watch.seen.store(watch.quick_runs.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    Outcome::Done(())
}

#[tokio::test(start_paused = true)]
async fn a_worker_called_for_a_push_sees_to_it_before_its_own_runs() {
    let (hub, watch, called) = (hub(), Arc::new(Watch::default()), Arc::new(Bell::default()));
    let watched = Arc::clone(&watch);
    let mut worker = Worker::new(Arc::clone(&hub), Arc::new(move |run| handle(run, Arc::clone(&watched))), 0);
    let waker = Waker::from(Arc::clone(&called));
    let mut context = Context::from_waker(&waker);
    push(&hub, 1);
    // As often as it asks for: then it is parked.
    called.ring();
    while called.has_rung() {
        assert!(Pin::new(&mut worker).poll(&mut context).is_pending());
    }
    push(&hub, 2);
    assert!(called.has_rung(), "nobody else will be called for the push");
    watch.goes_on.store(true, Ordering::Relaxed);
    watch.long_run.lock().expect("one thread").take().expect("it waits").wake();
    assert!(Pin::new(&mut worker).poll(&mut context).is_pending());
    assert_eq!(watch.seen.load(Ordering::Relaxed), 2, "the push had to wait for the long run");
}
