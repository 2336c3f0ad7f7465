//! What a person sees: colours only on a terminal, and not where `NO_COLOR` is set.

use std::fmt::Display;
use std::io::{IsTerminal as _, Write as _};

use crate::args::Color;

/// How to write on stdout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    colours: bool,
}

/// Meanings, each with its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// A heading.
    Strong,
    /// Something less important.
    Faint,
    /// All went well.
    Good,
    /// Something to watch.
    Odd,
    /// Somebody must decide.
    Bad,
}

impl Terminal {
    /// As was typed, or as stdout and the environment are.
    pub(crate) fn of_stdout(wanted: Color) -> Self {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
        let colours = match wanted {
            Color::Always => true,
            Color::Never => false,
            Color::Auto if is_set("NO_COLOR") => false,
            Color::Auto => is_set("CLICOLOR_FORCE") || std::io::stdout().is_terminal(),
        };
        Self { colours }
    }

    /// Without any colour.
    #[cfg(test)]
    pub(crate) fn without_colours() -> Self {
        Self { colours: false }
    }

    /// Text with the colour of its meaning.
    pub(crate) fn toned(self, tone: Tone, text: impl Display) -> String {
        if !self.colours {
            return text.to_string();
        }
        let code = match tone {
            Tone::Strong => 1,
            Tone::Faint => 2,
            Tone::Good => 32,
            Tone::Odd => 33,
            Tone::Bad => 31,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// Writes a line to stdout at once. A reader that has gone away is no fault of ours and changes nothing.
pub(crate) fn say(line: impl Display) {
    let mut stdout = std::io::stdout().lock();
    let _gone = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// Writes a line to stdout at once, for those who write on and on: whether anybody still reads.
pub(crate) fn is_read(line: impl Display) -> bool {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).is_ok()
}

/// Empties the terminal and begins at its top.
pub(crate) fn clear() {
    let mut stdout = std::io::stdout().lock();
    let _gone = write!(stdout, "\x1b[H\x1b[2J\x1b[3J").and_then(|()| stdout.flush());
}

/// Writes a line to stderr: something beside what was asked for.
pub(crate) fn remark(line: impl Display) {
    let _gone = writeln!(std::io::stderr().lock(), "{line}");
}

/// Writes to stderr and leaves the cursor there, for an answer.
pub(crate) fn prompt(words: impl Display) {
    let mut stderr = std::io::stderr().lock();
    let _gone = write!(stderr, "{words}").and_then(|()| stderr.flush());
}

/// Text without anything that could steer a terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .flat_map(|letter| {
            if letter.is_control() { letter.escape_default().collect::<Vec<_>>() } else { vec![letter] }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\nc ä😀"), "a\\u{1b}[2Jb\\nc ä😀");
    }
}
