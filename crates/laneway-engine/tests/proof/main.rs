//! The proofs of the engine: with real files and processes that are killed or bring themselves down, and with seeded
//! races on paused time. Each prints what it counted, and has a control that must fail.

mod child;
mod counting;
mod interference;
mod kills;
mod open;
mod poison;
mod print;
mod races;
mod seam;
