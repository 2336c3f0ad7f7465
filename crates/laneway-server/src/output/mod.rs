//! What commands write: one thing or many, in the form that was asked for. What went wrong is told elsewhere.

mod ask;
mod cell;
mod progress;
mod row;
mod table;
mod times;
mod writer;

pub(crate) use ask::agree;
pub(crate) use cell::Cell;
pub(crate) use progress::{Progress, grouped};
pub(crate) use row::{Column, Detail, Row};
pub(crate) use writer::{Writer, key_of};
