//! How a command ends: its exit code, and the words for what went wrong with what to do next.

use std::process::ExitCode;

use laneway_client::{ClientError, Problem};

use crate::http::chain;

/// All exit codes, in the help of every command.
pub(crate) const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 conflict, 5 timed out, \
                                     6 server unreachable, 7 the job failed, 8 not allowed, 130 interrupted.";

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It failed for any other reason.
    Failed = 1,
    /// What was typed cannot be.
    Usage = 2,
    /// There is no such thing.
    NotFound = 3,
    /// Something else was so before.
    Conflict = 4,
    /// It took too long.
    TimedOut = 5,
    /// Nobody answers there.
    Unreachable = 6,
    /// The job ended otherwise than done.
    JobFailed = 7,
    /// The token does not allow it.
    NotAllowed = 8,
    /// A signal ended it.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command did not do what it was asked to.
#[derive(Debug)]
pub(crate) struct Fault {
    /// How it ends.
    pub(crate) exit: Exit,
    /// What went wrong, one entry per line.
    pub(crate) words: Vec<String>,
    /// What to do next.
    pub(crate) hint: Option<String>,
}

impl Fault {
    /// One line.
    pub(crate) fn new(exit: Exit, words: impl Into<String>) -> Self {
        Self { exit, words: vec![words.into()], hint: None }
    }

    /// For any other reason.
    pub(crate) fn failed(words: impl Into<String>) -> Self {
        Self::new(Exit::Failed, words)
    }

    /// What was typed cannot be.
    pub(crate) fn usage(words: impl Into<String>) -> Self {
        Self::new(Exit::Usage, words)
    }

    /// Everything was said already.
    pub(crate) fn silent(exit: Exit) -> Self {
        Self { exit, words: Vec::new(), hint: None }
    }

    /// Something of ours that should not be.
    pub(crate) fn internal(error: impl std::error::Error + 'static) -> Self {
        Self::failed(chain(&error))
    }

    /// The same, with what to do next.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<ClientError> for Fault {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Problem(problem) => of_problem(*problem),
            ClientError::Unreachable { ref url, ref source } => {
                let words = format!("no server answers at {}: {}", address(url), last(&**source));
                let fault = Self::new(Exit::Unreachable, words);
                if url.starts_with("https:") {
                    return fault
                        .hint("is it there, does it speak TLS, and is its certificate trusted (--ca-file)?");
                }
                fault.hint("start one: laneway dev. Or name another: --server URL, or LANEWAY_SERVER")
            }
            ClientError::TimedOut { ref url, after } => Self::new(
                Exit::TimedOut,
                format!(
                    "no answer from {} within {}s; it may or may not have been done",
                    address(url),
                    after.as_secs()
                ),
            ),
            ClientError::Foreign { status, .. } => Self::new(
                Exit::Unreachable,
                format!("what answers there ({status}) is no Laneway server of this version"),
            )
            .hint("check --server or LANEWAY_SERVER"),
            ClientError::Url { .. } | ClientError::Header { .. } | ClientError::Certificate { .. } => {
                Self::usage(chain(&error))
            }
            ClientError::Path { .. } | ClientError::Encode(_) => Self::failed(chain(&error)),
        }
    }
}

fn of_problem(problem: Problem) -> Fault {
    let exit = match problem.status {
        401 | 403 => Exit::NotAllowed,
        404 | 410 => Exit::NotFound,
        409 | 412 => Exit::Conflict,
        408 | 504 => Exit::TimedOut,
        400..=499 if problem.status != 429 => Exit::Usage,
        _ => Exit::Failed,
    };
    // The server's advice is for those who speak HTTP; here there are commands.
    let said = problem.detail.split("; create it: ").next().unwrap_or_default();
    let said = said.split("; register one: ").next().unwrap_or_default();
    let fault = Fault::new(exit, format!("{said} ({})", problem.code));
    match problem.code.as_str() {
        "stream_not_found" => fault.hint("laneway stream ls shows all; laneway stream create NAME makes one"),
        "processor_not_found" => fault.hint("laneway processor ls shows all"),
        "processor_required" => fault.hint("name it: --processor NAME; laneway processor ls shows all"),
        "job_gone" => fault.hint("its end was kept for as long as its submitter or its stream said"),
        _ if exit == Exit::NotAllowed => fault.hint("show a token: --token-file FILE, or LANEWAY_TOKEN"),
        _ if problem.retryable => fault.hint("the same may work later"),
        _ => fault,
    }
}

/// The server of a URL.
fn address(url: &str) -> &str {
    let behind = url.find("://").map_or(0, |at| at + 3);
    let end = url[behind..].find('/').map_or(url.len(), |at| behind + at);
    &url[..end]
}

/// The innermost cause: those around it only say that a request failed.
fn last(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.last().map(ToString::to_string).unwrap_or_default()
}
