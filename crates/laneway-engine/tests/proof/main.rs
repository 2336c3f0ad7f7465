//! The proofs of the engine with real files and processes that bring themselves down. Each prints what it counted, and
//! has a control that must fail.

mod child;
mod open;
mod poison;
mod print;
mod seam;
