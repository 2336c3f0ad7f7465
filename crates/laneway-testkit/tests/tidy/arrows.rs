//! Rule: a dependency between crates is a decision, written down in the table here.
//!
//! Reads the manifests and the lock file, so that an arrow fails even while nothing uses it yet.

use std::collections::BTreeSet;

use toml::{Table, Value};

use crate::manifests::{Dependency, dependencies, line_of, members};
use crate::report::Finding;
use crate::tree::Tree;

/// What one crate may depend on.
struct Arrows {
    package: &'static str,
    /// Crates of ours that it may use.
    ours: &'static [&'static str],
    /// Crates of ours that only its tests may use.
    ours_in_tests: &'static [&'static str],
    /// The libraries it may use outside its tests; nothing means any.
    outside: Option<&'static [&'static str]>,
}

const OURS: &str = "laneway";
const REMEDY: &str = "remove the arrow, or decide it: table in tests/tidy/arrows.rs and ARCHITECTURE.md";

const TABLE: [Arrows; 12] = [
    Arrows {
        package: "laneway-core",
        ours: &[],
        ours_in_tests: &[],
        outside: Some(&["async-trait", "bytes", "rustix", "thiserror", "xxhash-rust"]),
    },
    Arrows { package: "laneway-lanes", ours: &[], ours_in_tests: &[], outside: None },
    Arrows {
        package: "laneway-embedded",
        ours: &["laneway-core"],
        ours_in_tests: &["laneway-lanes", "laneway-testkit"],
        outside: None,
    },
    Arrows {
        package: "laneway-redis",
        ours: &["laneway-core"],
        ours_in_tests: &["laneway-embedded", "laneway-testkit"],
        outside: None,
    },
    Arrows {
        package: "laneway-engine",
        ours: &["laneway-core", "laneway-lanes"],
        ours_in_tests: &["laneway-embedded", "laneway-testkit"],
        outside: None,
    },
    Arrows {
        package: "laneway-derive",
        ours: &[],
        ours_in_tests: &[],
        outside: Some(&["proc-macro2", "quote", "syn"]),
    },
    Arrows {
        package: "laneway",
        ours: &[
            "laneway-core",
            "laneway-derive",
            "laneway-embedded",
            "laneway-engine",
            "laneway-lanes",
            "laneway-redis",
        ],
        ours_in_tests: &[],
        outside: None,
    },
    Arrows { package: "laneway-client", ours: &[], ours_in_tests: &[], outside: None },
    Arrows {
        package: "laneway-server",
        ours: &["laneway", "laneway-client", "laneway-otlp"],
        ours_in_tests: &["laneway-testkit"],
        outside: None,
    },
    Arrows { package: "laneway-otlp", ours: &["laneway"], ours_in_tests: &[], outside: None },
    Arrows {
        package: "laneway-testkit",
        ours: &["laneway-core", "laneway-engine"],
        ours_in_tests: &[],
        outside: None,
    },
    Arrows {
        package: "laneway-bench",
        ours: &[
            "laneway-core",
            "laneway-embedded",
            "laneway-engine",
            "laneway-lanes",
            "laneway-redis",
            "laneway-testkit",
        ],
        ours_in_tests: &[],
        outside: None,
    },
];

/// Libraries that the core must not see, not even through another library.
const NEVER_IN_CORE: [&str; 2] = ["tokio", "serde"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in members(tree) {
        let Some(arrows) = TABLE.iter().find(|arrows| arrows.package == member.package) else {
            let message = format!("crate {} is not in the table of arrows", member.package);
            findings.push(Finding::fault(
                &member.path,
                1,
                message,
                "add it to TABLE in tests/tidy/arrows.rs",
            ));
            continue;
        };
        for dependency in dependencies(tree, &member) {
            if let Some(message) = refusal(arrows, &dependency) {
                let line = line_of(member.text, &dependency.key);
                findings.push(Finding::fault(&member.path, line, message, REMEDY));
            } else if arrows.package == "laneway-core" && !dependency.in_tests {
                findings.extend(hidden_library(tree, &dependency.package).map(|found| {
                    let message = format!("laneway-core sees {found} through {}", dependency.package);
                    Finding::fault(&member.path, line_of(member.text, &dependency.key), message, REMEDY)
                }));
            }
        }
    }
    findings
}

/// Why the table does not allow the dependency.
fn refusal(arrows: &Arrows, dependency: &Dependency) -> Option<String> {
    let (package, other) = (arrows.package, dependency.package.as_str());
    if other.starts_with(OURS) {
        let allowed =
            arrows.ours.contains(&other) || (dependency.in_tests && arrows.ours_in_tests.contains(&other));
        let place = if dependency.in_tests { "in its tests" } else { "outside its tests" };
        return (!allowed).then(|| format!("{package} must not depend on {other} {place}"));
    }
    let outside = arrows.outside?;
    let allowed = dependency.in_tests || outside.contains(&other);
    (!allowed).then(|| format!("{package} must not depend on {other}; allowed: {}", outside.join(", ")))
}

/// A library that the core must not see and that this one brings along.
fn hidden_library(tree: &Tree, package: &str) -> Option<String> {
    let lock: Table = tree.text("Cargo.lock")?.parse().ok()?;
    let packages = lock.get("package")?.as_array()?;
    let mut seen = BTreeSet::new();
    let mut waiting = vec![package.to_owned()];
    while let Some(name) = waiting.pop() {
        if NEVER_IN_CORE.iter().any(|banned| name.starts_with(banned)) {
            return Some(name);
        }
        if seen.insert(name.clone()) {
            let same =
                packages.iter().filter(|entry| entry.get("name").and_then(Value::as_str) == Some(&name));
            let lists = same.filter_map(|entry| entry.get("dependencies")?.as_array()).flatten();
            // An entry is a name, followed by a version where two are locked.
            waiting.extend(lists.filter_map(|entry| entry.as_str()?.split(' ').next().map(str::to_owned)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::assert_only;

    const LOCK: &str = "[[package]]\nname = \"bytes\"\nversion = \"1\"\ndependencies = [\"middle 1.0\"]\n\
                        [[package]]\nname = \"middle\"\nversion = \"1\"\ndependencies = [\"serde\"]\n";

    fn check_manifest(package: &str, dependencies: &str) -> Vec<Finding> {
        let manifest = format!("[package]\nname = \"{package}\"\n{dependencies}");
        check(&Tree::of(&[("Cargo.toml", "[workspace]\n"), ("crates/a/Cargo.toml", &manifest)]))
    }

    #[test]
    fn an_arrow_that_nobody_decided_fails() {
        let place = "crates/a/Cargo.toml:4";
        let arrow = "[dependencies]\nlaneway-core.workspace = true\n";
        assert!(check_manifest("laneway-embedded", arrow).is_empty());
        assert_only(&check_manifest("laneway-lanes", arrow), place, "must not depend on laneway-core");
        let in_tests = "[dev-dependencies]\nlaneway-lanes.workspace = true\n";
        assert!(check_manifest("laneway-embedded", in_tests).is_empty());
        let in_code = "[dependencies]\nlaneway-lanes.workspace = true\n";
        assert_only(&check_manifest("laneway-embedded", in_code), place, "outside its tests");
        let for_one_system = "[target.'cfg(unix)'.dependencies]\nlaneway-lanes.workspace = true\n";
        assert_only(&check_manifest("laneway-embedded", for_one_system), place, "laneway-lanes");
        let renamed = "[dependencies]\nlanes = { path = \"x\", package = \"laneway-lanes\" }\n";
        assert_only(&check_manifest("laneway-testkit", renamed), place, "laneway-lanes");
        assert_only(&check_manifest("laneway-new", ""), "crates/a/Cargo.toml:1", "not in the table");
    }

    #[test]
    fn the_core_takes_listed_libraries_only() {
        let place = "crates/a/Cargo.toml:4";
        assert!(check_manifest("laneway-core", "[dependencies]\nbytes.workspace = true\n").is_empty());
        assert!(check_manifest("laneway-core", "[dev-dependencies]\nproptest.workspace = true\n").is_empty());
        let tokio = "[dependencies]\ntokio.workspace = true\n";
        assert_only(&check_manifest("laneway-core", tokio), place, "must not depend on tokio");
        let build = "[build-dependencies]\ncc.workspace = true\n";
        assert_only(&check_manifest("laneway-core", build), place, "must not depend on cc");
    }

    #[test]
    fn the_core_does_not_see_serde_through_another_library() {
        let manifest = "[package]\nname = \"laneway-core\"\n[dependencies]\nbytes.workspace = true\n";
        let root = ("Cargo.toml", "[workspace]\n");
        let tree = Tree::of(&[root, ("crates/a/Cargo.toml", manifest), ("Cargo.lock", LOCK)]);
        assert_only(&check(&tree), "crates/a/Cargo.toml:4", "sees serde through bytes");
    }
}
