//! Rule: what people read stays small enough to be read.
//!
//! Test code does not count: a long table of cases is no harder to read than a short one.

use crate::report::Finding;
use crate::source::Source;
use crate::tree::Tree;

const FILE_LINES_WARN: usize = 600;
const FILE_LINES_MAX: usize = 900;
const FUNCTION_LINES_MAX: usize = 70;
const ARCHITECTURE_LINES_MAX: usize = 300;

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> = tree.rust_files().flat_map(check_source).collect();
    let architecture_lines = tree.text("ARCHITECTURE.md").map_or(0, |text| text.lines().count());
    if architecture_lines > ARCHITECTURE_LINES_MAX {
        findings.push(Finding::fault(
            "ARCHITECTURE.md",
            1,
            format!("{architecture_lines} lines, limit {ARCHITECTURE_LINES_MAX}"),
            "move details to docs/design/ and keep the map",
        ));
    }
    findings
}

fn check_source(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let line_count = (1..=source.text.lines().count()).filter(|&line| !source.is_test_line(line)).count();
    let remedy = "split the file by what its parts are for";
    if line_count > FILE_LINES_MAX {
        let message = format!("{line_count} lines without tests, limit {FILE_LINES_MAX}");
        findings.push(Finding::fault(&source.path, 1, message, remedy));
    } else if line_count > FILE_LINES_WARN {
        let message = format!("{line_count} lines without tests, {FILE_LINES_WARN} are enough");
        findings.push(Finding::warning(&source.path, 1, message, remedy));
    }
    for function in source.functions() {
        if function.line_count > FUNCTION_LINES_MAX && !source.is_test_line(function.line) {
            findings.push(Finding::fault(
                &source.path,
                function.line,
                format!("fn {} has {} lines, limit {FUNCTION_LINES_MAX}", function.name, function.line_count),
                "give each step a name and a function of its own",
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Weight, assert_only};

    fn check_text(text: &str) -> Vec<Finding> {
        check(&Tree::of(&[("src/a.rs", text)]))
    }

    #[test]
    fn a_long_file_warns_and_a_longer_one_fails() {
        assert!(check_text(&"x\n".repeat(600)).is_empty());
        let warning = check_text(&"x\n".repeat(601));
        assert_only(&warning, "src/a.rs:1", "601 lines");
        assert_eq!(warning[0].weight, Weight::Warning);
        let fault = check_text(&"x\n".repeat(901));
        assert_only(&fault, "src/a.rs:1", "901 lines");
        assert_eq!(fault[0].weight, Weight::Fault);
    }

    #[test]
    fn a_long_function_fails_and_tests_do_not_count() {
        let function = |body| format!("//! A.\nfn long() {{\n{}}}\n", "x;\n".repeat(body));
        assert!(check_text(&function(68)).is_empty());
        assert_only(&check_text(&function(69)), "src/a.rs:2", "fn long has 71 lines");
        let in_tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function(900));
        assert!(check_text(&in_tests).is_empty());
    }

    #[test]
    fn a_long_architecture_fails() {
        let tree = Tree::of(&[("ARCHITECTURE.md", &"x\n".repeat(301))]);
        assert_only(&check(&tree), "ARCHITECTURE.md:1", "301 lines");
    }
}
