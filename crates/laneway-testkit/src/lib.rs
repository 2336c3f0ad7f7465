//! The test kit of Laneway: a conformance suite for stores, checkers of histories, and faults to inject.
//!
//! It knows the seams of `laneway-core`, the engine, and no store. A store's own crate depends on it for its tests; so can
//! yours. Write a [`Fixture`] that opens your store, and name it once:
//!
//! ```no_run
//! use async_trait::async_trait;
//! use laneway_testkit::{Fixture, TestStore};
//!
//! struct MyFixture;
//!
//! #[async_trait]
//! impl Fixture for MyFixture {
//!     async fn open(&self) -> TestStore {
//!         // let clock = laneway_core::ManualClock::default();
//!         // TestStore::of(Arc::new(MyStore::open_empty(clock.clone())), clock)
//!         panic!("open an empty store of yours here")
//!     }
//!     async fn reopen(&self, opened: TestStore) -> TestStore {
//!         opened // close it, open it again on the same folder or server, with the same clock
//!     }
//!     async fn restored(&self, opened: TestStore) -> TestStore {
//!         opened // the same content, with another store incarnation, as after a restored backup
//!     }
//! }
//!
//! // One test per case, in modules named after the transitions.
//! mod conformance {
//!     laneway_testkit::conformance!(super::MyFixture);
//! }
//! // One test per planted bug: the suite must notice that your store has it.
//! mod planted {
//!     laneway_testkit::planted!(super::MyFixture);
//! }
//! # fn main() {}
//! ```
//!
//! Reading order: [`fixture`] (what you supply), [`mod@bench`] (short words for tests), [`mod@conformance`] (the cases),
//! [`check`] (invariants of histories), [`fault`] (what breaks stores and networks on purpose), [`servers`] (real ones, started by tests), [`sim`] (the engine on
//! simulated time).

pub mod bench;
pub mod check;
pub mod conformance;
pub mod fault;
pub mod fixture;
mod seam;
pub mod servers;
pub mod sim;
mod workload;

pub use bench::Bench;
pub use conformance::{differential, on_bad_roads};
pub use fixture::{Fixture, TestStore};
