//! The app: a store, what was declared on it, and what runs.
//!
//! `open` finds the store by its URL, `shared` holds what was declared, `processor` is the builder of a processor,
//! `start` checks everything and starts it, `signal` waits for the wish to end.

mod laneway;
mod open;
mod options;
mod processor;
mod shared;
mod signal;
mod start;

pub use laneway::Laneway;
#[cfg(feature = "embedded")]
pub(crate) use open::memory;
pub use open::{OpenError, without_user};
pub use options::StoreOptions;
pub use processor::{Processor, Retry};
pub(crate) use shared::Shared;
pub use start::StartError;
