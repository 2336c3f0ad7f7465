//! One file per command.

mod bench;
mod cluster;
mod config;
mod dead;
mod dev;
mod doctor;
mod event;
mod job;
mod lane;
mod measure;
mod operate;
mod processor;
mod run;
mod schedule;
mod send;
mod serve;
mod store;
mod stream;
mod tail;
mod verify;
mod watch;
mod work;

pub(crate) use run::run;
