//! Lanes in memory: work runs in order per key, one piece at a time, and all keys in parallel.
//!
//! Push work with a key; a handler runs it. Everything of one key forms a *lane*: it runs strictly in the order of the
//! push calls, never two at a time. Different lanes run side by side, up to a cap. Each push gives a [`Ticket`], a
//! future of how it ended. No store, no task per push, no memory per idle key.
//!
//! ```
//! use laneway_lanes::{End, Lanes, Outcome, Run, Settings};
//! use std::time::Duration;
//!
//! async fn charge(run: Run<String, u64>) -> Outcome<u64, String> {
//!     match run.value() {
//!         0 => Outcome::Fail("nothing to charge".to_owned()),
//!         cents => Outcome::Done(*cents),
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let lanes = Lanes::start(Settings { concurrency: 64, ..Settings::default() }, charge)?;
//! let first = lanes.push(("alice".to_owned(), 100)).await?;
//! let second = lanes.push(("alice".to_owned(), 250)).await?; // after the first
//! let other = lanes.push(("bob".to_owned(), 0)).await?; // beside both
//! assert_eq!(first.await, End::Done(100));
//! assert_eq!(second.await, End::Done(250));
//! assert!(matches!(other.await, End::Failed(_)));
//! let drained = lanes.drain(Duration::from_secs(5)).await;
//! assert!(drained.in_time);
//! # Ok(()) }
//! ```
//!
//! # Two modes
//!
//! `Mode::Queue` (the default) runs every push. `Mode::Latest` is for things that have a newest state: a lane holds one
//! pending push, a newer *generation* replaces it, an older one is stale, and the handler sees what was done last.
//!
//! ```
//! use laneway_lanes::{End, Lanes, Outcome, Push, Run, Settings, table::Mode};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let settings = Settings { mode: Mode::Latest, ..Settings::default() };
//! let lanes = Lanes::start(settings, |run: Run<&str, &str>| async move {
//!     let before = run.last_done().and_then(|last| last.value().copied()).unwrap_or("nothing");
//!     Outcome::<String, String>::Done(format!("{before} -> {}", run.value()))
//! })?;
//! let five = lanes.push(Push::new("pod", "spec 5").generation(5)).await?;
//! assert_eq!(five.await, End::Done("nothing -> spec 5".to_owned()));
//! let late = lanes.push(Push::new("pod", "spec 3").generation(3)).await?;
//! assert!(matches!(late.await, End::Stale { .. }), "older than what was accepted, though nothing runs");
//! let gone = lanes.push(Push::new("pod", "gone").generation(6).delete()).await?;
//! assert_eq!(gone.await, End::Done("spec 5 -> gone".to_owned()));
//! let again = lanes.push(Push::new("pod", "spec 1").generation(1).incarnation(1)).await?;
//! assert_eq!(again.await, End::Done("gone -> spec 1".to_owned()), "a recreated object starts afresh");
//! # Ok(()) }
//! ```
//!
//! # What it guarantees
//!
//! - Pushes of one key start in the order of the `push` calls, also when they wait for room or are retried.
//! - One run per key at a time; at most `concurrency` runs at a time over all keys.
//! - Every accepted push ends exactly once, whatever happens: panic, deadline, cancel, drain, end of the runtime.
//! - `push` waits for room first come, first served; a dropped wait gives its place to the next.
//! - A slow, failing, paused or retrying lane delays no other; a hot lane yields after its quantum; an urgent push lifts
//!   its lane, and the lane that has been ready longest is served every `ageing` turns, so nothing starves.
//! - Queue mode keeps nothing of an idle key. Latest mode remembers the newest accepted version and the last done push
//!   of `remember` idle keys; of a key forgotten beyond that an old generation would be accepted again.
//!
//! # What it does not
//!
//! - Nothing is durable: a crash loses what runs and waits.
//! - There is no order between keys.
//! - A handler that blocks its thread holds up other runs of its worker: use a blocking pool for such work.
//! - Capacity is shared: paused and retrying lanes take up room until they are resumed or cancelled, and a push needs
//!   room also when it is to replace an older one of its key.
//! - A dropped run (deadline, cancel) does not undo what it did, nor stop what it started elsewhere; hand such work the
//!   [`CancelToken`].
//!
//! The rules are in [`table`], plain synchronous code that other executors can drive; the async part acts on them.

mod executor;
pub mod table;

pub use executor::{
    CancelToken, Cause, Done, Drained, End, Failure, Lanes, Outcome, Push, PushError, Pushing, PushingMany,
    Run, Settings, SettingsError, Ticket, Totals, TryPushError, View,
};
