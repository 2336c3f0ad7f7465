//! Asks before something is done that cannot be taken back.

use std::io::IsTerminal as _;

use crate::args::Consent;
use crate::exit::{Exit, Fault};
use crate::terminal::{prompt, remark};

/// Goes on if it was agreed to, by `--yes` or by the person at the terminal.
pub(crate) fn agree(consent: Consent, what: &str) -> Result<(), Fault> {
    if consent.yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        let words = format!("would {what}, and nobody can be asked here");
        return Err(Fault::new(Exit::Usage, words).hint("add --yes to do it, or --dry-run to only look"));
    }
    prompt(format_args!("{}? [y/N] ", capitalised(what)));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(|error| Fault::failed(format!("no answer: {error}")))?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    remark("nothing was done");
    Err(Fault::silent(Exit::Failed))
}

fn capitalised(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
