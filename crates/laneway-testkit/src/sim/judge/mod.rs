//! What must hold of every history, judged record by record against a small model of the store and its seats.
//!
//! The records come in the order in which things happened at the store, so the model is exact: what a commit should have
//! been answered is known, and so is what must be in the store at the end. `shards` has events and appends (D1 to D4, A2,
//! L2), `seats` grants and commits (S2 to S4, O1, O2, A1, A3, L1), `runs` handlers (O1, O3, R1, R2), `ending` what may
//! still wait when faults have stopped (S1), `cluster` nodes and their leases (F6, L3, S1, S2), `failover` a store that lost its end (1.4), and `finals` what the store must hold (A1, A2, D1).

mod cluster;
mod ending;
mod failover;
mod finals;
mod model;
mod runs;
mod seats;
mod shards;

pub(crate) use finals::{SeatFound, ShardFound};
pub(crate) use model::Judge;
