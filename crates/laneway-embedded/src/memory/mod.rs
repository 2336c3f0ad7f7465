//! The store `memory:`: the rules over plain maps. Complete, quick, and gone with the process.

mod documents;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod wakeups;

pub use store::MemoryStore;
