//! Streams as a program declares and uses them.
//!
//! `declared` is what was said of a stream, `handle` the typed handle, `draft` the way from record to event, `send` and
//! `send_many` append, `receipt` is the answer.

mod declared;
mod draft;
mod handle;
mod receipt;
mod send;
mod send_error;
mod send_many;

pub(crate) use declared::Declared;
pub(crate) use draft::{Options, draft_of, drafts_of, options};
pub use handle::Stream;
pub(crate) use handle::key_of;
pub use receipt::{Append, Receipt};
pub use send::Sending;
pub use send_error::SendError;
pub use send_many::SendingMany;
