//! Handlers: plain async functions become what the engine calls.
//!
//! `function` says which functions are handlers, `adapter` runs them over what the engine hands in, `layer` is code
//! around every run.

mod adapter;
mod function;
mod layer;

pub(crate) use adapter::{Adapter, Erased, erase};
pub use function::Handler;
pub(crate) use layer::Layered;
pub use layer::{Layer, Next, Trace};
