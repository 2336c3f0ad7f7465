//! Stopping runs and lanes: deadline, cancel, pause.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use laneway_lanes::{Cause, End, Failure, Lanes, Outcome, Run, Settings};
use tokio::sync::Notify;

use crate::stage::{Act, Stage, done, held, part};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn run_that_takes_too_long_is_dropped_and_its_token_says_so() {
    let (tokens, mut token) = tokio::sync::mpsc::unbounded_channel();
    let settings = Settings { timeout: Some(SECOND), ..Settings::default() };
    let lanes = Lanes::start(settings, move |run: Run<&str, ()>| {
        let tokens = tokens.clone();
        async move {
            assert!(run.time_left().is_some_and(|left| left <= SECOND));
            tokens.send(run.cancel_token()).expect("the test listens");
            std::future::pending::<Outcome<(), ()>>().await
        }
    })
    .expect("settings in range");
    let end = lanes.push(("a", ())).await.expect("the lanes are open").await;
    assert_eq!(end, End::Failed(Failure { cause: Cause::TimedOut(SECOND), attempts: 1 }));
    assert!(token.recv().await.expect("the handler ran").is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn cancel_ends_what_waits_and_stops_what_runs() {
    let mut stage = Stage::new(Settings::default());
    let running = stage.push(part("a1", Act::Hang)).await;
    let waiting = stage.push(done("a2")).await;
    let other = stage.push(done("b1")).await;
    assert_eq!(stage.next_start().await, "a1");
    assert_eq!(stage.lanes.cancel(&"a"), (1, 1));
    assert_eq!(waiting.await, End::Cancelled);
    assert_eq!(running.await, End::Cancelled, "dropped after the grace");
    assert!(other.await.done().is_some());
    assert!(stage.push(done("a3")).await.await.done().is_some(), "the lane lives on");
}

#[tokio::test]
async fn handler_that_listens_to_its_token_ends_by_itself() {
    let mut stage = Stage::new(Settings { stop_grace: 3_600 * SECOND, ..Settings::default() });
    let seen = Arc::new(Notify::new());
    let running = stage.push(part("a1", Act::HangUntilCancelled(Arc::clone(&seen)))).await;
    assert_eq!(stage.next_start().await, "a1");
    assert_eq!(stage.lanes.cancel(&"a"), (0, 1));
    seen.notified().await;
    let cause = Cause::Handler("a1 gave up".to_owned());
    assert_eq!(running.await, End::Failed(Failure { cause, attempts: 1 }), "its own answer counts");
}

#[tokio::test]
async fn one_push_of_a_lane_can_be_cancelled() {
    let mut stage = Stage::new(Settings::default());
    let (first, release) = held("a1");
    let first = stage.push(first).await;
    let second = stage.push(done("a2")).await;
    let third = stage.push(done("a3")).await;
    assert_eq!(stage.lanes.cancel_push(&"a", second.id()), (1, 0));
    assert_eq!(second.await, End::Cancelled);
    release.add_permits(1);
    assert!(first.await.done().is_some());
    assert!(third.await.done().is_some());
    assert_eq!(stage.starts(), ["a1", "a3"]);
}

#[tokio::test]
async fn paused_lane_waits_for_its_resume_while_others_run() {
    let mut stage = Stage::new(Settings::default());
    assert!(stage.lanes.pause("a"));
    let held_back = stage.push(done("a1")).await;
    assert!(stage.push(done("b1")).await.await.done().is_some());
    assert!(stage.lanes.resume(&"a"));
    assert!(held_back.await.done().is_some());
    assert_eq!(stage.starts(), ["b1", "a1"]);
}

#[tokio::test]
async fn panic_in_the_destructor_of_a_handler_is_contained_too() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("the bomb goes off");
        }
    }
    let lanes = Lanes::start(Settings::default(), |run: Run<&str, bool>| async move {
        let bomb = run.value().then(|| Bomb);
        tokio::task::yield_now().await;
        drop(bomb);
        Outcome::<(), ()>::Done(())
    })
    .expect("settings in range");
    let bad = lanes.push(("a", true)).await.expect("open").await;
    let cause = Cause::Panicked("the bomb goes off".to_owned());
    assert_eq!(bad, End::Failed(Failure { cause, attempts: 1 }));
    assert_eq!(lanes.push(("a", false)).await.expect("open").await, End::Done(()));
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_cancel_leaves_nothing_behind() {
    let handler = |run: Run<u32, u32>| async move {
        let token = run.cancel_token();
        let mut kept = Vec::new();
        for _ in 0..100 {
            let bell = Arc::new(Bell);
            let mut wait = Box::pin(token.cancelled());
            let waker = Waker::from(Arc::clone(&bell));
            assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            kept.push(Arc::downgrade(&bell));
        }
        Outcome::<usize, ()>::Done(kept.iter().filter(|bell| bell.strong_count() > 0).count())
    };
    let lanes = Lanes::start(Settings::default(), handler).expect("settings in range");
    let ticket = lanes.push((1, 1)).await.expect("the lanes are open");
    assert_eq!(ticket.await, End::Done(0), "a long run that waits now and then must not gather wakers");
}

struct Bell;

impl Wake for Bell {
    fn wake(self: Arc<Self>) {}
}

#[tokio::test(start_paused = true)]
async fn a_deadline_counts_from_the_call_of_its_handler() {
    const STEP: Duration = Duration::from_millis(10);
    let settings = Settings { workers: 1, timeout: Some(3 * STEP), ..Settings::default() };
    let release = Arc::new(Notify::new());
    let released = Arc::clone(&release);
    let handler = move |run: Run<u32, u32>| {
        let released = Arc::clone(&released);
        async move {
            match run.value() {
                0..63 => {
                    // Takes its time without giving up its turn.
                    let mut step = Box::pin(tokio::time::advance(STEP));
                    std::future::poll_fn(|context| Poll::Ready(step.as_mut().poll(context).is_ready())).await;
                }
                63 => released.notified().await,
                _ => {}
            }
            Outcome::<(), ()>::Done(())
        }
    };
    let lanes = Lanes::start(settings, handler).expect("settings in range");
    // Cheap turns first, so that the worker takes many at once, then a batch in which the last one is late.
    for ticket in lanes.push_many((0..1_000).map(|key| (key, 1_000))).await {
        assert_eq!(ticket.expect("the lanes are open").await, End::Done(()));
    }
    let mut tickets = lanes.push_many((0..64).map(|key| (key, key))).await;
    let last = tickets.pop().expect("64 pushes").expect("the lanes are open");
    for ticket in tickets {
        assert_eq!(ticket.expect("the lanes are open").await, End::Done(()));
    }
    tokio::time::advance(STEP).await;
    release.notify_one();
    assert_eq!(last.await, End::Done(()), "the last turn does not pay for those before it in its batch");
}
