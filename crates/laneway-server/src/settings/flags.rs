//! The flags of `laneway serve`, made from the table of settings.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use super::field::Form;
use super::table::{Setting, TABLE};

/// What was typed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flags {
    /// Paths of settings with what was typed for them.
    pub(super) given: Vec<(&'static str, String)>,
    /// The file to read.
    pub(super) config: Option<PathBuf>,
}

const CONFIG: &str = "config";

fn with_flag() -> impl Iterator<Item = (&'static Setting, &'static str)> {
    TABLE.iter().filter_map(|setting| Some((setting, setting.flag?)))
}

fn arg(setting: &Setting, flag: &'static str) -> Arg {
    let field = &setting.field;
    let words =
        if let Form::Choice(words) = field.form { format!(": {}", words.join(", ")) } else { String::new() };
    let default = field.default.map(|default| format!(" [default: {default}]")).unwrap_or_default();
    let help = format!("{}{words} [env: {}]{default}", field.about.trim_end_matches('.'), setting.variable());
    let arg = Arg::new(field.path).long(flag).value_name(field.form.word()).help(help);
    match field.form {
        // The flag alone says yes.
        Form::YesNo => arg.num_args(0..=1).require_equals(true).default_missing_value("true"),
        _ => arg,
    }
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        let config =
            Arg::new(CONFIG).long(CONFIG).value_name("FILE").value_parser(clap::value_parser!(PathBuf));
        let config = config.help(
            "File with settings [default: ./laneway.toml, else laneway/laneway.toml in the user's or the system's \
             configuration folder, if one is there]",
        );
        let mut command = command.arg(config);
        for (setting, flag) in with_flag() {
            // A command that asks a server too has its own meaning for some of these names.
            if command.get_arguments().all(|arg| arg.get_long() != Some(flag)) {
                command = command.arg(arg(setting, flag));
            }
        }
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = with_flag().filter_map(|(setting, _)| {
            let path = setting.field.path;
            matches.try_get_one::<String>(path).ok().flatten().map(|value| (path, value.clone()))
        });
        Ok(Self { given: given.collect(), config: matches.get_one::<PathBuf>(CONFIG).cloned() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
