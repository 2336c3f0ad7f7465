//! What stands in one place of a table, before it is known in which form it is written.

use laneway::Timestamp;

use super::times;
use crate::terminal::{Terminal, Tone, plain};

/// What stands in one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell {
    /// Nothing is known or meant.
    Nothing,
    /// Text of ours or of a user; whatever could steer a terminal is shown as an escape.
    Text(String),
    /// Text with a meaning.
    Toned(Tone, String),
    /// A count.
    Number(u64),
    /// A date as the server writes it.
    Time(String),
}

impl Cell {
    /// Text, if there is any.
    pub(crate) fn maybe(text: Option<impl Into<String>>) -> Self {
        text.map_or(Self::Nothing, |text| Self::Text(text.into()))
    }

    /// A date, if there is one.
    pub(crate) fn time(date: Option<&str>) -> Self {
        date.map_or(Self::Nothing, |date| Self::Time(date.to_owned()))
    }

    /// The status of anything, toned by what it asks of people.
    pub(crate) fn status(status: &str) -> Self {
        let tone = match status {
            "done" | "idle" | "ok" => Tone::Good,
            "parked" | "failed" | "halted" | "expired" | "fail" => Tone::Bad,
            "retrying" | "paused" | "cancelled" | "skipped" | "superseded" | "warn" => Tone::Odd,
            _ => return Self::Text(status.to_owned()),
        };
        Self::Toned(tone, status.to_owned())
    }

    /// A count that should be nothing.
    pub(crate) fn trouble(count: u64) -> Self {
        if count == 0 { Self::Number(0) } else { Self::Toned(Tone::Bad, count.to_string()) }
    }

    /// For people: times as they feel, and a sign where nothing is.
    pub(super) fn shown(&self, now: Timestamp) -> String {
        match self {
            Self::Nothing => "-".to_owned(),
            Self::Time(date) => times::relative(date, now),
            _ => self.exact(),
        }
    }

    /// For programs: times as dates, and nothing where nothing is.
    pub(super) fn exact(&self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Text(text) | Self::Toned(_, text) | Self::Time(text) => plain(text),
            Self::Number(number) => number.to_string(),
        }
    }

    /// Text with the colour of its meaning.
    pub(super) fn toned(&self, terminal: Terminal, text: String) -> String {
        match self {
            Self::Toned(tone, _) => terminal.toned(*tone, text),
            Self::Nothing | Self::Time(_) => terminal.toned(Tone::Faint, text),
            Self::Text(_) | Self::Number(_) => text,
        }
    }
}
