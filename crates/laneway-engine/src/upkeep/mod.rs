//! What is done beside the way of events: retention. Nothing but conditional calls to the store, so that two nodes that
//! do it at once do no harm.

mod retention;

pub(crate) use retention::retain;
