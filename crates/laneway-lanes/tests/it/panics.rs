//! Code of the user that panics where nobody expects it: destructors, panic payloads, keys. One push may pay for it,
//! never another one, and no ticket waits for ever.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use laneway_lanes::table::Why;
use laneway_lanes::{Cause, End, Failure, Lanes, Outcome, Run, Settings};

/// Panics when dropped, if it is armed.
#[derive(Debug)]
struct Bomb(bool);

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(!self.0 || std::thread::panicking(), "the bomb goes off");
    }
}

/// A key that panics at its n-th clone or comparison.
#[derive(Debug)]
struct Moody {
    name: u32,
    clones_left: Arc<AtomicU32>,
    looks_left: Arc<AtomicU32>,
}

impl Moody {
    fn new(name: u32) -> Self {
        let endless = || Arc::new(AtomicU32::new(u32::MAX));
        Self { name, clones_left: endless(), looks_left: endless() }
    }

    fn cloned_at_most(mut self, times: u32) -> Self {
        self.clones_left = Arc::new(AtomicU32::new(times));
        self
    }

    fn compared_at_most(mut self, times: u32) -> Self {
        self.looks_left = Arc::new(AtomicU32::new(times));
        self
    }
}

fn spend(left: &AtomicU32) {
    let spent = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
    spent.expect("the key is in a mood");
}

impl Clone for Moody {
    fn clone(&self) -> Self {
        spend(&self.clones_left);
        let (clones_left, looks_left) = (Arc::clone(&self.clones_left), Arc::clone(&self.looks_left));
        Self { name: self.name, clones_left, looks_left }
    }
}

impl PartialEq for Moody {
    fn eq(&self, other: &Self) -> bool {
        spend(&self.looks_left);
        spend(&other.looks_left);
        self.name == other.name
    }
}

impl Eq for Moody {}

impl Hash for Moody {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

type MoodyLanes = Lanes<Moody, u32, u32, String>;

fn moody_lanes() -> MoodyLanes {
    let settings = Settings { workers: 2, ..Settings::default() };
    let echo = |run: Run<Moody, u32>| async move { Outcome::Done(*run.value()) };
    Lanes::start(settings, echo).expect("settings in range")
}

async fn end_of(lanes: &MoodyLanes, key: Moody, value: u32) -> End<u32, String> {
    lanes.push((key, value)).await.expect("the lanes are open").await
}

fn assert_mood<R: std::fmt::Debug>(end: &End<R, String>) {
    let panicked = matches!(end, End::Failed(Failure { cause: Cause::Panicked(message), .. }) if message.contains("mood"));
    assert!(panicked, "{end:?}");
}

#[tokio::test(start_paused = true)]
async fn a_value_that_panics_when_dropped_keeps_no_other_ticket_waiting() {
    let settings = Settings { workers: 1, ..Settings::default() };
    let handler = |_: Run<u32, Bomb>| async { Outcome::<(), ()>::Done(()) };
    let lanes = Lanes::start(settings, handler).expect("settings in range");
    let mut tickets = Vec::new();
    for key in 0..200 {
        let armed = key % 20 == 3;
        let ticket = lanes.push((key, Bomb(armed))).await.expect("the lanes are open");
        // Without its ticket a push is the last to hold its value.
        if armed { drop(ticket) } else { tickets.push(ticket) }
    }
    for ticket in tickets {
        assert_eq!(ticket.await, End::Done(()));
    }
    assert!(lanes.drain(Duration::from_secs(1)).await.in_time);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_value_that_panics_when_dropped_keeps_no_other_ticket_waiting() {
    let handler = |_: Run<u32, Bomb>| async { Outcome::<(), ()>::Done(()) };
    let lanes = Lanes::start(Settings::default(), handler).expect("settings in range");
    lanes.pause(1);
    drop(lanes.push((1, Bomb(true))).await.expect("the lanes are open"));
    let behind = lanes.push((1, Bomb(false))).await.expect("the lanes are open");
    assert_eq!(lanes.cancel(&1), (2, 0));
    assert_eq!(behind.await, End::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn an_error_that_panics_when_dropped_is_retried_all_the_same() {
    let handler = |run: Run<u32, u32>| async move {
        match run.attempt() {
            1 => Outcome::Retry { after: Duration::ZERO, error: Bomb(true) },
            _ => Outcome::Done(*run.value()),
        }
    };
    let lanes = Lanes::start(Settings::default(), handler).expect("settings in range");
    for value in [7, 8] {
        let ticket = lanes.push((1, value)).await.expect("the lanes are open");
        assert_eq!(ticket.await.done(), Some(value));
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_payload_that_panics_when_dropped_fails_its_push_only() {
    let handler = |run: Run<u32, bool>| async move {
        if *run.value() {
            std::panic::panic_any(Bomb(true));
        }
        Outcome::<(), ()>::Done(())
    };
    let lanes =
        Lanes::start(Settings { workers: 1, ..Settings::default() }, handler).expect("settings in range");
    let bad = lanes.push((1, true)).await.expect("the lanes are open");
    let good = lanes.push((1, false)).await.expect("the lanes are open");
    assert!(matches!(bad.await, End::Failed(Failure { cause: Cause::Panicked(_), .. })));
    assert_eq!(good.await, End::Done(()));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_panics_when_cloned_fails_its_push_only() {
    let lanes = moody_lanes();
    // The table clones it for the turn, the worker for the run.
    for clones in 0..2 {
        assert_mood(&end_of(&lanes, Moody::new(1).cloned_at_most(clones), 1).await);
        assert_eq!(end_of(&lanes, Moody::new(1), 2).await, End::Done(2));
    }
    assert!(lanes.drain(Duration::from_secs(1)).await.in_time);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_panics_when_compared_fails_its_push_only() {
    let lanes = moody_lanes();
    lanes.pause(Moody::new(1));
    let before = lanes.push((Moody::new(1), 1)).await.expect("the lanes are open");
    assert_mood(&end_of(&lanes, Moody::new(1).compared_at_most(0), 2).await);
    assert!(lanes.resume(&Moody::new(1)));
    assert_eq!(before.await, End::Done(1));
    assert!(lanes.drain(Duration::from_secs(1)).await.in_time);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_panics_in_a_call_leaves_the_lanes_usable() {
    let lanes = moody_lanes();
    lanes.pause(Moody::new(1));
    let waiting = lanes.push((Moody::new(1), 1)).await.expect("the lanes are open");
    let calls: [&dyn Fn(&Moody) -> bool; 4] = [
        &|key| lanes.cancel(key) == (1, 0),
        &|key| lanes.why(key) == Why::Paused,
        &|key| lanes.resume(key),
        &|key| lanes.pause(Moody::new(key.name).compared_at_most(0)),
    ];
    for call in calls {
        let key = Moody::new(1).compared_at_most(0);
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| call(&key)));
        assert!(panic.is_err(), "the caller gets the panic of the key");
    }
    assert!(lanes.resume(&Moody::new(1)));
    assert_eq!(waiting.await, End::Done(1));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_panics_when_cloned_keeps_no_other_push_from_being_cancelled() {
    let lanes = moody_lanes();
    let mut tickets = Vec::new();
    for (name, clones) in [(1, u32::MAX), (2, 0), (3, u32::MAX)] {
        let key = || Moody::new(name).cloned_at_most(clones);
        lanes.pause(key());
        tickets.push(lanes.push((key(), name)).await.expect("the lanes are open"));
    }
    let drained = lanes.drain(Duration::ZERO).await;
    assert_eq!((drained.in_time, drained.ends.cancelled), (false, 3));
    for ticket in tickets {
        assert_eq!(ticket.await, End::Cancelled);
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_panics_when_cloned_does_not_keep_held_pushes_when_the_last_handle_goes() {
    let lanes = moody_lanes();
    lanes.pause(Moody::new(1).cloned_at_most(0));
    lanes.pause(Moody::new(2));
    let held = lanes.push((Moody::new(2), 2)).await.expect("the lanes are open");
    drop(lanes);
    assert_eq!(held.await, End::Cancelled);
}

#[test]
fn a_runtime_without_timers_is_refused_at_the_start() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let _inside = runtime.enter();
    let start =
        || Lanes::start(Settings::default(), |_: Run<u32, u32>| async { Outcome::<(), ()>::Done(()) });
    let panic = std::panic::catch_unwind(start).expect_err("no timers, no lanes");
    let message = panic.downcast_ref::<&str>().copied().map(str::to_owned);
    let message = message.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    assert!(message.contains("timers are disabled"), "{message}");
}
