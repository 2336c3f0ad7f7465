//! A command as a handler: one process per event.
//!
//! It gets the data on stdin and the rest in its environment. Exit 0 is done, and stdout is the result; 75 is try again,
//! 65 is failed for good, everything else has failed under the policy. A process that takes too long, or is asked to
//! stop, is ended with its whole process group before the next attempt begins.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use laneway::core::period;
use laneway::engine::handler::{Handler, LaneAnswer, Retry, Run, Running};

use super::facts::Facts;
use super::process::{Ended, GRACE, Process, STDOUT_BYTES_MAX};

const TRY_AGAIN: i32 = 75;
const FAILED_FOR_GOOD: i32 = 65;

/// What remains to be done after a process was killed.
const WIND_UP: Duration = Duration::from_secs(1);

/// A command as a handler.
#[derive(Debug)]
pub(crate) struct Exec(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    command: Vec<String>,
    timeout: Option<Duration>,
}

/// The command cannot be started.
#[derive(Debug, thiserror::Error)]
#[error("the handler {0:?} is not there, or may not be run")]
pub(crate) struct NoProgram(String);

impl Exec {
    /// A command, with how long it may take.
    pub(crate) fn new(command: Vec<String>, timeout: Option<Duration>) -> Result<Self, NoProgram> {
        find_program(&command)?;
        Ok(Self(Arc::new(Inner { command, timeout })))
    }

    /// Runs one event.
    pub(super) async fn run(
        &self,
        facts: &Facts,
        data: Bytes,
        cancelled: impl Future<Output = ()>,
    ) -> LaneAnswer {
        self.0.run(facts, data, cancelled).await
    }
}

/// Refuses a command whose program is not there.
pub(crate) fn find_program(command: &[String]) -> Result<(), NoProgram> {
    let program = command.first().cloned().unwrap_or_default();
    if is_there(&program) { Ok(()) } else { Err(NoProgram(program)) }
}

/// Whether a shell would find the program.
fn is_there(program: &str) -> bool {
    let may_run =
        |path: &Path| path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    if program.contains('/') {
        return may_run(Path::new(program));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder: PathBuf| may_run(&folder.join(program)))
}

impl Handler for Exec {
    fn call(&self, run: Run) -> Running {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            let mut answers = Vec::with_capacity(run.lanes.len());
            for lane in &run.lanes {
                let facts = Facts::of(&run, lane);
                answers.push(inner.run(&facts, lane.events[0].data.clone(), run.cancel.cancelled()).await);
            }
            answers
        })
    }

    /// It ends its process itself when the time is over, and waits for that.
    fn grace(&self) -> Duration {
        GRACE + WIND_UP
    }
}

impl Inner {
    async fn run(&self, facts: &Facts, data: Bytes, cancelled: impl Future<Output = ()>) -> LaneAnswer {
        let process = match Process::start(&self.command, facts.environment()) {
            Ok(process) => process,
            Err(error) => {
                let words = format!("cannot start {:?}: {error}", self.command[0]);
                return LaneAnswer::failed(words, Retry::ByPolicy);
            }
        };
        match process.run(data, self.timeout, cancelled).await {
            Ok(Ended::Exited { code: Some(0), stdout, .. }) => match result_of(&stdout) {
                // Text grows when it becomes JSON.
                Some(result) if result.len() > STDOUT_BYTES_MAX => too_much(),
                result => LaneAnswer::done(result),
            },
            Ok(Ended::Exited { code, signal, stderr, .. }) => {
                let how = match (code, signal) {
                    (Some(code), _) => format!("exit {code}"),
                    (None, Some(signal)) => format!("ended by signal {signal}"),
                    (None, None) => "ended".to_owned(),
                };
                let retry = if code == Some(FAILED_FOR_GOOD) { Retry::Never } else { Retry::ByPolicy };
                // 75 only says in words what the policy does anyway: it asks for another attempt.
                let wish = if code == Some(TRY_AGAIN) { " (try again)" } else { "" };
                let said = if stderr.is_empty() { String::new() } else { format!(": {stderr}") };
                LaneAnswer::failed(format!("{how}{wish}{said}"), retry)
            }
            Ok(Ended::TooMuchOutput) => too_much(),
            Ok(Ended::TimedOut) => {
                let timeout = period::text(self.timeout.unwrap_or_default());
                LaneAnswer::failed(format!("timed out after {timeout}"), Retry::ByPolicy)
            }
            Ok(Ended::Cancelled) => LaneAnswer::failed("stopped on request", Retry::ByPolicy),
            Err(error) => LaneAnswer::failed(format!("lost its process: {error}"), Retry::ByPolicy),
        }
    }
}

fn too_much() -> LaneAnswer {
    let words =
        format!("its output has more than {STDOUT_BYTES_MAX} bytes, which is the most a result may have");
    LaneAnswer::failed(words, Retry::Never)
}

/// What the process said: JSON as it is, other text as a JSON text, nothing as no result.
pub(super) fn result_of(stdout: &[u8]) -> Option<Bytes> {
    let trimmed = stdout.trim_ascii();
    if trimmed.is_empty() {
        return None;
    }
    // The check of the JSON itself passes over what is in its texts.
    let is_text = std::str::from_utf8(trimmed).is_ok();
    if is_text && serde_json::from_slice::<serde::de::IgnoredAny>(trimmed).is_ok() {
        return Some(Bytes::copy_from_slice(trimmed));
    }
    let text = serde_json::to_vec(&String::from_utf8_lossy(trimmed)).expect("text is JSON");
    Some(Bytes::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_says_is_its_result() {
        let result = |stdout: &str| {
            result_of(stdout.as_bytes()).map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
        };
        assert_eq!(result("{\"a\": 1}\n").as_deref(), Some("{\"a\": 1}"));
        assert_eq!(result("two words\n").as_deref(), Some("\"two words\""));
        assert_eq!(result(" \n"), None);
        let no_text = result_of(b"\"\xff\"").unwrap();
        assert_eq!(serde_json::from_slice::<String>(&no_text).unwrap(), "\"\u{fffd}\"");
    }

    #[test]
    fn a_program_that_is_not_there_is_refused_at_once() {
        assert!(Exec::new(vec!["sh".to_owned()], None).is_ok());
        assert!(Exec::new(vec!["/etc/passwd".to_owned()], None).is_err());
        assert!(
            Exec::new(vec!["no-such-program".to_owned()], None)
                .unwrap_err()
                .to_string()
                .contains("no-such-program")
        );
    }
}
