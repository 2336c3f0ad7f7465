//! From what was typed to what can be used: everything is checked here, and all faults are told at once.

mod checked;
mod listen;

pub(crate) use checked::{Dev, Environment, Faults, Handler, LISTEN, STORE, Serve};
