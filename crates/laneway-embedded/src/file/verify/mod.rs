//! Verify: reads a closed folder from the first byte to the last and tells what does not fit together.
//!
//! Read in this order: `run` (the steps), `walk` (every frame of the log), `chain` (every lane), `stand` (what index
//! and log say of the end), `overlay` (why no byte of the folder changes).

mod chain;
mod finding;
mod overlay;
mod report;
mod rows;
mod run;
mod stand;
#[cfg(test)]
mod tests;
mod walk;

pub use finding::{Finding, FindingKind, Place};
pub use report::VerifyReport;
pub use run::{verify, verify_on};
