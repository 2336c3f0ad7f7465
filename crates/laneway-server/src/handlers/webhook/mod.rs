//! Web endpoints that were named over the API: whoever may name one must not reach with it what only this server can reach.
//!
//! `address` is which addresses are refused, `target` which URLs, `rules` what the operator allows beside them, `guarded`
//! looks a name up once for each delivery, checks every address, and connects to one that was checked.

mod address;
mod guarded;
mod rules;
mod target;

pub(crate) use address::Range;
pub(super) use guarded::Guarded;
pub(crate) use rules::{Rules, RulesError};
pub(crate) use target::Target;
