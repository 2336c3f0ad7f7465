//! Cases about the third seam: hints that something may have changed.

use std::time::Duration;

use laneway_core::{Seat, Topic};

use crate::bench::{Bench, delayed};
use crate::seam;

/// Seam wake-ups: an announcement before the wait is not missed.
pub async fn an_announcement_before_the_wait_is_not_missed(bench: &Bench) {
    let topic = Topic::Shard(bench.place().await.shard);
    bench.wakeups().announce(topic).await.expect("announced");
    let seen = bench.wakeups().wait(topic, 0).await.expect("woken");
    assert!(seen > 0);
}

/// Seam wake-ups: an announcement between two waits is not missed.
pub async fn an_announcement_between_two_waits_is_not_missed(bench: &Bench) {
    let topic = Topic::Seat(bench.place().await.seat);
    let wakeups = bench.wakeups();
    let mut seen = 0;
    for _ in 0..3 {
        wakeups.announce(topic).await.expect("announced");
        let next = wakeups.wait(topic, seen).await.expect("woken");
        assert!(next > seen, "points grow: {next} after {seen}");
        seen = next;
    }
}

/// Seam wake-ups: everybody who waits for a topic is woken.
pub async fn everybody_who_waits_is_woken(bench: &Bench) {
    let place = bench.place().await;
    let topic = Topic::Shard(place.shard);
    let waiters: Vec<_> = (0..4)
        .map(|_| {
            let wakeups = bench.wakeups();
            seam::spawn(async move { wakeups.wait(topic, 0).await.is_ok() })
        })
        .collect();
    // Announced again and again, because a waiter may begin late and a hint may be lost: nobody sleeps.
    while !waiters.iter().all(|waiter| waiter.is_finished()) {
        bench.wakeups().announce(topic).await.expect("announced");
        tokio::task::yield_now().await;
    }
    for waiter in waiters {
        assert!(waiter.await.expect("a waiter does not panic"));
    }
}

/// Seam wake-ups: a delayed draft is announced like an event, because somebody must promote it when it is due.
pub async fn delayed_draft_wakes_the_owner_of_its_shard(bench: &Bench) {
    let place = bench.place().await;
    let (topic, wakeups) = (Topic::Shard(place.shard), bench.wakeups());
    wakeups.announce(topic).await.expect("announced");
    let seen = wakeups.wait(topic, 0).await.expect("woken");
    bench.send(&place, vec![delayed("a", "1", Duration::from_secs(60))]).await;
    let next = wakeups.wait(topic, seen).await.expect("woken");
    assert!(next > seen, "points grow: {next} after {seen}");
}

/// Seam wake-ups: a wait that is dropped harms neither the store nor later waits.
pub async fn a_dropped_wait_is_harmless(bench: &Bench) {
    let place = bench.place().await;
    let topic = Topic::Seat(Seat { ..place.seat });
    let wakeups = bench.wakeups();
    for _ in 0..100 {
        let mut wait = wakeups.wait(topic, 0);
        // Polled once, so that it is really waiting, then dropped.
        let polled = futures::future::poll_fn(|context| {
            std::task::Poll::Ready(Future::poll(wait.as_mut(), context).is_ready())
        });
        polled.await;
        drop(wait);
    }
    wakeups.announce(topic).await.expect("announced");
    wakeups.wait(topic, 0).await.expect("woken");
}
