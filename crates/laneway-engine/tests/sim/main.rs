//! Proof by simulation: the shipped engine, thousands of lives, and the twelve planted bugs.

mod seam;
mod worlds;
