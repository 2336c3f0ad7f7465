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
    if context.wants(backlog::NAME) {
        rows.push(backlog::run(context)?);
    }
    if context.wants(latency::NAME) {
        rows.extend(latency::run(context)?);
    }
    if context.wants(interference::NAME) {
        rows.push(interference::run(context)?);
    }
    Ok(rows)
}
