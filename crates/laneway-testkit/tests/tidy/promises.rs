//! Rule: `docs/promises.md` names tests that exist, and says the same in both directions; `docs/design/defects.md` names
//! tests and rows of the benchmark that exist.
//!
//! The files hold tables with these kinds of header, any number of each:
//!
//! ```text
//! | promise or rule | what it says | tests |      tests: `name`, `crate::path::name`
//! | test | holds |                                test: `name`; holds: promise, promise
//! | what went wrong | what holds it now |         what holds it: `crate::name`, `row of the benchmark`
//! ```
//!
//! A test is a function with a test attribute, or a function of the conformance suite. Whether the test really
//! holds the promise is for the reader to judge.

use std::collections::{BTreeMap, BTreeSet};

use crate::references::in_backticks;
use crate::report::Finding;
use crate::source::{Function, Source};
use crate::tree::Tree;

const PATH: &str = "docs/promises.md";
const CONFORMANCE: &str = "crates/laneway-testkit/src/conformance";
const FORWARD: [&str; 3] = ["promise or rule", "what it says", "tests"];
const BACK: [&str; 2] = ["test", "holds"];

const DEFECTS: &str = "docs/design/defects.md";
const HELD: [&str; 2] = ["what went wrong", "what holds it now"];
const BENCHES: &str = "benches/src";

/// (promise, test) with the line that says so.
type Pairs = BTreeMap<(String, String), usize>;

#[derive(Default)]
struct Tables {
    forward: Pairs,
    back: Pairs,
    forward_rows: usize,
    back_rows: usize,
    findings: Vec<Finding>,
}

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(text) = tree.text(PATH) else {
        let remedy = "write the table from every promise to its tests, and back";
        return vec![Finding::fault(PATH, 1, "the file is missing", remedy)];
    };
    let mut tables = read(text);
    if tables.forward_rows == 0 || tables.back_rows == 0 {
        let message =
            format!("needs rows under | {} | and under | {} |", FORWARD.join(" | "), BACK.join(" | "));
        tables.fault(1, message, "add the table; see the head of tests/tidy/promises.rs");
    }
    let known = known_tests(tree);
    tables.findings.extend(check_defects(tree, &known));
    let mut named = BTreeSet::new();
    for ((_, test), &line) in tables.forward.clone().iter().chain(&tables.back.clone()) {
        if named.insert((test.clone(), line)) && !exists(&known, test) {
            tables.fault(line, format!("no test {test}"), "correct the name, or write the test");
        }
    }
    for ((promise, test), &line) in &tables.forward.clone() {
        if !tables.back.contains_key(&(promise.clone(), test.clone())) {
            let message = format!("{test} holds {promise:?} here, the back table does not say so");
            tables.fault(line, message, format!("add {promise} to the row of `{test}`"));
        }
    }
    for ((promise, test), &line) in &tables.back.clone() {
        if !tables.forward.contains_key(&(promise.clone(), test.clone())) {
            let message = format!("{test} holds {promise:?} here, the promise does not name it");
            tables.fault(line, message, format!("add `{test}` to the row of {promise}"));
        }
    }
    tables.findings
}

/// Every defect names what holds it, and all of that exists.
fn check_defects(tree: &Tree, known: &[Known]) -> Vec<Finding> {
    let Some(text) = tree.text(DEFECTS) else { return Vec::new() };
    let mut findings = Vec::new();
    let mut is_table = false;
    for (index, line) in text.lines().enumerate() {
        let Some(cells) = cells(line) else {
            is_table = false;
            continue;
        };
        if !is_table || cells.iter().all(|cell| cell.starts_with("---")) {
            is_table |= cells == HELD;
            continue;
        }
        let names = cells.get(1).map(|cell| in_backticks(cell)).unwrap_or_default();
        if names.is_empty() {
            findings.push(Finding::fault(
                DEFECTS,
                index + 1,
                "nothing holds this",
                "name the test that fails",
            ));
        }
        for name in names {
            let exists = if name.contains(' ') { is_row(tree, &name) } else { exists(known, &name) };
            if !exists {
                let remedy = "correct the name, or write what holds it";
                findings.push(Finding::fault(DEFECTS, index + 1, format!("no test or row {name}"), remedy));
            }
        }
    }
    findings
}

/// Whether the benchmark has a row of this name.
fn is_row(tree: &Tree, name: &str) -> bool {
    let quoted = format!("\"{name}\"");
    tree.rust_files().any(|source| source.path.starts_with(BENCHES) && source.text.contains(&quoted))
}

impl Tables {
    fn fault(&mut self, line: usize, message: impl Into<String>, remedy: impl Into<String>) {
        self.findings.push(Finding::fault(PATH, line, message, remedy));
    }

    fn forward_row(&mut self, line: usize, cells: &[String], seen: &mut BTreeSet<String>) {
        self.forward_rows += 1;
        let promise = plain(&cells[0]);
        if promise.is_empty() || promise.contains(',') {
            let remedy = "give it a short name without a comma: the back table lists names between commas";
            self.fault(line, format!("{promise:?} is not a name of a promise"), remedy);
        }
        if !seen.insert(format!("promise {promise}")) {
            self.fault(line, format!("{promise:?} has two rows"), "put all its tests in one row");
        }
        let tests = in_backticks(&cells[2]);
        let expected: Vec<String> = tests.iter().map(|test| format!("`{test}`")).collect();
        if tests.is_empty() {
            self.fault(
                line,
                format!("{promise:?} has no test"),
                "name the test that fails when it is broken",
            );
        } else if cells[2] != expected.join(", ") {
            self.fault(
                line,
                format!("cannot read the tests {:?}", cells[2]),
                "write `one`, `two` and nothing else",
            );
        }
        for test in tests {
            self.forward.insert((promise.clone(), test), line);
        }
    }

    fn back_row(&mut self, line: usize, cells: &[String], seen: &mut BTreeSet<String>) {
        self.back_rows += 1;
        let tests = in_backticks(&cells[0]);
        let [test] = &tests[..] else {
            self.fault(line, format!("{:?} is not one test", cells[0]), "name one test, in backticks");
            return;
        };
        if !seen.insert(format!("test {test}")) {
            self.fault(line, format!("{test} has two rows"), "put all it holds in one row");
        }
        let promises: Vec<String> = cells[1].split(',').map(plain).filter(|name| !name.is_empty()).collect();
        if promises.is_empty() {
            self.fault(line, format!("{test} holds nothing"), "name what it holds, or remove the row");
        }
        for promise in promises {
            self.back.insert((promise, test.clone()), line);
        }
    }
}

fn read(text: &str) -> Tables {
    let mut tables = Tables::default();
    let mut header: Vec<String> = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, line) in text.lines().enumerate() {
        let Some(cells) = cells(line) else {
            header.clear();
            continue;
        };
        if header.is_empty() {
            header = cells;
            continue;
        }
        let is_rule =
            cells.iter().all(|cell| !cell.is_empty() && cell.chars().all(|letter| "-: ".contains(letter)));
        let (is_forward, is_back) = (header == FORWARD, header == BACK);
        if is_rule || !(is_forward || is_back) {
            continue;
        }
        if cells.len() != header.len() {
            let message = format!("{} cells, the header has {}", cells.len(), header.len());
            tables.fault(index + 1, message, "write \\| for a bar inside a cell");
        } else if is_forward {
            tables.forward_row(index + 1, &cells, &mut seen);
        } else {
            tables.back_row(index + 1, &cells, &mut seen);
        }
    }
    tables
}

/// The cells of a table row; nothing when the line is none.
fn cells(line: &str) -> Option<Vec<String>> {
    let row = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let bar = '\u{1}';
    let row = row.replace("\\|", &bar.to_string());
    Some(row.split('|').map(|cell| cell.trim().replace(bar, "|")).collect())
}

fn plain(cell: &str) -> String {
    cell.trim().replace(['`', '*'], "")
}

/// Where a test stands: the parts of its path, and the modules that the file itself opens.
struct Known {
    name: String,
    parts: BTreeSet<String>,
}

fn known_tests(tree: &Tree) -> Vec<Known> {
    let mut known = Vec::new();
    for source in tree.rust_files() {
        let in_suite = source.path.starts_with(CONFORMANCE);
        let tests: Vec<Function> =
            source.functions().into_iter().filter(|function| in_suite || is_test(source, function)).collect();
        if tests.is_empty() {
            continue;
        }
        let mut parts: BTreeSet<String> =
            source.path.split('/').map(|part| part.trim_end_matches(".rs").replace('-', "_")).collect();
        parts.extend(source.code.split("mod ").skip(1).filter_map(|rest| {
            rest.split(|letter: char| !crate::source::is_word(letter)).next().map(str::to_owned)
        }));
        known.extend(tests.into_iter().map(|test| Known { name: test.name, parts: parts.clone() }));
    }
    known
}

/// Whether the lines right above the function hold a test attribute.
fn is_test(source: &Source, function: &Function) -> bool {
    let lines: Vec<&str> = source.code.lines().take(function.line).collect();
    let own = lines.last().copied().unwrap_or_default();
    let above = lines.iter().rev().skip(1).map(|line| line.trim());
    let attributes =
        above.take_while(|line| line.is_empty() || line.starts_with("#[") || line.ends_with(']'));
    let is_test_attribute = |line: &str| {
        let name: String = line
            .trim_start()
            .trim_start_matches("#[")
            .chars()
            .take_while(|&c| c != ']' && c != '(')
            .collect();
        line.trim_start().starts_with("#[") && name.rsplit("::").next() == Some("test")
    };
    attributes.chain([own]).any(is_test_attribute)
}

fn exists(known: &[Known], test: &str) -> bool {
    let mut path: Vec<&str> = test.split("::").collect();
    let Some(name) = path.pop() else { return false };
    known.iter().any(|known| known.name == name && path.iter().all(|part| known.parts.contains(*part)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{assert_only, lines};

    const CODE: &str = "//! A.\n#[test]\nfn one() {}\n\n/// Two.\n#[tokio::test(start_paused = true)]\nasync fn two() {}\n\n\
                        fn helper() {}\n";
    const SUITE: &str = "//! A.\npub async fn append_keeps_order() {}\n";

    fn check_tables(forward: &str, back: &str) -> Vec<Finding> {
        let text = format!(
            "| promise or rule | what it says | tests |\n|---|---|---|\n{forward}\n\n| test | holds |\n| --- | --- |\n{back}\n"
        );
        check(&Tree::of(&[
            (PATH, &text),
            ("crates/laneway-lanes/src/table/plan_tests.rs", CODE),
            ("crates/laneway-testkit/src/conformance/append.rs", SUITE),
        ]))
    }

    const ORDER: &str = "| order | in turn | `one`, `laneway_lanes::table::two` |";
    const ORDER_BACK: &str = "| `one` | order |\n| `laneway_lanes::table::two` | order, chain |";
    const CHAIN: &str = "| chain | a \\| b | `append_keeps_order`, `laneway_lanes::table::two` |";
    const CHAIN_BACK: &str = "| `append_keeps_order` | chain |";

    #[test]
    fn tables_that_agree_pass() {
        let found = check_tables(&format!("{ORDER}\n{CHAIN}"), &format!("{ORDER_BACK}\n{CHAIN_BACK}"));
        assert_eq!(lines(&found), Vec::<String>::new());
    }

    #[test]
    fn a_test_that_does_not_exist_fails() {
        let check_name =
            |name: &str| check_tables(&format!("| a | b | `{name}` |"), &format!("| `{name}` | a |"));
        assert!(check_name("one").is_empty());
        for missing in ["three", "helper", "laneway_core::one", "laneway_lanes::run::one"] {
            let found = lines(&check_name(missing));
            assert_eq!(found.len(), 2, "{missing}: {found:?}");
            assert!(found[0].starts_with(&format!("{PATH}:3: no test {missing}")), "{found:?}");
        }
    }

    #[test]
    fn pairs_that_stand_on_one_side_only_fail() {
        let found = check_tables("| a | b | `one`, `two` |", "| `one` | a |");
        assert_only(&found, &format!("{PATH}:3"), "back table does not say so");
        let found = check_tables("| a | b | `one` |", "| `one` | a |\n| `two` | a |");
        assert_only(&found, &format!("{PATH}:8"), "the promise does not name it");
    }

    #[test]
    fn rows_without_tests_or_twice_fail() {
        let place = format!("{PATH}:4");
        let good = "| a | b | `one` |";
        assert_only(&check_tables(&format!("{good}\n| c | d | later |"), "| `one` | a |"), &place, "no test");
        assert_only(&check_tables(&format!("{good}\n{good}"), "| `one` | a |"), &place, "two rows");
        assert_only(&check_tables(&format!("{good}\n| c | d |"), "| `one` | a |"), &place, "2 cells");
        let found = check_tables("| a | b | `one` and more |", "| `one` | a |");
        assert_only(&found, &format!("{PATH}:3"), "cannot read the tests");
        let found = check_tables("| a, b | c | `one` |", "");
        assert!(lines(&found).iter().any(|line| line.contains("not a name of a promise")), "{found:?}");
    }

    #[test]
    fn defects_without_a_test_or_row_that_exists_fail() {
        let check = |row: &str| {
            let tables = format!(
                "| promise or rule | what it says | tests |\n{ORDER}\n{CHAIN}\n\n| test | holds |\n{ORDER_BACK}\n{CHAIN_BACK}\n"
            );
            let defects = format!("| what went wrong | what holds it now |\n| --- | --- |\n{row}\n");
            check(&Tree::of(&[
                (PATH, &tables),
                (DEFECTS, &defects),
                ("crates/laneway-lanes/src/table/plan_tests.rs", CODE),
                ("crates/laneway-testkit/src/conformance/append.rs", SUITE),
                ("benches/src/rows/growth/row.rs", "//! A.\nconst NAME: &str = \"growth a row\";\n"),
            ]))
        };
        let good = "| it | `laneway_lanes::one`, `laneway_testkit::append_keeps_order`, `growth a row` |";
        assert_eq!(lines(&check(good)), Vec::<String>::new());
        let place = format!("{DEFECTS}:3");
        assert_only(&check("| it | nothing |"), &place, "nothing holds this");
        assert_only(&check("| it | `laneway_core::one` |"), &place, "no test or row laneway_core::one");
        assert_only(&check("| it | `growth another row` |"), &place, "no test or row growth another row");
    }

    #[test]
    fn a_missing_file_and_missing_tables_fail() {
        assert_only(&check(&Tree::of(&[])), &format!("{PATH}:1"), "missing");
        assert_only(&check(&Tree::of(&[(PATH, "# Promises\n")])), &format!("{PATH}:1"), "needs rows");
    }
}
