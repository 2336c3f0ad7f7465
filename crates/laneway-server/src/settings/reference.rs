//! `docs/reference/settings.md` is made from the table, and this test compares it.

use super::field::{Field, Form};
use super::sections::{Processor, Schedule, Section, Stream};
use super::table::TABLE;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/settings.md");

#[test]
fn the_page_of_the_settings_is_what_the_table_says() {
    let page = reference();
    if std::env::var_os("LANEWAY_WRITE").is_some() {
        std::fs::write(PAGE, &page).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap();
    assert!(written == page, "{PAGE} is out of date: LANEWAY_WRITE=1 cargo test -p laneway-server settings");
}

/// A default that is told is the one that counts.
#[test]
fn a_default_that_is_said_changes_nothing() {
    fn check<S: Section, M: PartialEq + std::fmt::Debug>(least: &[(&str, &str)], meaning: impl Fn(S) -> M) {
        let read = |said: &[(&str, &str)]| {
            let mut raw = S::Raw::default();
            for (path, text) in said {
                let field = S::FIELDS.iter().find(|field| field.path == *path).unwrap();
                (field.read)(&mut raw, &serde_json::Value::from(*text)).unwrap();
            }
            meaning(S::check(raw).ok().unwrap())
        };
        for field in S::FIELDS {
            let Some(default) = field.default else { continue };
            assert_eq!(read(&[&[(field.path, default)], least].concat()), read(least), "{}", field.path);
        }
    }
    check(&[("name", "a")], |stream: Stream| stream.settings(None));
    let least = [("name", "a"), ("stream", "b"), ("pull", "true")];
    check(&[("name", "a"), ("stream", "b"), ("cron", "0 3 * * *")], |schedule: Schedule| schedule.0);
    check(&least, |processor: Processor| processor.settings);
}

/// The rows of a list of settings.
fn rows<T>(fields: &[Field<T>]) -> String {
    let mut text = "| field | value | default | what it does |\n| --- | --- | --- | --- |\n".to_owned();
    for field in fields {
        let Field { path, form, default, about, .. } = field;
        let default = default.map(|default| format!("`{default}`")).unwrap_or_default();
        text.push_str(&format!("| `{path}` | {} | {default} | {about} |\n", form_cell(*form)));
    }
    text
}

fn form_cell(form: Form) -> String {
    format!("`{}`", form.name().replace('|', "\\|"))
}

fn list<S: Section>(about: &str) -> String {
    format!("\n## `[[{}]]`\n\n{about}\n\n{}", S::NAME, rows(S::FIELDS))
}

/// `docs/reference/settings.md`.
fn reference() -> String {
    let mut text = BEGINNING.to_owned();
    for setting in TABLE {
        let field = &setting.field;
        let flag = setting.flag.map(|flag| format!("`--{flag}`")).unwrap_or_default();
        let default = field.default.map(|default| format!("`{default}`")).unwrap_or_default();
        let (path, about, variable) = (field.path, field.about, setting.variable());
        let form = form_cell(field.form);
        text.push_str(&format!("| `{path}` | `{variable}` | {flag} | {form} | {default} | {about} |\n"));
    }
    text.push_str(&list::<Stream>(
        "A stream that is made at the start, or changed to be as the file says. A stream that the file does not name stays \
         as it is.",
    ));
    text.push_str(&list::<Processor>(
        "A processor that this server runs, with one handler: `exec`, `http` or `pull`. `docs/reference/handlers.md` says what each is given and answers.",
    ));
    text.push_str(&list::<Schedule>(
        "Events that send themselves. One that somebody paused stays paused over a restart.",
    ));
    text
}

const BEGINNING: &str = "# Settings

`laneway serve` reads its settings from flags, from the environment, from a file, and has defaults: what comes first in
this list counts. The file is `--config FILE`; else `./laneway.toml`; else `laneway/laneway.toml` in the user's
configuration folder (`$XDG_CONFIG_HOME` or `~/.config`); else `/etc/laneway/laneway.toml`. `laneway config init` writes
one to begin with, `laneway config check` says what is wrong with it, all at once, and `laneway config show --origin` says
what counts and where it came from.

A name that is not known is an error. Lengths are a number and a unit (`us`, `ms`, `s`, `m`, `h`, `d`, `w`), such as `30s`
or `1h30m`. In a flag or a variable, the entries of a list have commas between them.

This page is made from the program's own table of settings.

## Settings

| path in the file | variable | flag | value | default | what it does |
| --- | --- | --- | --- | --- | --- |
";
