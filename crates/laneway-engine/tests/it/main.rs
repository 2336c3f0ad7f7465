//! The engine from outside, on the memory store and paused time.

mod batches;
mod batches_within;
mod bounds;
mod claims;
mod claims_handed_over;
mod commit_limits;
mod events;
mod failures;
mod faults;
mod faulty;
mod jobs;
mod latest;
mod latest_model;
mod limits;
mod lists;
mod order;
mod own_policy;
mod processors;
mod requests;
mod schedules;
mod seam;
mod sidings;
mod time;
mod urgent;
mod why;
mod world;
