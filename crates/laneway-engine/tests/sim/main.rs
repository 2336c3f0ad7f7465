//! Proof by simulation: the shipped engine, thousands of lives of one to three nodes, and the planted bugs.

mod seam;
mod worlds;
