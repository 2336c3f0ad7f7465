//! Wrappers that break stores on purpose.
//!
//! [`LostAnswers`] loses requests and answers as a network does. [`Planted`] has one known bug, and
//! [`caught`](planted_cases::caught) says which cases of the suite notice it: a suite that misses one proves nothing.

mod lost;
mod planted;
pub mod planted_cases;

pub use lost::LostAnswers;
pub use planted::{Bug, Planted};
