//! Rule: every file says what it is for, and a `mod.rs` holds nothing but the list of its parts.

use crate::report::Finding;
use crate::source::{Source, attribute_len, line_at};
use crate::tree::Tree;

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust_files().flat_map(|source| check_docs(source).into_iter().chain(check_list(source))).collect()
}

fn check_docs(source: &Source) -> Option<Finding> {
    let first = source.text.lines().next().unwrap_or_default();
    let said = first.strip_prefix("//!").is_some_and(|words| !words.trim().is_empty());
    let remedy = "begin the file with //! and say what it is for, then what it does not do";
    (!said).then(|| Finding::fault(&source.path, 1, "the file has no module documentation", remedy))
}

fn check_list(source: &Source) -> Option<Finding> {
    if source.path.rsplit('/').next() != Some("mod.rs") {
        return None;
    }
    let code = &source.code;
    let mut at = 0;
    loop {
        at += code[at..].len() - code[at..].trim_start().len();
        let rest = &code[at..];
        if rest.is_empty() {
            return None;
        }
        if rest.starts_with("#[") || rest.starts_with("#![") {
            at += attribute_len(rest).unwrap_or(rest.len());
            continue;
        }
        let statement = &rest[..rest.find(';').map_or(rest.len(), |end| end + 1)];
        if !is_list_entry(statement) {
            return Some(Finding::fault(
                &source.path,
                line_at(code, at),
                "mod.rs holds logic",
                "move it to a file named after what it does; mod.rs has docs, mod, use and attributes only",
            ));
        }
        at += statement.len();
    }
}

/// Whether the text is `mod name;` or `use …;`, with any visibility.
fn is_list_entry(statement: &str) -> bool {
    let mut item = statement;
    if let Some(rest) = item.strip_prefix("pub") {
        item = rest.trim_start();
        if item.starts_with('(') {
            item = item.split_once(')').map_or("", |(_, rest)| rest.trim_start());
        }
    }
    let is_module = item.starts_with("mod ") && !item.contains('{');
    statement.ends_with(';') && (is_module || item.starts_with("use "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::assert_only;

    #[test]
    fn a_file_without_module_docs_fails() {
        let check_text = |text| check(&Tree::of(&[("src/a.rs", text)]));
        assert!(check_text("//! Frames.\nfn a() {}\n").is_empty());
        assert_only(&check_text("// Frames.\n"), "src/a.rs:1", "no module documentation");
        assert_only(&check_text("//!\nfn a() {}\n"), "src/a.rs:1", "no module documentation");
        assert_only(&check_text(""), "src/a.rs:1", "no module documentation");
    }

    #[test]
    fn logic_in_a_module_list_fails() {
        let check_text = |text: &str| check(&Tree::of(&[("src/a/mod.rs", &format!("//! A.\n{text}"))]));
        let list = "#![cfg(unix)]\nmod a;\npub(crate) mod b;\n#[cfg(test)]\n#[path = \"x.rs\"]\nmod c;\n\
                    pub use a::{One, Two};\nuse b::Three as _;\n";
        assert!(check_text(list).is_empty());
        assert_only(&check_text("mod a;\npub fn b() {}\n"), "src/a/mod.rs:3", "logic");
        assert_only(&check_text("mod tests { fn a() {} }\n"), "src/a/mod.rs:2", "logic");
        assert_only(&check_text("pub struct A;\n"), "src/a/mod.rs:2", "logic");
        assert_only(&check_text("const A: u8 = 1;\n"), "src/a/mod.rs:2", "logic");
    }
}
