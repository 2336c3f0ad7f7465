//! Brisk runs are left to one worker; a run that holds its thread after all must not hold up the others, and runs that
//! only begin briskly are shared.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use laneway_lanes::{End, Lanes, Outcome, Run, Settings};

/// More than any worker takes at a time.
const MANY: u32 = 1_000;
/// Far longer than the help that a worker gets needs to come; only a fault makes the test wait for it.
const TOO_LONG: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_that_blocks_its_thread_gets_help_for_the_others() {
    let (last_ran, wait_for_last) = channel();
    let wait_for_last = Mutex::new(wait_for_last);
    let handler = move |run: Run<u32, bool>| {
        let mut helped = true;
        if *run.value() {
            match *run.key() {
                0 => helped = wait_for_last.lock().expect("one waits").recv_timeout(TOO_LONG).is_ok(),
                key if key == MANY => drop(last_ran.send(())),
                _ => {}
            }
        }
        std::future::ready(Outcome::<bool, ()>::Done(helped))
    };
    let settings = Settings { workers: 2, capacity: 4 * MANY as usize, ..Settings::default() };
    let lanes = Lanes::start(settings, handler).expect("settings in range");
    warm_up(&lanes, false).await;
    let mut tickets = lanes.push_many((0..=MANY).map(|key| (key, true))).await;
    let first = tickets.remove(0).expect("open");
    assert_eq!(first.await, End::Done(true), "nobody ran what the blocked worker left behind");
}

/// Lets the workers learn that runs take no time.
async fn warm_up<R: Send + 'static>(lanes: &Lanes<u32, bool, R, ()>, value: bool) {
    for ticket in lanes.push_many((0..MANY).map(|key| (key, value))).await {
        ticket.expect("open").await;
    }
}

#[tokio::test(start_paused = true)]
async fn runs_that_wait_for_something_are_shared_by_the_workers() {
    let workers = Arc::new(Mutex::new(HashSet::new()));
    let all_started = Arc::new(tokio::sync::Barrier::new(MANY as usize));
    let (seen, started) = (Arc::clone(&workers), Arc::clone(&all_started));
    let handler = move |run: Run<u32, bool>| {
        let (seen, started) = (Arc::clone(&seen), Arc::clone(&started));
        async move {
            if *run.value() {
                seen.lock().expect("nobody panics").insert(tokio::task::id());
                started.wait().await;
            }
            Outcome::<(), ()>::Done(())
        }
    };
    let settings = Settings { workers: 2, concurrency: 2 * MANY as usize, ..Settings::default() };
    let lanes = Lanes::start(settings, handler).expect("settings in range");
    warm_up(&lanes, false).await;
    warm_up(&lanes, true).await;
    assert_eq!(workers.lock().expect("nobody panics").len(), 2, "one worker kept all runs to itself");
}

/// A handler that tells when it begins and blocks its thread, for the keys that are told to.
struct Blocker {
    lanes: Lanes<u32, bool, bool, ()>,
    began: std::sync::mpsc::Receiver<()>,
    go_on: std::sync::mpsc::Sender<()>,
}

fn blocker(settings: Settings) -> Blocker {
    let ((begin, began), (go_on, wait)) = (channel(), channel());
    let wait = Arc::new(Mutex::new(wait));
    let handler = move |run: Run<u32, bool>| {
        let (begin, wait) = (begin.clone(), Arc::clone(&wait));
        async move {
            if !*run.value() {
                return Outcome::<bool, ()>::Done(true);
            }
            begin.send(()).expect("the test listens");
            Outcome::Done(wait.lock().expect("one waits").recv_timeout(TOO_LONG).is_ok())
        }
    };
    let lanes = Lanes::start(settings, handler).expect("settings in range");
    Blocker { lanes, began, go_on }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn push_beside_a_run_that_blocks_its_thread_is_run_by_another_worker() {
    let Blocker { lanes, began, go_on } = blocker(Settings { workers: 2, ..Settings::default() });
    warm_up(&lanes, false).await;
    let blocked = lanes.push((MANY, true)).await.expect("open");
    began.recv_timeout(TOO_LONG).expect("it begins");
    for key in 0..20 {
        let quick = lanes.push((key, false)).await.expect("open");
        assert_eq!(quick.await, End::Done(true));
    }
    go_on.send(()).expect("the run waits");
    assert_eq!(blocked.await, End::Done(true), "a push waited for the blocked run");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pusher_that_is_let_in_is_told_beside_a_run_that_blocks_its_thread() {
    // One batch and a few more: the first makes room, and nobody is called for the few and the one let in.
    let capacity = 70;
    let Blocker { lanes, began, go_on } = blocker(Settings { workers: 1, capacity, ..Settings::default() });
    warm_up(&lanes, false).await;
    let pushes = (0..70).map(|key| (key, key == 65));
    let mut tickets = lanes.push_many(pushes).await;
    let blocked = tickets.remove(65).expect("open");
    drop(lanes.push((MANY, false)).await.expect("open"));
    began.recv_timeout(TOO_LONG).expect("it begins");
    go_on.send(()).expect("the run waits");
    assert_eq!(blocked.await, End::Done(true), "a pusher with room waited for the blocked run");
}

/// Lanes whose brisk runs push again while the mill turns, or for a very long time.
struct Mill {
    lanes: Lanes<u32, bool, (), ()>,
    turning: Arc<AtomicBool>,
    rounds: Arc<AtomicU32>,
}

/// What the mill does while it should have stopped long ago.
const ENDLESS: u32 = 200_000;

/// Ready when it has been polled that often; asks for every poll at once.
async fn polls(mut count: u32) {
    let poll = |context: &mut Context<'_>| {
        count -= 1;
        context.waker().wake_by_ref();
        if count == 0 { Poll::Ready(()) } else { Poll::Pending }
    };
    std::future::poll_fn(poll).await;
}

/// A push of `true` takes a few polls and stops the mill.
fn mill() -> Mill {
    let (turning, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let itself: Arc<OnceLock<Lanes<u32, bool, (), ()>>> = Arc::new(OnceLock::new());
    let shared = (Arc::clone(&turning), Arc::clone(&rounds), Arc::clone(&itself));
    let handler = move |run: Run<u32, bool>| {
        let (turning, rounds, again) = shared.clone();
        async move {
            if *run.value() {
                polls(20).await;
                turning.store(false, Ordering::Relaxed);
            } else if turning.load(Ordering::Relaxed) && rounds.fetch_add(1, Ordering::Relaxed) < ENDLESS {
                let lanes = again.get().expect("it was started");
                drop(lanes.try_push((*run.key(), false)).expect("there is room"));
            }
            Outcome::<(), ()>::Done(())
        }
    };
    let lanes = Lanes::start(Settings { workers: 1, ..Settings::default() }, handler).expect("in range");
    itself.set(lanes.clone()).expect("set once");
    Mill { lanes, turning, rounds }
}

#[tokio::test(start_paused = true)]
async fn worker_lets_other_tasks_run_though_its_clock_stands_still() {
    let Mill { lanes, turning, rounds } = mill();
    turning.store(true, Ordering::Relaxed);
    drop(lanes.push((1, false)).await.expect("open"));
    while rounds.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    turning.store(false, Ordering::Relaxed);
    let rounds = rounds.load(Ordering::Relaxed);
    assert!(rounds < ENDLESS, "{rounds} runs before another task had its chance");
}

#[tokio::test(start_paused = true)]
async fn run_that_waited_goes_on_beside_full_batches_of_brisk_ones() {
    let Mill { lanes, turning, rounds } = mill();
    warm_up(&lanes, false).await;
    turning.store(true, Ordering::Relaxed);
    let slow = lanes.push((MANY, true)).await.expect("open");
    drop(lanes.push_many((0..MANY / 2).map(|key| (key, false))).await);
    assert_eq!(slow.await, End::Done(()));
    let rounds = rounds.load(Ordering::Relaxed);
    assert!(rounds < ENDLESS, "{rounds} brisk runs before the one that waited was polled again");
}
