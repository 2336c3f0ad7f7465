//! Rule: what the guides at the root name exists.
//!
//! Looks at relative links and at names under `docs/` in all of them, and at every name in backticks of
//! ARCHITECTURE.md that looks like a path of the repository. Does not look at links to the outside.

use crate::report::Finding;
use crate::tree::Tree;

const GUIDES: [&str; 3] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];
const FILE_ENDINGS: [&str; 3] = [".rs", ".md", ".toml"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    GUIDES.iter().flat_map(|guide| check_guide(tree, guide)).collect()
}

fn check_guide(tree: &Tree, guide: &str) -> Vec<Finding> {
    let Some(text) = tree.text(guide) else {
        return vec![Finding::fault(
            guide,
            1,
            "the guide is missing",
            "write it; STYLE.md says what it holds",
        )];
    };
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut names = link_targets(line);
        names.extend(docs_names(line));
        if guide == "ARCHITECTURE.md" {
            names.extend(in_backticks(line).into_iter().filter(|name| looks_like_path(tree, name)));
        }
        names.sort();
        names.dedup();
        for name in names.iter().filter(|name| !exists(tree, name)) {
            let remedy = "correct the name, or write what it promises";
            findings.push(Finding::fault(guide, index + 1, format!("{name} does not exist"), remedy));
        }
    }
    findings
}

/// Targets of Markdown links that stay inside the repository, without their anchors.
fn link_targets(line: &str) -> Vec<String> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    let inside = targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:"));
    let paths = inside.map(|target| target.split('#').next().unwrap_or_default());
    paths.filter(|path| !path.is_empty()).map(|path| path.trim_start_matches("./").to_owned()).collect()
}

/// Names under `docs/`, in backticks or in the running text.
fn docs_names(line: &str) -> Vec<String> {
    let breaks = |letter: char| letter.is_whitespace() || "`()[]<>\"',;:|*{}".contains(letter);
    let words = line.split(breaks).filter(|word| word.starts_with("docs/"));
    words.map(|word| word.split('#').next().unwrap_or_default().trim_end_matches('.').to_owned()).collect()
}

pub(crate) fn in_backticks(line: &str) -> Vec<String> {
    line.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Whether a name in backticks is meant as a file or folder: it begins with a folder of the root or a crate,
/// or it ends like a file.
fn looks_like_path(tree: &Tree, name: &str) -> bool {
    let plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || "/._-".contains(letter));
    if !plain || name.starts_with('/') || name.starts_with("../") {
        return false;
    }
    let is_file = FILE_ENDINGS.iter().any(|ending| name.len() > ending.len() && name.ends_with(ending));
    let first = name.trim_start_matches("./").split('/').next().unwrap_or_default();
    let is_folder = name.contains('/') && (tree.has(first) || tree.has(&format!("crates/{first}")));
    is_file || is_folder
}

fn exists(tree: &Tree, name: &str) -> bool {
    let name = name.trim_start_matches("./");
    // Inside the description of a crate, names may begin at a folder of it.
    tree.has(name)
        || tree.has(&format!("crates/{name}"))
        || (!name.starts_with("docs/") && tree.has_ending(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{assert_only, lines};

    fn check_texts(architecture: &str, readme: &str) -> Vec<Finding> {
        check(&Tree::of(&[
            ("ARCHITECTURE.md", architecture),
            ("README.md", readme),
            ("CONTRIBUTING.md", "# Contributing\n"),
            ("crates/laneway-core/src/clock/system.rs", "//! A.\n"),
            ("docs/promises.md", ""),
        ]))
    }

    #[test]
    fn names_that_exist_pass() {
        let architecture = "Read `crates/laneway-core/`, `laneway-core/src`, `clock/system.rs`, `system.rs`, \
                            `docs/promises.md`, and ids like `orders/3/17`, `/v1/x`, `Store::append`.\n";
        let readme = "See [promises](docs/promises.md#order), [web](https://example.org/docs/x) and docs/promises.md.\n";
        assert_eq!(lines(&check_texts(architecture, readme)), Vec::<String>::new());
    }

    #[test]
    fn names_that_do_not_exist_fail() {
        assert_only(&check_texts("a\n`crates/laneway-cor`\n", ""), "ARCHITECTURE.md:2", "crates/laneway-cor");
        assert_only(&check_texts("`laneway-core/source`", ""), "ARCHITECTURE.md:1", "laneway-core/source");
        assert_only(&check_texts("`frame.rs`", ""), "ARCHITECTURE.md:1", "frame.rs");
        assert_only(&check_texts("", "see `docs/format.md`"), "README.md:1", "docs/format.md");
        assert_only(&check_texts("", "[style](STYLE.md)"), "README.md:1", "STYLE.md");
    }

    #[test]
    fn a_missing_guide_fails() {
        let found = check(&Tree::of(&[("README.md", "")]));
        let expected = ["ARCHITECTURE.md:1: the guide is missing", "CONTRIBUTING.md:1: the guide is missing"];
        assert_eq!(lines(&found), expected);
    }
}
