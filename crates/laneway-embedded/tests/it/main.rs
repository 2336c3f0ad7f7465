//! Integration tests of the embedded stores.

mod copying;
mod example;
mod file;
mod log;
mod memory;
mod mended;
mod proof;
mod rich;
mod verify;
