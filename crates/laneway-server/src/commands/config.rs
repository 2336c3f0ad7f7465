//! `laneway config`: the settings of `serve`, without serving.

use crate::access::{Scopes, make};
use crate::args::ConfigCommand;
use crate::preflight;
use crate::settings::{Environment, Faults, Loaded, Sources, load, template};
use crate::terminal::say;

pub(super) fn run(command: ConfigCommand, environment: Environment) -> Result<(), Faults> {
    let loaded = |flags| load(&Sources { flags, environment });
    match command {
        ConfigCommand::Show { origin, flags } => show(&loaded(flags)?, origin),
        ConfigCommand::Check { flags } => {
            let loaded = loaded(flags)?;
            preflight::check(&loaded.settings)?;
            let file = loaded.file.map_or("no file".to_owned(), |file| file.display().to_string());
            say(format_args!("good: {file}"));
        }
        ConfigCommand::Init => say(template().trim_end()),
        ConfigCommand::Token { name, scopes } => token(&name, &scopes)?,
    }
    Ok(())
}

/// Prints a new token, and the line that is kept of it.
fn token(name: &str, scopes: &str) -> Result<(), Faults> {
    let made = Scopes::read(scopes).and_then(|scopes| make(name, scopes));
    let (token, line) = made.map_err(|fault| Faults(vec![fault]))?;
    say(token.reveal());
    say(line);
    Ok(())
}

fn show(loaded: &Loaded, origin: bool) {
    let width = loaded.told.iter().map(|told| told.path.len()).max().unwrap_or_default();
    for told in &loaded.told {
        let from = if origin { format!("   # {}", told.origin) } else { String::new() };
        say(format_args!("{:width$} = {}{from}", told.path, told.value));
    }
}
