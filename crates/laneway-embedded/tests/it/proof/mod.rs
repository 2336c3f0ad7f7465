//! The proofs of the file store: what it acknowledged survives kills, power cuts, failing calls, a full disk and
//! damaged files, or the loss is loud. Every proof has a control that must fail.

mod actor;
mod child;
mod damage;
mod failing_calls;
mod folder;
mod full_checkpoint;
mod full_disk;
mod killed;
mod kills;
mod lives;
mod oracle;
mod picture;
mod planted;
mod power_cuts;
mod print;
mod real_power;
mod restarts;
mod settle;
mod world;

use print::print;
