//! The engine from outside, on the memory store and paused time.

mod batches;
mod failures;
mod order;
mod seam;
mod world;
