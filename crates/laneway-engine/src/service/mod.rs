//! What every part stands on: time, chance, tasks, and a fence around faults.

mod alarm;
mod contain;
mod env;
mod fields;
mod finish;
mod hint;
mod inbox;
mod paused;
mod store_time;

pub(crate) use alarm::Alarm;
pub use contain::panic_words;
pub(crate) use contain::{contained, kept_running};
pub(crate) use env::Now;
pub use env::{Env, Mortal};
pub(crate) use fields::{Fields, Malformed, Reader};
pub use finish::Finishing;
pub(crate) use hint::hint;
pub(crate) use inbox::{Inbox, Sender, inbox};
pub use paused::TokioClock;
