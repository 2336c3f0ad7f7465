//! Jobs: the submitter's view of an event.
//!
//! `submit` makes them, `jobs` looks and waits, `change` cancels and runs again, `list` finds them; `batch` names many
//! at once, `status` is what can be told, `headers` what travels with them, `text` how opaque texts are written.

mod batch;
mod change;
mod error;
pub mod headers;
mod jobs;
mod list;
mod status;
mod submit;
mod text;

pub use batch::BatchId;
pub use change::Retried;
pub use error::JobError;
pub use jobs::{Jobs, Results};
pub(crate) use list::Word;
pub use list::{ListJobs, Listed};
pub use status::{Detail, Job, JobStatus};
pub use submit::{By, CALLER_BYTES_MAX, IDEMPOTENCY_KEY_BYTES_MAX, Submissions, Submit, Submitted};
