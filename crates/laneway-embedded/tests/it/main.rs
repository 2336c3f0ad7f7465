//! Integration tests of the embedded stores.

mod file;
mod log;
mod memory;
mod proof;
