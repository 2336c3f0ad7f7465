//! Integration tests of the Redis store, on a real server that this binary starts and stops.

mod clock;
mod conformance;
mod declared;
mod failover;
mod life;
mod memory;
mod rights;
mod roads;
mod server;
mod tls;
