//! Rule: nothing half done, nothing skipped, nothing that waits by sleeping, nothing from one machine.
//!
//! The words it looks for are put together here from parts, so that this file does not find itself.

use crate::report::Finding;
use crate::seams;
use crate::source::{Source, is_word, word_offsets};
use crate::tree::{File, Tree};

/// Words that promise work for later, in code, comments and scripts.
const MARKERS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Words in code, with what to do instead.
const BANNED_WORDS: [(&str, &str); 4] = [
    ("todo!", "finish it, or leave it out"),
    ("unimplemented!", "finish it, or leave it out"),
    ("dbg!", "remove it; use tracing for what should stay"),
    ("unsafe", "find the safe way; the workspace forbids it"),
];

/// Folders that exist on one machine only.
const MACHINE_FOLDERS: [&str; 3] = [concat!("/", "work"), concat!("/", "root"), concat!("/", "farm")];
const HOME_FOLDER: &str = concat!("/", "home/");

const TEXT_ENDINGS: [&str; 9] = [".rs", ".md", ".toml", ".sh", ".yml", ".yaml", ".json", ".html", ".txt"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        tree.files.iter().filter(|file| is_text(file)).flat_map(check_text).collect();
    findings.extend(tree.rust_files().flat_map(check_code));
    findings
}

fn is_text(file: &File) -> bool {
    TEXT_ENDINGS.iter().any(|ending| file.path.ends_with(ending)) || file.text.starts_with("#!")
}

fn check_text(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let mut fault =
            |message, remedy| findings.push(Finding::fault(&file.path, index + 1, message, remedy));
        // Prose may speak about markers; code, settings and scripts may not hold them.
        if !file.path.ends_with(".md") {
            for marker in MARKERS {
                if !word_offsets(line, marker).is_empty() {
                    fault(
                        format!("leftover marker {marker}"),
                        "do it now, or open an issue and remove the marker",
                    );
                }
            }
        }
        if let Some(path) = machine_path(line) {
            fault(
                format!("path of one machine: {path}"),
                "use a path from the repository's root or a temporary folder",
            );
        }
    }
    findings
}

/// The first folder in the line that only exists on the machine of its writer.
fn machine_path(line: &str) -> Option<String> {
    let starts_free = |offset: usize| {
        !line[..offset].chars().next_back().is_some_and(|letter| is_word(letter) || "./-~}".contains(letter))
    };
    for folder in MACHINE_FOLDERS {
        for (offset, _) in line.match_indices(folder) {
            let after = line[offset + folder.len()..].chars().next();
            if starts_free(offset) && !after.is_some_and(|letter| is_word(letter) || letter == '-') {
                return Some(folder.into());
            }
        }
    }
    for (offset, _) in line.match_indices(HOME_FOLDER) {
        let name: String =
            line[offset + HOME_FOLDER.len()..].chars().take_while(|&letter| is_word(letter)).collect();
        if starts_free(offset) && !name.is_empty() {
            return Some(format!("{HOME_FOLDER}{name}"));
        }
    }
    None
}

fn check_code(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in source.code_lines() {
        let mut fault =
            |message: &str, remedy| findings.push(Finding::fault(&source.path, number, message, remedy));
        for (word, remedy) in BANNED_WORDS {
            // The exclamation mark is no part of a word: look at the name, then at what follows.
            let name = word.trim_end_matches('!');
            if word_offsets(line, name).iter().any(|&offset| line[offset..].starts_with(word)) {
                fault(&format!("leftover {word}"), remedy);
            }
        }
        if has_attribute_word(line, "ignore") {
            fault("a test that is never run", "make it run everywhere, or remove it");
        }
        if has_attribute_word(line, "should_panic") {
            fault("a test that passes by any panic", "return the error and check it");
        }
        if sleeps(line) && (source.is_test_line(number) || !seams::is_seam(&source.path)) {
            fault("waiting by sleeping", "wait for a signal or move a clock");
        }
    }
    for (index, line) in source.text.lines().enumerate() {
        let doc = line.trim_start().strip_prefix("//").and_then(|line| line.strip_prefix(['/', '!']));
        if doc
            .and_then(|doc| doc.trim_start().strip_prefix("```"))
            .is_some_and(|tags| tags.contains("ignore"))
        {
            let remedy = "make the example run, or mark it no_run so that it compiles at least";
            findings.push(Finding::fault(
                &source.path,
                index + 1,
                "an example that is never compiled",
                remedy,
            ));
        }
    }
    findings
}

fn has_attribute_word(line: &str, word: &str) -> bool {
    line.contains("#[") && !word_offsets(line, word).is_empty()
}

/// Whether the line calls a sleep of the standard library or of tokio: by path, or bare after an import.
fn sleeps(line: &str) -> bool {
    ["sleep", "sleep_until", "sleep_ms"].iter().any(|word| {
        word_offsets(line, word).iter().any(|&offset| {
            let before = line[..offset].trim_end();
            let called = line[offset + word.len()..].trim_start().starts_with('(');
            let by_path = before.ends_with("thread::") || before.ends_with("time::");
            let bare = !before.ends_with("::") && !before.ends_with('.') && !before.ends_with("fn");
            by_path || (called && bare)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::assert_only;

    fn check_line(line: &str) -> Vec<Finding> {
        check(&Tree::of(&[("src/a.rs", &format!("//! A.\n{line}\n"))]))
    }

    #[test]
    fn markers_fail_in_code_and_comments() {
        for marker in MARKERS {
            assert_only(&check_line(&format!("// {marker}: later")), "src/a.rs:2", marker);
            assert!(check_line(&format!("let a = \"a{marker}\";")).is_empty());
        }
        let script = Tree::of(&[("run", &format!("#!/bin/sh\n# {}\n", MARKERS[0]))]);
        assert_only(&check(&script), "run:2", MARKERS[0]);
    }

    #[test]
    fn banned_words_fail_in_code_only() {
        assert_only(&check_line("todo!()"), "src/a.rs:2", "todo!");
        assert_only(&check_line("unimplemented!(\"x\")"), "src/a.rs:2", "unimplemented!");
        assert_only(&check_line("let a = dbg!(b);"), "src/a.rs:2", "dbg!");
        assert_only(&check_line("unsafe { a() }"), "src/a.rs:2", "unsafe");
        assert!(check_line("#![forbid(unsafe_code)] // unsafe, dbg!(x)").is_empty());
        assert!(check_line("let todo = 1; fdbg!(a)").is_empty());
    }

    #[test]
    fn tests_that_cannot_fail_are_found() {
        assert_only(&check_line("#[ignore = \"slow\"]"), "src/a.rs:2", "never run");
        assert_only(&check_line("#[cfg_attr(miri, ignore)]"), "src/a.rs:2", "never run");
        assert_only(&check_line("#[should_panic(expected = \"x\")]"), "src/a.rs:2", "any panic");
        assert_only(&check_line("/// ```rust,ignore"), "src/a.rs:2", "never compiled");
        assert!(check_line("/// ```no_run\nlet ignore = 1;").is_empty());
    }

    #[test]
    fn sleeping_fails_outside_the_seams() {
        assert_only(&check_line("std::thread::sleep(d);"), "src/a.rs:2", "sleeping");
        assert_only(&check_line("tokio::time::sleep(d).await;"), "src/a.rs:2", "sleeping");
        assert_only(&check_line("sleep(d).await;"), "src/a.rs:2", "sleeping");
        assert!(check_line("clock.sleep(d).await; seam::sleep(d); fn sleep() {}").is_empty());
        let seam = seams::SEAMS[0];
        assert!(check(&Tree::of(&[(seam, "//! A.\nstd::thread::sleep(d);\n")])).is_empty());
    }

    #[test]
    fn paths_of_one_machine_fail_everywhere() {
        for folder in MACHINE_FOLDERS {
            assert_only(&check_line(&format!("// see {folder}/a")), "src/a.rs:2", folder);
            assert_only(&check_line(&format!("let a = \"{folder}\";")), "src/a.rs:2", folder);
            assert!(check_line(&format!("// docs{folder}/a, {folder}er and .{folder}")).is_empty());
        }
        let home = format!("{HOME_FOLDER}anna");
        assert_only(&check(&Tree::of(&[("a.md", &format!("in `{home}/x`\n"))])), "a.md:1", &home);
    }
}
