//! Child processes of this program: rows that need memory of their own, or a process that can be killed.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::Failure;
use crate::arguments::Child;

/// A child that has given its one line of answer and still runs.
pub(crate) struct Answered {
    process: std::process::Child,
    pub(crate) answer: Value,
}

impl Answered {
    /// Starts this program again and waits for its answer.
    pub(crate) fn start(child: &Child) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(child.arguments()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn()?;
        let mut line = String::new();
        let stdout = process.stdout.take().ok_or("a child has no standard output")?;
        BufReader::new(stdout).read_line(&mut line)?;
        if line.is_empty() {
            let status = process.wait()?;
            return Err(format!("child {child:?} gave no answer and ended with {status}").into());
        }
        Ok(Self { process, answer: serde_json::from_str(&line)? })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Kills it as a crash would: nothing of it runs any more, nothing is closed in order.
    pub(crate) fn kill(mut self) -> Result<Value, Failure> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(self.answer)
    }
}

/// Runs a child that ends by itself.
pub(crate) fn answer_of(child: &Child) -> Result<Value, Failure> {
    let mut answered = Answered::start(child)?;
    let status = answered.process.wait()?;
    if status.success() {
        Ok(answered.answer)
    } else {
        Err(format!("child {child:?} ended with {status}").into())
    }
}

/// One number of an answer.
pub(crate) fn figure(answer: &Value, name: &str) -> Result<f64, Failure> {
    answer[name].as_f64().ok_or_else(|| format!("a child's answer has no number {name}: {answer}").into())
}
