//! Lanes in memory beside what people write by hand: a map of mutexes and a task per event.
//!
//! Both sides take events one by one from one task, run an empty handler for each, have as much room for events
//! in flight, and are done when every handler has run.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use laneway_lanes::{Lanes, Outcome, Run, Settings};
use tokio::sync::Semaphore;

use crate::context::{Context, progress};
use crate::measured::{Counts, Measured, median};
use crate::report::Row;
use crate::{Failure, cpu, seam};

/// Events that have been taken in and not ended, on both sides: what lanes allow by default.
pub(super) const IN_FLIGHT: u32 = 2_048;
const KEYS: [(u64, &str); 3] =
    [(1, "lanes 1 key"), (1_000, "lanes 1000 keys"), (100_000, "lanes 100000 keys")];
/// Pushes handed over together in the figure of `push_many`.
const CHUNK: u64 = 64;
/// Longer than any run: what is not done by then shows as an error.
const DRAIN_WITHIN: Duration = Duration::from_secs(600);

pub(crate) fn names() -> Vec<String> {
    KEYS.iter().map(|(_, name)| (*name).to_owned()).collect()
}

pub(crate) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (keys, name) in KEYS.into_iter().filter(|(_, name)| context.wants(name)) {
        let (events, rounds) = context.choose((400_000, 3), (3_000_000, 5));
        progress(&format!("{name}: {rounds} rounds of {events} events, in turns with the baseline"));
        let (mut ours, mut chunks, mut by_hand) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            by_hand.push(measure(events, by_hand_of(events, keys))?);
            ours.push(measure(events, one_by_one(events, keys))?);
            chunks.push(measure(events, in_chunks(events, keys))?);
        }
        let many = median(&chunks, Measured::rate);
        rows.push(Row {
            name: name.to_owned(),
            rate: median(&ours, Measured::rate),
            unit: "events/s",
            baseline: Some("mutex map + task"),
            baseline_rate: Some(median(&by_hand, Measured::rate)),
            cpu_s_per_million: Some(median(&ours, Measured::cpu_per_million)),
            baseline_cpu_s_per_million: Some(median(&by_hand, Measured::cpu_per_million)),
            durability: "memory",
            note: format!("pushed one by one; in chunks of {CHUNK} with push_many: {many:.0} events/s"),
            ..Row::default()
        });
    }
    Ok(rows)
}

/// Runs work that handles so many events on a fresh runtime.
fn measure(
    events: u64,
    work: impl Future<Output = Result<(), Failure>> + Send + 'static,
) -> Result<Measured, Failure> {
    let runtime = seam::runtime()?;
    let (start, cpu_before) = (seam::now(), cpu::seconds());
    runtime.block_on(async { seam::spawn(work).await })??;
    let (seconds, cpu_seconds) = (seam::seconds_since(start), cpu::seconds() - cpu_before);
    let counts = Counts { events, ..Counts::default() };
    Ok(Measured { seconds, cpu_seconds, counts, ..Measured::default() })
}

/// Spreads events over keys without favouring neighbours.
fn key(event: u64, keys: u64) -> u64 {
    event.wrapping_mul(0x9E37_79B9_7F4A_7C15) % keys
}

async fn by_hand_of(events: u64, keys: u64) -> Result<(), Failure> {
    let locks: Arc<Mutex<HashMap<u64, Arc<tokio::sync::Mutex<()>>>>> = Arc::default();
    let room = Arc::new(Semaphore::new(IN_FLIGHT as usize));
    for event in 0..events {
        let permit = Arc::clone(&room).acquire_owned().await?;
        let lock = {
            let mut locks = locks.lock().map_err(|_| "the map of locks is poisoned")?;
            Arc::clone(locks.entry(key(event, keys)).or_default())
        };
        seam::spawn_detached(async move {
            let turn = lock.lock().await;
            std::hint::black_box(event);
            drop(turn);
            drop(permit);
        });
    }
    // All permits are back when every task has ended.
    let _all = room.acquire_many(IN_FLIGHT).await?;
    Ok(())
}

/// Lanes with an empty handler.
pub(super) fn start() -> Result<Lanes<u64, u64, (), ()>, Failure> {
    let settings = Settings { capacity: IN_FLIGHT as usize, workers: 2, ..Settings::default() };
    let handler = |run: Run<u64, u64>| {
        std::hint::black_box(*run.value());
        std::future::ready(Outcome::Done(()))
    };
    Ok(Lanes::start(settings, handler)?)
}

async fn one_by_one(events: u64, keys: u64) -> Result<(), Failure> {
    let lanes = start()?;
    for event in 0..events {
        let ticket = lanes.push((key(event, keys), event)).await.map_err(|_| "lanes refused a push")?;
        drop(ticket);
    }
    finish(&lanes, events).await
}

async fn in_chunks(events: u64, keys: u64) -> Result<(), Failure> {
    let lanes = start()?;
    for first in (0..events).step_by(CHUNK as usize) {
        let chunk = first..(first + CHUNK).min(events);
        let answers = lanes.push_many(chunk.map(|event| (key(event, keys), event))).await;
        if answers.iter().any(Result::is_err) {
            return Err("lanes refused a push".into());
        }
    }
    finish(&lanes, events).await
}

/// Waits until every handler has run.
async fn finish(lanes: &Lanes<u64, u64, (), ()>, events: u64) -> Result<(), Failure> {
    lanes.drain(DRAIN_WITHIN).await;
    let done = lanes.snapshot().totals.done;
    if done == events { Ok(()) } else { Err(format!("{done} of {events} events were done").into()) }
}
