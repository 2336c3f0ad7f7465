//! The rows, one file per kind. Each measures what Laneway does and, in turns with it, its baseline.

mod all;
mod append;
mod cold_start;
mod cycle;
mod engine;
mod growth;
mod http;
mod idle_memory;
mod lanes;
mod redis;
mod sync;

pub(crate) use all::{check, names, run};
pub(crate) use cold_start::{load_child, open_child};
pub(crate) use growth::{idle_seats_child, waiting_memory_child};
pub(crate) use idle_memory::child as idle_memory_child;
