//! Measures lanes beside what people write by hand: a map of mutexes and a task per event.
//!
//! `cargo run --release -p laneway-lanes --example throughput [EVENTS]` prints events per second for 1, 1,000 and
//! 100,000 keys with empty handlers, each pair run one after the other. The figures that count are those of the
//! benchmark crate; this is for a quick look while working on the executor.
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use laneway_lanes::{Lanes, Outcome, Run, Settings};
use tokio::sync::Semaphore;

const IN_FLIGHT: usize = 16_384;
const CHUNK: u64 = 64;

fn main() {
    let events = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    println!(
        "{:>8} {:>14} {:>14} {:>14} {:>7} {:>7}",
        "keys", "baseline/s", "push/s", "push_many/s", "ratio", "ratio"
    );
    for keys in [1, 1_000, 100_000] {
        let baseline = measure(events, by_hand(events, keys));
        let single = measure(events, lanes_one_by_one(events, keys));
        let many = measure(events, lanes_in_chunks(events, keys));
        println!(
            "{keys:>8} {baseline:>14.0} {single:>14.0} {many:>14.0} {:>7.1} {:>7.1}",
            single / baseline,
            many / baseline
        );
    }
}

fn measure(events: u64, work: impl Future<Output = ()> + Send + 'static) -> f64 {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let start = Instant::now();
    runtime.block_on(async { tokio::spawn(work).await.expect("the measured work ends") });
    events as f64 / start.elapsed().as_secs_f64()
}

fn key(event: u64, keys: u64) -> u64 {
    event.wrapping_mul(0x9E37_79B9_7F4A_7C15) % keys
}

async fn by_hand(events: u64, keys: u64) {
    let locks: Arc<Mutex<HashMap<u64, Arc<tokio::sync::Mutex<()>>>>> = Arc::default();
    let room = Arc::new(Semaphore::new(IN_FLIGHT));
    for event in 0..events {
        let permit = Arc::clone(&room).acquire_owned().await.expect("the semaphore stays open");
        let lock = Arc::clone(locks.lock().expect("not poisoned").entry(key(event, keys)).or_default());
        tokio::spawn(async move {
            let _turn = lock.lock().await;
            drop((std::hint::black_box(event), permit));
        });
    }
    let _all_done = room.acquire_many(IN_FLIGHT as u32).await.expect("the semaphore stays open");
}

fn start() -> Lanes<u64, u64, (), ()> {
    let settings = Settings { capacity: IN_FLIGHT, workers: 2, ..Settings::default() };
    let handler = |run: Run<u64, u64>| async move {
        std::hint::black_box(*run.value());
        Outcome::Done(())
    };
    Lanes::start(settings, handler).expect("settings are in range")
}

async fn lanes_one_by_one(events: u64, keys: u64) {
    let lanes = start();
    for event in 0..events {
        drop(lanes.push((key(event, keys), event)).await);
    }
    finish(&lanes, events).await;
}

async fn lanes_in_chunks(events: u64, keys: u64) {
    let lanes = start();
    for first in (0..events).step_by(CHUNK as usize) {
        let chunk = first..(first + CHUNK).min(events);
        drop(lanes.push_many(chunk.map(|event| (key(event, keys), event))).await);
    }
    finish(&lanes, events).await;
}

async fn finish(lanes: &Lanes<u64, u64, (), ()>, events: u64) {
    lanes.drain(std::time::Duration::from_secs(60)).await;
    assert_eq!(lanes.snapshot().totals.done, events, "every event was done");
}
