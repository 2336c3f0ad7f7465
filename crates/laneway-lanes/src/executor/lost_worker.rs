//! Tests of a worker that goes away while it is parked or on its way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use super::gate::{Admission, Patience};
use super::hub::Hub;
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
