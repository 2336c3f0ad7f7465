//! Wrappers that break stores and networks on purpose.
//!
//! [`LostAnswers`] loses requests and answers as a network does; [`Proxy`] is such a network, between a real client and a
//! real server, and [`Patient`] repeats reads over it. [`Yielding`] has an await point on either side of every call. [`Planted`] has one known bug, and
//! [`caught`](planted_cases::caught) says which cases of the suite notice it: a suite that misses one proves nothing.

mod lost;
mod patient;
mod planted;
pub mod planted_cases;
mod proxy;
mod yielding;

pub use lost::LostAnswers;
pub use patient::Patient;
pub use planted::{Bug, Planted};
pub use proxy::{Carried, Proxy, Road};
pub use yielding::{Yielding, polled};
