//! House rules that neither the compiler nor clippy can check.
//!
//! One test walks the repository and reports every finding at once, each with file, line and remedy. Every
//! rule is a module with a `check` over a [`tree::Tree`], and its own tests show on small samples that it can
//! fail. Reads files only: changes nothing, starts nothing, knows nothing of git.

mod arrows;
mod leftovers;
mod manifests;
mod modules;
mod promises;
mod references;
mod report;
mod seams;
mod sizes;
mod source;
mod tree;

use report::{Finding, Weight};
use tree::Tree;

#[test]
fn the_repository_keeps_the_house_rules() {
    let tree = Tree::of_repository();
    assert!(tree.rust_files().count() > 0, "the tidy test found no Rust file: it looks in the wrong folder");
    let rules: [fn(&Tree) -> Vec<Finding>; 8] = [
        arrows::check,
        leftovers::check,
        manifests::check,
        modules::check,
        promises::check,
        references::check,
        seams::check,
        sizes::check,
    ];
    let mut findings: Vec<Finding> = rules.iter().flat_map(|rule| rule(&tree)).collect();
    findings.sort_by(|left, right| (&left.path, left.line).cmp(&(&right.path, right.line)));
    let (faults, warnings): (Vec<_>, Vec<_>) =
        findings.into_iter().partition(|finding| finding.weight == Weight::Fault);
    for warning in &warnings {
        println!("warning: {warning}");
    }
    let list: String = faults.iter().map(|fault| format!("{fault}\n")).collect();
    assert!(faults.is_empty(), "{} findings of the tidy test\n{list}", faults.len());
}
