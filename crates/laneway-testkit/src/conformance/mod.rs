//! The conformance suite of the store seam: one module per transition, then what crosses them.
//!
//! A case is an `async fn` over a [`crate::Bench`], named by the behaviour, with a doc line that names the rule
//! of the contract it holds. `list` names every case once; `run` runs them.

pub mod append;
pub mod append_again;
pub mod append_latest;
pub mod define;
mod expect;
mod list;
pub mod promote;
mod run;

pub use list::all;
pub(crate) use run::run_inside;
pub use run::{Case, run};
