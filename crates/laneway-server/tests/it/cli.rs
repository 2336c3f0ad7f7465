//! The command line as people and scripts meet it: what it writes, and how it ends.

mod exits;
mod following;
mod listing;
mod machine;
mod nouns;
mod sending;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::program::{self, Program};

/// A command that has ended.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// What it wrote, if it ended well.
    pub(crate) fn good(self) -> String {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self.out
    }

    /// How it ended, if badly.
    pub(crate) fn bad(self, code: i32) -> String {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        self.err
    }
}

/// A command on a server.
pub(crate) fn on(program: &Program, args: &[&str]) -> Ran {
    at(program.address(), args)
}

/// A command on whatever is at this address.
pub(crate) fn at(address: &str, args: &[&str]) -> Ran {
    let folder = std::env::temp_dir();
    Ran::of(program::run(&folder, &[args, &["--server", address]].concat()))
}

/// A command with lines to read.
pub(crate) fn fed(address: &str, args: &[&str], lines: &str) -> Ran {
    let mut child = program::command(Path::new("."), &[args, &["--server", address]].concat())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    Ran::of(child.wait_with_output().unwrap())
}

/// Text with what differs from run to run replaced: how long ago something was, ids of jobs, rates.
pub(crate) fn settled(text: &str) -> String {
    let mut settled = Vec::new();
    for line in text.lines() {
        let words: Vec<String> = line.split(' ').map(settled_word).collect();
        settled.push(words.join(" "));
    }
    settled.join("\n")
}

fn settled_word(word: &str) -> String {
    let digits = word.chars().filter(char::is_ascii_digit).count();
    let is_age = digits > 0 && digits + 1 == word.len() && word.ends_with(['s', 'm', 'h', 'd']);
    match word {
        "now" => "AGE".to_owned(),
        _ if is_age => "N".to_owned(),
        _ => word.to_owned(),
    }
}

/// A stream of two partitions, through the command line itself.
pub(crate) fn with_stream(program: &Program) {
    on(program, &["stream", "create", "mails", "--partitions", "2"]).good();
}

/// Runs something else than the program.
pub(crate) fn shell(line: &str) -> Ran {
    Ran::of(Command::new("sh").arg("-c").arg(line).output().unwrap())
}
