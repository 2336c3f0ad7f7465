//! The conformance suite of the store seam: one module per transition, then what crosses them.
//!
//! A case is an `async fn` over a [`crate::Bench`], named by the behaviour, with a doc line that names the rule
//! of the contract it holds. `list` names every case once; `run` runs them.

pub mod adoption;
pub mod ahead;
pub mod append;
pub mod append_again;
pub mod append_latest;
mod bad_roads;
pub mod clocks;
pub mod commit;
pub mod commit_refused;
pub mod commit_reset;
pub mod define;
pub mod differential;
pub mod documents;
mod expect;
pub mod export;
pub mod export_work;
pub mod histories;
pub mod idle;
pub mod import;
pub mod import_refused;
pub mod jobs;
pub mod lanes;
mod list;
mod moving;
pub mod promote;
pub mod query;
pub mod read;
pub mod request;
pub mod retention;
mod run;
mod script;
pub mod seize;
pub mod stash;
pub mod trim;
pub mod wakeups;

pub use bad_roads::on_bad_roads;
pub use differential::differential;
pub use list::all;
pub(crate) use run::run_inside;
pub use run::{Case, run};
