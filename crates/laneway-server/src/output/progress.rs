//! Progress on stderr: a bar where the end is known, else what was done so far. Only on a terminal.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often it is drawn while nothing is told.
const TICK: Duration = Duration::from_millis(200);

/// Progress of something long. It is gone from the screen when it is dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Of so many bytes, if that is known.
    pub(crate) fn of_bytes(total: Option<u64>, quiet: bool) -> Self {
        let form = match total {
            Some(_) => "{bar:24} {percent:>3}%  {msg}  {binary_bytes_per_sec}  {eta} left",
            None => "{spinner} {msg}  {elapsed}",
        };
        Self::new(total, form, quiet)
    }

    /// Of something whose end is not known.
    pub(crate) fn of_steps(what: &str, quiet: bool) -> Self {
        let progress = Self::new(None, "{spinner} {msg}  {elapsed}", quiet);
        progress.say(what);
        progress
    }

    fn new(total: Option<u64>, form: &str, quiet: bool) -> Self {
        let wanted = !quiet && std::io::stderr().is_terminal();
        let target = if wanted { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(total, target);
        let style = ProgressStyle::with_template(form).expect("the forms above can be read");
        bar.set_style(style.progress_chars("=> "));
        if wanted {
            bar.enable_steady_tick(TICK);
        }
        Self { bar }
    }

    /// So far.
    pub(crate) fn at(&self, position: u64) {
        self.bar.set_position(position);
    }

    /// What is said beside the bar.
    pub(crate) fn say(&self, words: impl Into<String>) {
        self.bar.set_message(words.into());
    }

    /// Writes something without disturbing the bar.
    pub(crate) fn beside(&self, write: impl FnOnce()) {
        self.bar.suspend(write);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A count with its thousands apart: `1,204`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        let said = [0, 999, 1_000, 1_234_567].map(grouped);
        assert_eq!(said, ["0", "999", "1,000", "1,234,567"]);
    }
}
