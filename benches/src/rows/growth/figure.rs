//! Rows of this group: one figure each, with the limit that it must keep. All stores sync before they answer.

use crate::load::Compared;
use crate::report::{Better, Row};

/// Others count as undisturbed while the p99 of their calls is within this factor of what it is alone.
pub(super) const UNDISTURBED: f64 = 3.0;
/// How long anything may hold the store's lock, in milliseconds: so much later may the calls of others be.
const HELD_MAX_MS: f64 = 2.0;

/// A figure that is only reported.
pub(super) fn reported(name: &str, value: f64, unit: &'static str, note: String) -> Row {
    Row {
        name: name.to_owned(),
        rate: value,
        unit,
        better: Better::Lower,
        durability: "synced",
        note,
        ..Row::default()
    }
}

/// A figure with an upper limit.
pub(super) fn at_most(name: &str, value: f64, unit: &'static str, must: f64, note: String) -> Row {
    Row { must: Some(must), ..reported(name, value, unit, note) }
}

/// A figure with a lower limit.
pub(super) fn at_least(name: &str, value: f64, unit: &'static str, must: f64, note: String) -> Row {
    Row { better: Better::Higher, ..at_most(name, value, unit, must, note) }
}

/// The p99 of appends that have nothing to do with a situation: within [`UNDISTURBED`] of what it is alone.
pub(super) fn undisturbed(name: &str, compared: &Compared, note: &str) -> Row {
    compared_row(name, compared, UNDISTURBED * compared.alone.p99(), note)
}

/// Appends beside upkeep that must not hold the lock for long: their p99 against a limit, and the longest of them.
pub(super) fn unblocked(name: &str, compared: &Compared, note: &str) -> Vec<Row> {
    let p99 = compared_row(&format!("{name}, p99"), compared, compared.alone.p99() + HELD_MAX_MS, note);
    let longest = Row {
        baseline: Some("alone"),
        baseline_rate: Some(compared.alone.max()),
        ..reported(&format!("{name}, max"), compared.beside.max(), "ms", String::new())
    };
    vec![p99, longest]
}

fn compared_row(name: &str, compared: &Compared, must: f64, note: &str) -> Row {
    let Compared { alone, beside } = compared;
    let note = format!("{note}; alone {}; beside it {}", alone.summary(), beside.summary());
    Row {
        baseline: Some("alone"),
        baseline_rate: Some(alone.p99()),
        p50_ms: Some(beside.p50()),
        p99_ms: Some(beside.p99()),
        ..at_most(name, beside.p99(), "ms p99", must, note)
    }
}
