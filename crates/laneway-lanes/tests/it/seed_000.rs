//! Every hole of the keyed executor this crate grew from, closed: one test per hole, named after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use laneway_lanes::table::{Mode, Version};
use laneway_lanes::{Cause, End, Failure, Lanes, Outcome, Run, Settings, TryPushError};
use tokio::sync::Semaphore;

use crate::stage::{Act, Stage, done, held, part};

fn latest() -> Settings {
    Settings { mode: Mode::Latest, ..Settings::default() }
}

fn said(text: &str) -> End<String, String> {
    End::Done(text.to_owned())
}

#[tokio::test]
async fn stale_event_on_the_free_lock_path() {
    let mut stage = Stage::new(latest());
    assert_eq!(stage.push(done("a1").generation(5)).await.await, said("a1"));
    let stale = stage.push(done("a2").generation(3)).await.await;
    assert!(matches!(stale, End::Stale { newest: Version { generation: 5, .. } }), "{stale:?}");
    assert_eq!(stage.starts(), ["a1"], "nothing ran, although nothing was running");
}

#[tokio::test]
async fn update_of_equal_generation_after_a_delete_does_not_lose_the_delete() {
    let mut stage = Stage::new(latest());
    let (first, release) = held("a1");
    let first = stage.push(first.generation(4)).await;
    assert_eq!(stage.next_start().await, "a1");
    let delete = stage.push(done("a2").generation(5).delete()).await;
    let update = stage.push(done("a3").generation(5)).await;
    release.add_permits(1);
    assert_eq!(first.await, said("a1"));
    assert_eq!(delete.await, said("a2 after a1"), "the delete runs");
    assert!(matches!(update.await, End::Stale { .. }));
}

#[tokio::test]
async fn delete_and_recreate_restarts_the_generation_at_1() {
    let mut stage = Stage::new(latest());
    let (first, release) = held("a1");
    let first = stage.push(first.generation(9).delete()).await;
    assert_eq!(stage.next_start().await, "a1");
    let recreated = stage.push(done("a2").generation(1).incarnation(1)).await;
    release.add_permits(1);
    assert_eq!(first.await, said("a1"));
    assert_eq!(recreated.await, said("a2 after a1"));
}

#[tokio::test]
async fn empty_key_does_not_leak_a_permit() {
    let settings = Settings { capacity: 4, ..Settings::default() };
    let lanes = Lanes::start(settings, |_: Run<&str, u32>| async { Outcome::<(), ()>::Done(()) });
    let lanes = lanes.expect("settings in range");
    for number in 0..100 {
        let ticket = lanes.push(("", number)).await.expect("the lanes are open");
        assert_eq!(ticket.await, End::Done(()));
    }
    let drained = lanes.drain(Duration::ZERO).await;
    assert!(drained.in_time, "nothing is left in flight");
}

#[tokio::test]
async fn limit_is_not_check_then_add() {
    const CAP: usize = 3;
    let (running, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let release = Arc::new(Semaphore::new(0));
    let settings = Settings { concurrency: CAP, workers: 4, ..Settings::default() };
    let lanes = {
        let (running, peak, release) = (Arc::clone(&running), Arc::clone(&peak), Arc::clone(&release));
        Lanes::start(settings, move |_: Run<u32, ()>| {
            let (running, peak, release) = (Arc::clone(&running), Arc::clone(&peak), Arc::clone(&release));
            async move {
                peak.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                release.acquire().await.expect("never closed").forget();
                running.fetch_sub(1, Ordering::SeqCst);
                Outcome::<(), ()>::Done(())
            }
        })
    }
    .expect("settings in range");
    let tickets = lanes.push_many((0..50).map(|key| (key, ()))).await;
    for ticket in tickets {
        release.add_permits(1);
        assert_eq!(ticket.expect("the lanes are open").await, End::Done(()));
    }
    assert_eq!(peak.load(Ordering::SeqCst), CAP);
}

#[tokio::test]
async fn capacity_is_never_exceeded_by_concurrent_submitters() {
    let stage = Stage::new(Settings { capacity: 2, ..Settings::default() });
    let (first, release_first) = held("a1");
    let (second, release_second) = held("b1");
    let (first, second) = (stage.push(first).await, stage.push(second).await);
    assert!(matches!(stage.lanes.try_push(done("c1")), Err(TryPushError::Full(_))));
    let waiting = stage.lanes.push(done("d1"));
    assert_eq!(stage.lanes.snapshot().waiting_for_capacity, 1);
    release_first.add_permits(1);
    assert_eq!(first.await, said("a1"));
    let third = waiting.await.expect("the lanes are open");
    assert_eq!(third.await, said("d1"));
    release_second.add_permits(1);
    assert_eq!(second.await, said("b1"));
}

#[tokio::test]
async fn per_key_records_are_removed_when_idle() {
    const KEYS: u32 = 300_000;
    // All keys at once, so that the table has to give a lot of room back.
    let settings = Settings { capacity: KEYS as usize, ..Settings::default() };
    let lanes = Lanes::start(settings, |_: Run<u32, ()>| async { Outcome::<(), ()>::Done(()) });
    let lanes = lanes.expect("settings in range");
    for first in (0..KEYS).step_by(1_000) {
        drop(lanes.push_many((first..first + 1_000).map(|key| (key, ()))).await);
    }
    let drained = lanes.drain(Duration::from_secs(60)).await;
    assert!(drained.in_time);
    let view = lanes.snapshot();
    assert_eq!((view.totals.done, view.table.lanes), (u64::from(KEYS), 0));
    assert!(view.table.room <= 16_384, "room for {} lanes is left", view.table.room);
}

#[tokio::test]
async fn key_is_taken_at_the_call_and_arrival_order_is_submit_order() {
    let mut stage = Stage::new(Settings { capacity: 2, ..Settings::default() });
    let (first, release) = held("a1");
    // Futures made in order and awaited in another: the calls decide, also for those that wait for room.
    let pushes = [stage.lanes.push(first), stage.lanes.push(done("a2")), stage.lanes.push(done("a3"))];
    let fourth = stage.lanes.push(done("a4"));
    release.add_permits(1);
    let fourth = fourth.await.expect("the lanes are open");
    for push in pushes.into_iter().rev() {
        drop(push.await.expect("the lanes are open"));
    }
    assert_eq!(fourth.await, said("a4"));
    assert_eq!(stage.starts(), ["a1", "a2", "a3", "a4"]);
}

#[tokio::test]
async fn panic_in_the_runner_fails_that_push_only() {
    let mut stage = Stage::new(Settings::default());
    let in_poll = stage.push(part("a1", Act::PanicInPoll)).await;
    let in_call = stage.push(part("a2", Act::PanicInCall)).await;
    let after = stage.push(done("a3")).await;
    let panicked = |message: &str| {
        let cause = Cause::Panicked(message.to_owned());
        End::Failed(Failure { cause, attempts: 1 })
    };
    assert_eq!(in_poll.await, panicked("a1 panics in the poll"));
    assert_eq!(in_call.await, panicked("a2 panics in the call"));
    assert_eq!(after.await, said("a3"), "the key lives on");
    assert_eq!(stage.starts(), ["a1", "a2", "a3"]);
}

#[tokio::test(start_paused = true)]
async fn failure_does_not_count_as_processed() {
    let stage = Stage::new(latest());
    let failed = stage.push(part("a1", Act::Fail).generation(5)).await.await;
    assert!(matches!(failed, End::Failed(_)));
    assert_eq!(stage.push(done("a2").generation(5)).await.await, said("a2"), "the failed version runs again");
    let repeated = stage.push(done("a3").generation(5)).await.await;
    assert!(matches!(repeated, End::Superseded { .. }), "the done version does not: {repeated:?}");
    let retried = stage.push(part("b1", Act::RetryUntil(3, Duration::from_secs(1)))).await;
    assert_eq!(retried.await, said("b1"), "a retry keeps the slot's newest");
}

#[tokio::test]
async fn in_memory_only_loses_nothing_silently_when_the_runtime_ends() {
    // Durability is the store's; here the promise is that no ticket is left waiting for ever.
    let (running, waiting) = std::thread::scope(|scope| {
        let tickets = scope.spawn(|| {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
            runtime.block_on(async {
                let mut stage = Stage::new(Settings::default());
                let running = stage.push(part("a1", Act::Hang)).await;
                let waiting = stage.push(done("a2")).await;
                assert_eq!(stage.next_start().await, "a1");
                (running, waiting)
            })
        });
        tickets.join().expect("the runtime ends")
    });
    assert_eq!((running.await, waiting.await), (End::Cancelled, End::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn no_hung_handler_blocks_its_key_for_ever() {
    let limit = Duration::from_secs(5);
    let stage = Stage::new(Settings { timeout: Some(limit), ..Settings::default() });
    let hung = stage.push(part("a1", Act::Hang)).await;
    let after = stage.push(done("a2")).await;
    assert_eq!(hung.await, End::Failed(Failure { cause: Cause::TimedOut(limit), attempts: 1 }));
    assert_eq!(after.await, said("a2"));
}

#[tokio::test]
async fn coalescing_is_a_choice() {
    for (mode, runs) in [(Mode::Queue, 5), (Mode::Latest, 2)] {
        let mut stage = Stage::new(Settings { mode, ..Settings::default() });
        let (first, release) = held("a1");
        drop(stage.push(first).await);
        assert_eq!(stage.next_start().await, "a1");
        for name in ["a2", "a3", "a4"] {
            drop(stage.push(done(name)).await);
        }
        let last = stage.push(done("a5")).await;
        release.add_permits(1);
        assert!(matches!(last.await, End::Done(_)));
        assert_eq!(stage.starts().len() + 1, runs, "{mode:?}");
    }
}
