//! Tests of what spans several files: tables of due times, of plans, of refusals, and models to compare with.

mod clocks;
mod due_times;
mod fixture;
mod histories;
mod plans;
mod refusals;
mod stored;
