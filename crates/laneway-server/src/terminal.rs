//! What a person sees: colours only on a terminal, and not where `NO_COLOR` is set.

use std::fmt::Display;
use std::io::{IsTerminal as _, Write as _};

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
    /// As stdout and the environment are.
    pub(crate) fn of_stdout() -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { colours: std::io::stdout().is_terminal() && !unwanted }
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
