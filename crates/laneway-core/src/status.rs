//! What may have become of an event, job or lane: the one table of statuses.

use std::fmt;
use std::str::FromStr;

use crate::error::Refusal;

/// Where an event (for one processor) or a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Accepted, not yet due, not yet in its lane.
    Scheduled,
    /// In its lane, not started.
    Waiting,
    /// A handler is at it.
    Running,
    /// Failed at least once and due again later.
    Retrying,
    /// Gave up for now: the lane stands until somebody decides. Not an end.
    Parked,
    /// Ended; nothing changes this any more.
    Ended(Terminal),
}

/// The ways to end. Exactly one per event and processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Terminal {
    /// The handler said so.
    Done,
    /// Given up for good: dead-lettered or dropped by the policy.
    Failed,
    /// An operator passed it over.
    Skipped,
    /// A newer event of its lane took its place (latest mode).
    Superseded,
    /// Somebody asked for it.
    Cancelled,
    /// Its time to live ended before it was started.
    Expired,
}

impl Terminal {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 6] =
        [Self::Done, Self::Failed, Self::Skipped, Self::Superseded, Self::Cancelled, Self::Expired];
}

impl Status {
    /// All of them, in the order of a life.
    pub const ALL: [Self; 11] = [
        Self::Scheduled,
        Self::Waiting,
        Self::Running,
        Self::Retrying,
        Self::Parked,
        Self::Ended(Terminal::Done),
        Self::Ended(Terminal::Failed),
        Self::Ended(Terminal::Skipped),
        Self::Ended(Terminal::Superseded),
        Self::Ended(Terminal::Cancelled),
        Self::Ended(Terminal::Expired),
    ];

    /// Whether nothing can change it any more.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Ended(_))
    }

    /// Whether an event may go from this status to that one. The whole life of an event is in this table.
    ///
    /// ```
    /// use laneway_core::{Status, Terminal};
    /// assert!(Status::Parked.may_become(Status::Running));
    /// assert!(!Status::Ended(Terminal::Done).may_become(Status::Waiting));
    /// ```
    pub fn may_become(self, next: Self) -> bool {
        use Status::{Ended, Parked, Retrying, Running, Scheduled, Waiting};
        match self {
            Scheduled => matches!(next, Waiting | Ended(_)),
            Waiting => matches!(next, Running | Parked | Ended(_)),
            Running => matches!(next, Waiting | Retrying | Parked | Ended(_)),
            Retrying => matches!(next, Waiting | Running | Parked | Ended(_)),
            Parked => matches!(next, Waiting | Running | Ended(_)),
            Ended(_) => false,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheduled => "scheduled",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Retrying => "retrying",
            Self::Parked => "parked",
            Self::Ended(end) => return end.fmt(f),
        })
    }
}

impl fmt::Display for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Superseded => "superseded",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        })
    }
}

impl FromStr for Status {
    type Err = Refusal;

    /// ```
    /// use laneway_core::{Status, Terminal};
    /// assert_eq!("skipped".parse(), Ok(Status::Ended(Terminal::Skipped)));
    /// assert!("finished".parse::<Status>().unwrap_err().to_string().contains("scheduled, waiting"));
    /// ```
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.map(|status| status.to_string());
        let found = Self::ALL.into_iter().zip(&known).find(|(_, word)| *word == text);
        found.map(|(status, _)| status).ok_or_else(|| {
            Refusal::new("status", format!("{text:?}"), format!("one of {}", known.join(", ")))
        })
    }
}
