//! The store's files, from the bottom up: the disk seam, and on it the log of checked frames.
pub mod disk;
pub mod log;

mod lock;
mod seam;
