//! Several nodes on one store, in a world without real time: who owns what, and what becomes of it when nodes come, go, die or are
//! cut off. The same with real processes and faults is in the server's tests.

#[path = "../it/seam.rs"]
mod seam;
mod shop;

mod moves;
