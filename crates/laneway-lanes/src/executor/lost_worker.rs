//! Tests of a worker that goes away while it is parked or on its way.

use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::entry::Awaited;
use super::gate::{Admission, Patience};
use super::hub::Hub;
use super::outcome::End;
use super::push::Push;
use super::seam::Clock;
use super::settings::Settings;
use super::visit::{Basket, Next, Visit};

#[derive(Default)]
struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Bell {
    fn has_rung(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

type TestHub = Hub<u32, u32, (), ()>;

fn parked(hub: &TestHub, worker: usize) -> Arc<Bell> {
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let (next, _) = hub.exchange(&mut Basket::new(1), &Visit::patient(worker, &waker));
    assert_eq!(next, Next::Parked);
    bell
}

fn push(hub: &TestHub) {
    assert!(matches!(hub.push(Push::new(1, 1), Patience::GiveUp), Admission::Admitted(_)));
}

fn hub() -> TestHub {
    Hub::new(Settings { workers: 2, ..Settings::default() }, Clock::start())
}

#[test]
fn a_worker_lost_on_its_way_leaves_its_errand_to_another() {
    let hub = hub();
    let (first, second) = (parked(&hub, 0), parked(&hub, 1));
    push(&hub);
    assert!(first.has_rung() && !second.has_rung());
    hub.lose_worker(0, &mut Basket::new(1));
    assert!(second.has_rung(), "the push would wait for a worker that is gone");
}

#[test]
fn a_worker_lost_while_parked_is_not_woken_for_others() {
    let hub = hub();
    let (_, second) = (parked(&hub, 0), parked(&hub, 1));
    hub.lose_worker(0, &mut Basket::new(1));
    push(&hub);
    assert!(second.has_rung(), "the push woke a worker that is gone");
}

#[test]
fn a_worker_woken_by_its_own_run_is_not_called_for_a_push() {
    let hub = hub();
    let (first, second) = (parked(&hub, 0), parked(&hub, 1));
    hub.gate().unpark(0);
    push(&hub);
    assert!(!first.has_rung() && second.has_rung(), "the push called a worker that is busy with its run");
}

thread_local! {
    /// What the next comparison of keys does besides.
    static BESIDES: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

#[derive(Clone, Debug)]
struct Watched(u32);

impl Hash for Watched {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl PartialEq for Watched {
    fn eq(&self, other: &Self) -> bool {
        if let Some(besides) = BESIDES.take() {
            besides();
        }
        self.0 == other.0
    }
}

impl Eq for Watched {}

#[test]
fn a_push_let_in_while_the_last_worker_goes_ends_with_the_others() {
    let settings = Settings { workers: 1, ..Settings::default() };
    let hub: Arc<Hub<Watched, u32, (), ()>> = Arc::new(Hub::new(settings, Clock::start()));
    let push =
        |hub: &Hub<Watched, u32, (), ()>, key| match hub.push(Push::new(Watched(key), 1), Patience::GiveUp) {
            Admission::Admitted(entry) => entry,
            refused => panic!("there is room: {refused:?}"),
        };
    push(&hub, 1);
    hub.with(|_, _| ());
    push(&hub, 1);
    // The second push is compared with the first when the hall is entered, and a third comes in meanwhile.
    let late = Arc::new(std::sync::Mutex::new(None));
    let (slot, gate) = (Arc::clone(&late), Arc::clone(&hub));
    BESIDES.set(Some(Box::new(move || *slot.lock().expect("one thread") = Some(push(&gate, 2)))));
    hub.lose_worker(0, &mut Basket::new(1));
    let entry = late.lock().expect("one thread").take().expect("it was let in");
    let end = entry.poll_end(&mut Context::from_waker(Waker::noop()));
    assert_eq!(end, Poll::Ready(End::Cancelled), "no worker is left that could end it");
}
