//! The library from outside: examples with checked output, and what its parts promise together.

mod crates;
mod examples;
mod handlers;
mod heads;
mod operating;
mod panics;
mod sending;
mod starting;
mod upkeep;
