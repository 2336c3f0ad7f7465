//! Checkers: what must hold of every history of a store, whatever the store is.
//!
//! They look only at what was asked, what was answered, and what can be read back at the end; they know nothing of
//! how a store works. The names are those of `docs/design/rules.md`: order (O1, O2), stale owners (S3), one place at
//! a time (S4), durable and honest appends (D1 to D4), atomic commits (A1 to A3), and the chain.

mod atomic;
mod chain;
mod durable;
mod history;
mod judge;
mod order;
mod sometimes;
#[cfg(test)]
mod tests;

pub use history::{AppendRecord, CommitRecord, EndSeen, Grant, History, Outcome, Settled, Violation};
pub use judge::check;
pub use sometimes::Sometimes;
