//! Jobs: the submitter's view of an event.

mod jobs;

pub use jobs::{Job, JobError, JobStatus, Jobs, Submit, Submitted};
