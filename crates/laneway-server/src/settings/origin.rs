//! Where a value came from.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Where a value came from; as text, what somebody must look at to change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nobody said anything.
    Default,
    /// A line of the file.
    File {
        /// Which file.
        path: Arc<PathBuf>,
        /// Which line, from 1.
        line: usize,
    },
    /// A variable of the environment.
    Variable(String),
    /// A flag, without its dashes.
    Flag(&'static str),
}

impl Origin {
    /// A fault, behind the name under which the value was given.
    pub(super) fn fault(&self, path: &str, value: &str, wrong: &str) -> String {
        match self {
            Self::Default | Self::File { .. } => format!("{self}: {path} {value}: {wrong}"),
            Self::Variable(_) | Self::Flag(_) => format!("{self} {value}: {wrong}"),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => write!(formatter, "default"),
            Self::File { path, line } => write!(formatter, "{}:{line}", path.display()),
            Self::Variable(name) => write!(formatter, "{name}"),
            Self::Flag(flag) => write!(formatter, "--{flag}"),
        }
    }
}
