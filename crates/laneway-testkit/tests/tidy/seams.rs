//! Rule: the clock, sleeping, spawning and randomness are used in the seams only.
//!
//! `clippy.toml` bans them everywhere. A file that carries the expectation for that lint is a seam, and the
//! list here is the whole list: a new entry is a decision, and belongs in ARCHITECTURE.md too.

use crate::report::Finding;
use crate::source::{Source, word_offsets};
use crate::tree::Tree;

/// One file per crate that may touch the real world.
pub(crate) const SEAMS: [&str; 11] = [
    "crates/laneway-core/src/clock/system.rs",
    "crates/laneway-lanes/src/executor/seam.rs",
    "crates/laneway-embedded/src/file/seam.rs",
    "crates/laneway-redis/src/seam.rs",
    "crates/laneway-engine/src/service/env.rs",
    "crates/laneway-engine/src/service/paused.rs",
    "crates/laneway/src/seam.rs",
    "crates/laneway-client/src/seam.rs",
    "crates/laneway-server/src/seam.rs",
    "crates/laneway-testkit/src/seam.rs",
    "benches/src/seam.rs",
];

/// Lints whose expectation lifts the ban: the lint, and the groups that hold it.
const LINTS: [&str; 3] = ["disallowed_methods", "clippy::style", "clippy::all"];

/// Whether the file may use what `clippy.toml` bans. A test binary that starts child processes has a seam of
/// its own, `seam.rs` beside its `main.rs`.
pub(crate) fn is_seam(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let in_test_binary = matches!(parts[..], ["crates", _, "tests", _, "seam.rs"]);
    in_test_binary || SEAMS.contains(&path)
}

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        tree.rust_files().filter(|source| !is_seam(&source.path)).flat_map(check_source).collect();
    for file in &tree.files {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        if matches!(name, "clippy.toml" | ".clippy.toml") && file.path != "clippy.toml" {
            findings.push(Finding::fault(
                &file.path,
                1,
                "a second clippy.toml hides the bans of the first",
                "remove it and use the one at the root",
            ));
        }
    }
    findings.extend(SEAMS.iter().filter(|path| !tree.has(path)).map(|path| {
        let remedy = "remove it from SEAMS in the tidy test, or put the seam there";
        Finding::fault(path, 1, "listed as a seam and does not exist", remedy)
    }));
    findings
}

fn check_source(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in source.code_lines() {
        for lint in LINTS {
            if !word_offsets(line, lint).is_empty() {
                findings.push(Finding::fault(
                    &source.path,
                    number,
                    format!("{lint} is lifted outside the seams"),
                    "call the crate's seam file, or take a clock, a spawner or a seed as a parameter",
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::assert_only;

    const LIFT: &str = "//! A.\n#![expect(clippy::disallowed_methods, reason = \"x\")]\n";

    fn check_with_seams(path: &str, text: &str) -> Vec<Finding> {
        let mut files: Vec<(&str, &str)> = SEAMS.iter().map(|&seam| (seam, LIFT)).collect();
        files.push((path, text));
        check(&Tree::of(&files))
    }

    #[test]
    fn lifting_the_ban_fails_outside_the_seams() {
        assert_only(&check_with_seams("src/a.rs", LIFT), "src/a.rs:2", "disallowed_methods");
        let group = "//! A.\n#![expect(clippy::style, reason = \"x\")]\n";
        assert_only(&check_with_seams("src/a.rs", group), "src/a.rs:2", "clippy::style");
        assert!(check_with_seams("crates/a/tests/kill/seam.rs", LIFT).is_empty());
        assert_only(
            &check_with_seams("crates/a/tests/kill/main.rs", LIFT),
            "crates/a/tests/kill/main.rs:2",
            "",
        );
    }

    #[test]
    fn a_listed_seam_that_is_gone_fails() {
        let files: Vec<(&str, &str)> = SEAMS[1..].iter().map(|&seam| (seam, LIFT)).collect();
        assert_only(&check(&Tree::of(&files)), &format!("{}:1", SEAMS[0]), "does not exist");
    }

    #[test]
    fn a_second_set_of_bans_fails() {
        assert_only(&check_with_seams("crates/a/clippy.toml", ""), "crates/a/clippy.toml:1", "hides");
        assert!(check_with_seams("clippy.toml", "").is_empty());
    }
}
