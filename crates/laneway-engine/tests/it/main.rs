//! The engine from outside, on the memory store and paused time.

mod batches;
mod claims;
mod events;
mod failures;
mod jobs;
mod latest;
mod limits;
mod lists;
mod order;
mod processors;
mod schedules;
mod seam;
mod time;
mod why;
mod world;
