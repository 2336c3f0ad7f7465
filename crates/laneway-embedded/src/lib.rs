//! The two stores that live inside the process: `memory:` and `file:PATH`.
//!
//! Reading order: [`machine`](self) holds the rules, one file per transition; `memory` keeps their state in maps;
//! [`mod@file`] keeps it in a log and an index on disk.

pub mod file;

mod clock;
mod machine;
mod memory;
mod wakeups;

pub use memory::MemoryStore;

pub use file::{FileOptions, FileStore, SyncMode};
