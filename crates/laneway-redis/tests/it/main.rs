//! Integration tests of the Redis store, on a real server that this binary starts and stops.

mod conformance;
mod life;
mod server;
