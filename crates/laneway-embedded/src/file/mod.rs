//! The file store: `file:PATH`, one folder, one process.
//!
//! The way of a call: [`transitions`](self) takes it, `group` gathers it with others, applies the
//! rules to `state`, which writes what changed into a frame, and hands the frame to [`log`]; when that is durable
//! the call is answered. Beside the way: `checkpoint` moves what changed into `index`, `open` puts everything
//! together again after a stop of any kind.

pub mod disk;
#[doc(hidden)]
pub mod fuzzing;
pub mod log;

mod backup;
mod checkpoint;
mod cost;
mod counts;
mod group;
mod held;
mod index;
mod lock;
mod marks;
mod open;
mod options;
mod read;
mod relocate;
mod seam;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod transitions;
mod verify;

pub use backup::Backup;
pub use options::{Background, FileOptions, SyncMode};
pub use store::FileStore;
pub use verify::{Finding, FindingKind, Place, VerifyReport, verify, verify_on};
