//! The rows of the engine together.

use crate::Failure;
use crate::context::Context;
use crate::report::Row;

use super::{backlog, hot_lane, interference, latency};

pub(crate) fn names() -> Vec<String> {
    let [strict, ahead] = hot_lane::NAMES;
    [strict, ahead, backlog::NAME, latency::NAME, interference::NAME].map(str::to_owned).to_vec()
}

pub(crate) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let mut rows = hot_lane::run(context)?;
    let others = [
        (backlog::NAME, backlog::run as fn(&Context) -> Result<Row, Failure>),
        (latency::NAME, latency::run),
        (interference::NAME, interference::run),
    ];
    for (name, run) in others {
        if context.wants(name) {
            rows.push(run(context)?);
        }
    }
    Ok(rows)
}
