//! `docs/reference/cli.md` against the program's own definition of its commands.
//!
//! The head of the page is written by hand; everything behind the heading `## Commands` is what this file makes of the
//! definition.

use clap::{Arg, ArgAction, Command, CommandFactory as _};

use super::Args;

const HEADING: &str = "## Commands\n";

/// All commands, in the order of the help.
fn reference() -> String {
    let mut root = Args::command();
    root.build();
    let mut text = String::new();
    for command in root.get_subcommands().filter(|command| command.get_name() != "help") {
        section(command, &mut text);
    }
    text
}

fn section(command: &Command, text: &mut String) {
    let name = command.get_bin_name().unwrap_or_default().to_owned();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").replace("\n       ", "\n");
    text.push_str(&format!("\n### {name}\n\n{}\n\n```text\n{usage}\n```\n", about(command)));
    let verbs: Vec<&Command> = command.get_subcommands().filter(|verb| verb.get_name() != "help").collect();
    let own = command.get_arguments().filter(|arg| is_own(arg, !verbs.is_empty()));
    let rows: Vec<String> = own.map(row).collect();
    if !rows.is_empty() {
        text.push_str(&format!("\n{}\n", rows.join("\n")));
    }
    for verb in verbs {
        section(verb, text);
    }
}

/// Arguments of all verbs are told with the noun, and help nowhere.
fn is_own(arg: &Arg, has_verbs: bool) -> bool {
    !matches!(
        arg.get_action(),
        ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
    ) && !arg.is_hide_set()
        && (has_verbs || !arg.is_global_set())
}

fn about(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let aliases: Vec<String> = command.get_visible_aliases().map(|alias| format!("`{alias}`")).collect();
    let also = if aliases.is_empty() { String::new() } else { format!(" Also: {}.", aliases.join(", ")) };
    format!("{}.{also}", about.trim_end_matches('.'))
}

fn row(arg: &Arg) -> String {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| value.get_name().to_owned())
        .collect();
    let takes = arg.get_action().takes_values();
    let one_of = if values.is_empty() || !takes {
        String::new()
    } else {
        format!(" One of `{}`.", values.join("`, `"))
    };
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    let default = if defaults.is_empty() || !takes {
        String::new()
    } else {
        format!(" Default `{}`.", defaults.join(" "))
    };
    format!("- `{}`: {}.{one_of}{default}", arg.to_string().replace('`', ""), help.trim_end_matches('.'))
}

#[test]
fn the_reference_of_commands_is_what_the_program_knows() {
    crate::reference::compare("cli.md", HEADING, &reference());
}
