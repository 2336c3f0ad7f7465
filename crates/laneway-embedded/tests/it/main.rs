//! Integration tests of the embedded stores.

mod log;
mod memory;
