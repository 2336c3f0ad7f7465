//! The library from outside: examples with checked output, and what its parts promise together.

mod examples;
mod handlers;
mod starting;
