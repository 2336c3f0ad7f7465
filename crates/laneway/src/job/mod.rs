//! Jobs: events whose sender wants their end.

mod batch;
mod handle;
mod progress;
mod status;
mod submit;

pub use batch::{JobBatch, SubmittingMany};
pub use handle::{JobHandle, WaitError};
pub use progress::Progress;
pub use status::JobStatus;
pub use submit::{SubmitError, Submitting};
