//! Placeholder.
pub mod executor;
pub mod table;
pub use executor::*;
