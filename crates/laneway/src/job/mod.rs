//! Jobs: events whose sender wants their end.

mod handle;
mod progress;
mod status;
mod submit;

pub use handle::{JobHandle, WaitError};
pub use progress::Progress;
pub use status::JobStatus;
pub use submit::{SubmitError, Submitting};
