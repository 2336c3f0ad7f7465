//! Runs every checker on a history.

use super::history::{History, Violation};
use super::{atomic, chain, durable, order};

/// Every violation of every invariant.
pub fn check(history: &History) -> Vec<Violation> {
    let mut violations = Vec::new();
    let checkers = [
        order::check,
        durable::check,
        atomic::check_commits,
        atomic::check_emits,
        atomic::check_results,
        chain::check,
    ];
    for checker in checkers {
        checker(history, &mut violations);
    }
    violations
}
