//! The desk: where remote workers claim lanes, settle and extend (contract 1.16).
//!
//! A claim is a run whose handler is somebody else. A lane is offered only while a worker asks for one, so that nothing
//! waits in an offer that could wait in its lane; a worker that says nothing until its lease ends has failed. What the
//! desk does not have open (another node's, or one of before a restart) goes to the owner of its seat as a request.
//!
//! `words` is what workers say and hear, `front` where they are served, `demand` how much they ask for, `offer` how a
//! run waits for a worker and then for its answer, `open` which claims are open and what became of the others.

mod demand;
mod front;
mod offer;
mod open;
mod words;

pub(crate) use demand::Demand;
pub use front::Desk;
pub use words::{Claim, ClaimError, ClaimWish, Outcome, Settlement};
