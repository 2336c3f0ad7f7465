//! The way of an event, stage by stage: from the log to a settled result, in order per key.
//!
//! Reading order: [`log`] (drafts become events), [`dispatch`] (a seat's owner reads them in order), [`lane`] (which may
//! run), [`handler`] (what user code is given and answers), `commit` (what came of it is settled in one step), [`job`]
//! (the submitter's view). Beside the way: [`upkeep`] (retention, schedules), [`cluster`] (which node owns what), [`observe`] (why something waits), [`service`] (time, chance, tasks). [`engine`] puts them together.
//!
//! The engine handles bytes. It knows no store, no format and no wire.

pub mod log;

pub mod dispatch;

pub mod lane;

pub mod handler;

mod commit;

pub mod job;

pub mod upkeep;

pub mod cluster;

pub mod observe;
pub mod service;

pub mod engine;

pub use dispatch::{Batch, Paused, ProcessorSettings, SettingsError, StoredProcessor};
pub use engine::{DefineError, Engine, ProcessorView, Registration, Stores};
pub use service::Env;
