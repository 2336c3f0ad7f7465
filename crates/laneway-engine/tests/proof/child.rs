//! Child processes: this test binary again, with nothing but one of its tests to run, which reports on standard output.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

/// How a child learns what to do.
const ORDERS: &str = "LANEWAY_PROOF_ORDERS";
/// Longest life of a child: one that hangs, or that lost its parent, comes to an end.
pub(crate) const LIFE_MAX: Duration = Duration::from_secs(120);

/// A child at work; killed when dropped.
pub(crate) struct Working {
    process: Child,
    /// Open and silent: a child that is to end in good order sees it close.
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Working {
    /// Starts a test of this binary with orders.
    pub(crate) fn start(test: &str, orders: &str) -> Self {
        let binary = std::env::current_exe().expect("a test binary knows its own path");
        let mut command = Command::new(binary);
        command.args(["--exact", "--nocapture", test]).env(ORDERS, orders);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("the test binary starts");
        let input = process.stdin.take();
        let lines = BufReader::new(process.stdout.take().expect("the output was piped")).lines();
        Self { process, input, lines }
    }

    /// The next line; `None` when the child ended.
    pub(crate) fn line(&mut self) -> Option<String> {
        self.lines.next().and_then(Result::ok)
    }

    /// Kills it and gives the lines that had not been read.
    pub(crate) fn kill(&mut self) -> Vec<String> {
        self.process.kill().expect("a child that was not waited for can be killed");
        self.end().0
    }

    /// Tells it to end in good order and waits for that; gives the lines that had not been read.
    pub(crate) fn finish(&mut self) -> (Vec<String>, ExitStatus) {
        self.input = None;
        self.end()
    }

    /// Waits for its end, and gives the lines that had not been read.
    pub(crate) fn end(&mut self) -> (Vec<String>, ExitStatus) {
        let rest = std::iter::from_fn(|| self.line()).collect();
        (rest, self.process.wait().expect("a child can be waited for"))
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let _ended_before = self.process.kill();
        let _no_matter_how = self.process.wait();
    }
}

/// What this process was told, if it is a child.
pub(crate) fn orders() -> Option<String> {
    std::env::var(ORDERS).ok()
}

/// Tells the parent. What was told before a kill arrives.
pub(crate) fn report(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("the parent reads until it kills");
}
