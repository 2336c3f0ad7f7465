//! A random workload on one store: producers, competing owners and an operator, all recorded in a history.
//!
//! Everybody follows a seed; only the interleaving of the tasks is free. Nobody here judges anything: the checkers
//! do, on the history.

mod operator;
mod owner;
mod producer;
mod settle;
mod world;

pub(crate) use operator::operate;
pub(crate) use owner::Owner;
pub(crate) use producer::produce;
pub(crate) use world::World;
