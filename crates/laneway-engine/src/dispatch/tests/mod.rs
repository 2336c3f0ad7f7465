//! Seats in plain code: what happens is handed in, what they ask for is looked at.

mod accused;
mod dormant;
mod fixture;
mod moments;

pub(super) use fixture::event_in;
