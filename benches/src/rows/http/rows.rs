//! The rows over HTTP together.

use crate::Failure;
use crate::context::Context;
use crate::report::Row;

use super::{append, jobs, lines, pipe, pull};

type Run = fn(&Context) -> Result<Row, Failure>;

const ROWS: [(&str, Run); 6] = [
    (append::SINGLE.name, |context| append::run(context, append::SINGLE)),
    (append::BATCH.name, |context| append::run(context, append::BATCH)),
    (lines::NAME, lines::run),
    (jobs::NAME, jobs::run),
    (pull::NAME, pull::run),
    (pipe::NAME, pipe::run),
];

pub(crate) fn names() -> Vec<String> {
    ROWS.iter().map(|(name, _)| (*name).to_owned()).collect()
}

pub(crate) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    ROWS.iter().filter(|(name, _)| context.wants(name)).map(|(_, run)| run(context)).collect()
}
