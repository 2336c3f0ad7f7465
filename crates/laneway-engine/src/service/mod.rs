//! What every part stands on: time, chance, tasks.

mod env;
mod paused;

pub use env::Env;
pub(crate) use env::Now;
pub use paused::TokioClock;
