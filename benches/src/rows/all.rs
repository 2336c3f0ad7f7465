//! All rows together: their names and their order in the table.

use crate::Failure;
use crate::context::Context;
use crate::http::check_program;
use crate::report::Row;

use super::{append, cold_start, cycle, engine, growth, http, idle_memory, lanes, redis, sync};

/// Names of all rows of this mode, in the order of the table.
pub(crate) fn names(context: &Context) -> Vec<String> {
    let lists = [
        vec![sync::NAME.to_owned()],
        lanes::names(),
        vec![idle_memory::NAME.to_owned()],
        append::names(),
        cycle::names(context),
        engine::names(),
        http::names(),
        redis::names(),
        cold_start::names(context),
        growth::names(),
    ];
    lists.concat()
}

/// Whether everything is there that the wanted rows need: nobody wants to learn that after minutes.
pub(crate) fn check(context: &Context) -> Result<(), Failure> {
    if http::names().iter().any(|name| context.wants(name)) || growth::needs_server(context) {
        check_program()?;
    }
    Ok(())
}

/// Runs the rows that are wanted.
pub(crate) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let durable = [
        append::names(),
        cycle::names(context),
        engine::names(),
        http::names(),
        cold_start::names(context),
        growth::names(),
    ]
    .concat();
    // The disk's own limit belongs beside every durable figure.
    if context.wants(sync::NAME) || durable.iter().any(|name| context.wants(name)) {
        rows.push(sync::run(context)?);
    }
    rows.extend(lanes::run(context)?);
    rows.extend(idle_memory::run(context)?);
    rows.extend(append::run(context)?);
    rows.extend(cycle::run(context)?);
    rows.extend(engine::run(context)?);
    rows.extend(http::run(context)?);
    rows.extend(redis::run(context)?);
    rows.extend(cold_start::run(context)?);
    rows.extend(growth::run(context)?);
    Ok(rows)
}
