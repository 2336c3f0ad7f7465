//! Tests of the file store that need a look inside, or a hand in the order of its steps.

mod backlog;
mod backup;
mod checkpoint;
mod clock;
mod ended;
mod ends;
mod harness;
mod held;
mod marks;
mod panic;
mod reading;
mod relocate;
mod rounds;
mod since;
mod threads;
mod unchanged;
