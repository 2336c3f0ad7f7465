//! The HTTP API, version 1. One file per noun; each call is parsed, done and answered in one function.
//!
//! `router` lists the calls and `scopes` what each needs, `gate` refuses whoever should not be here, `body` and `query` read what came within
//! its limits, `wire` is the only conversion between what is sent and what is inside, `error` the only map from errors
//! to statuses, `refusals` which of them a call answers, `openapi` the description made from all of it.

mod answer;
mod append_lines;
mod backup;
mod body;
mod claims;
mod cloud_events;
mod cluster;
mod code;
mod dead_letters;
mod error;
mod events;
mod follow;
mod follow_place;
mod follow_wish;
mod gate;
mod guard;
#[cfg(test)]
mod hang_ups;
mod health;
mod job;
mod job_lists;
mod job_view;
mod jobs;
mod lane_filter;
mod lane_list;
mod lane_wishes;
mod lanes;
mod lines;
mod load;
mod matching;
mod metrics;
mod openapi;
mod paging;
mod prefer;
mod processors;
mod query;
mod rate;
mod receipt;
#[cfg(test)]
mod reference;
mod refusals;
mod router;
mod schedules;
mod scopes;
mod streams;
mod trace;
mod under_way;
mod unpack;
pub(crate) mod wire;

pub(crate) use body::SETTLE_BYTES_MAX;
pub(crate) use error::{chain, no_place_left};
pub(crate) use follow::FOLLOWERS_MAX;
pub(crate) use gate::{Gate, Limits, Mode};
pub(crate) use guard::Hosts;
pub(crate) use router::router;
