//! The one way a proof speaks to people.

/// Prints a count for people who read the output of the tests.
#[expect(clippy::print_stdout, reason = "counts of kills, cuts and flips are part of the result")]
pub(super) fn print(line: &str) {
    println!("{line}");
}
