//! Lanes: which event of which key may run.
//!
//! `book` holds the lanes of one seat that are in memory, over the table of `laneway-lanes`; `records` knows which other
//! lanes are not plain. Both are plain code with time passed in.

mod answer;
mod book;
mod latest;
mod operate;
mod outcome;
mod rate;
mod records;

pub use answer::{Answer, Refused, UnknownAnswer};
pub(crate) use book::{Book, LaneTurn, Waiting, name_of, size_of};
pub(crate) use latest::{open as open_state, seal as seal_state};
pub use operate::{Filed, OperateError, Operator};
pub(crate) use rate::Rates;
pub(crate) use records::{KNOWN_MAX, Records, is_held_up};
