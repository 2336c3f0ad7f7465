//! kill -9 at random moments on a whole engine: producers, jobs, a processor with state and emits, and one behind it.
//!
//! `plan` says which event is which, `worker` is the process that is killed, `ledger` what the parent heard and how it
//! judges that, `folder` one folder with its kills, `proof` the tests.

mod folder;
mod ledger;
mod plan;
mod proof;
mod worker;
