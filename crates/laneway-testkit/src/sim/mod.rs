//! The shipped engine on simulated time, on a store behind a bad network, in one to three processes that die again and
//! again.
//!
//! One seed is one world: it draws the options, the workload, the faults and the order in which everything happens, and
//! the same seed gives the same history. A safety phase with faults is followed by a calm one in which everything must
//! come to its end. What happened is judged while it happens, against the invariants of `docs/design/rules.md`; what is
//! simulated and what is not is in `docs/design/simulation.md`.
//!
//! Reading order: `world` (how a run goes), `options` (what is drawn), `node` (one life of the engine, and those who use
//! it), `incident` (what happens to nodes), `failover` (what happens to the store), `net` (what happens to calls), `record` and `judge` (what is written down, and what must hold), `plant` (the
//! bugs that must be found).

mod bell;
mod clients;
mod failover;
mod handler;
mod incident;
mod judge;
mod life;
mod net;
mod node;
mod operator;
mod options;
mod plan;
mod plant;
mod plant_documents;
mod primary;
mod record;
mod world;

pub use options::Options;
pub use plant::Plant;
pub use primary::Replicated;
pub use world::{OpenStore, Outcome, Setup, run};
