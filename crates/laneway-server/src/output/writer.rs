//! Writes on stdout, in the form that was asked for.

use std::fmt::Display;
use std::io::IsTerminal as _;

use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use super::cell::Cell;
use super::row::{Detail, Row};
use super::table;
use crate::args::{Form, OutputArgs};
use crate::exit::{Exit, Fault};
use crate::seam;
use crate::terminal::{Terminal, clear, is_read, remark, say};

/// Writes on stdout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writer {
    form: Form,
    terminal: Terminal,
    /// Columns of the terminal, if stdout is one.
    width: Option<usize>,
    quiet: bool,
}

impl Writer {
    /// As was typed, or as stdout is.
    pub(crate) fn new(args: OutputArgs) -> Self {
        let on_terminal = std::io::stdout().is_terminal();
        let form = args.output.unwrap_or(if on_terminal { Form::Table } else { Form::Plain });
        let width = on_terminal.then(columns).flatten();
        Self { form, terminal: Terminal::of_stdout(args.color), width, quiet: args.quiet }
    }

    /// Whether people read it.
    pub(crate) fn is_for_people(&self) -> bool {
        matches!(self.form, Form::Table | Form::Plain)
    }

    /// The form that was asked for.
    pub(crate) fn form(&self) -> Form {
        self.form
    }

    /// Whether remarks are unwanted.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// A list. `nothing` is said on stderr where a table would have no row.
    pub(crate) fn list<R: Row>(&self, rows: &[R], nothing: &str) -> Result<(), Fault> {
        match self.form {
            Form::Json => self.json(&rows),
            Form::Table if rows.is_empty() => {
                self.remark(nothing);
                Ok(())
            }
            Form::Table => {
                let cells: Vec<_> = rows.iter().map(Row::cells).collect();
                let lines = table::lines(R::COLUMNS, &cells, seam::now(), self.width, self.terminal);
                lines.iter().try_for_each(put)
            }
            Form::Jsonl | Form::Id | Form::Plain => rows.iter().try_for_each(|row| self.next(row)),
        }
    }

    /// One of those that come one by one.
    pub(crate) fn next<R: Row>(&self, row: &R) -> Result<(), Fault> {
        match self.form {
            Form::Json | Form::Jsonl => put(text(row)?),
            Form::Id => put(row.id()),
            Form::Plain => put(tabbed(&row.cells())),
            Form::Table => {
                let cells = row.cells();
                let shown: Vec<String> =
                    cells.iter().map(|cell| cell.toned(self.terminal, cell.shown(seam::now()))).collect();
                put(shown.join("  "))
            }
        }
    }

    /// One thing with all its parts.
    pub(crate) fn one<D: Detail>(&self, thing: &D) -> Result<(), Fault> {
        match self.form {
            Form::Json | Form::Jsonl => self.json(thing)?,
            Form::Id => say(thing.id()),
            Form::Plain => {
                let parts = thing.parts().into_iter();
                parts.for_each(|(name, cell)| say(format_args!("{name}\t{}", cell.exact())));
            }
            Form::Table => self.parts(&thing.parts()),
        }
        Ok(())
    }

    fn parts(&self, parts: &[(&str, Cell)]) {
        let names = parts.iter().map(|(name, _)| name.width()).max().unwrap_or_default();
        for (name, cell) in parts {
            let mut text = cell.shown(seam::now());
            if let Cell::Time(date) = cell {
                text = format!("{text}  ({date})");
            }
            let room = " ".repeat(names - name.width());
            let name = self.terminal.toned(crate::terminal::Tone::Faint, name);
            say(format_args!("{name}{room}  {}", cell.toned(self.terminal, text)));
        }
    }

    /// What was done: a sentence for people, the server's answer for programs.
    pub(crate) fn done(
        &self,
        sentence: impl Display,
        answer: &impl Serialize,
        id: impl Display,
    ) -> Result<(), Fault> {
        match self.form {
            Form::Json | Form::Jsonl => self.json(answer)?,
            Form::Id => say(id),
            Form::Plain | Form::Table if self.quiet => {}
            Form::Plain | Form::Table => say(sentence),
        }
        Ok(())
    }

    /// A value as JSON, whatever the form.
    pub(crate) fn json(&self, value: &(impl Serialize + ?Sized)) -> Result<(), Fault> {
        if self.form == Form::Jsonl {
            return put(text(value)?);
        }
        // Payloads are carried as they are: reading them once lets them be indented with the rest.
        let value: serde_json::Value = serde_json::from_str(&text(value)?).map_err(Fault::internal)?;
        say(serde_json::to_string_pretty(&value).map_err(Fault::internal)?);
        Ok(())
    }

    /// Something beside what was asked for, on stderr.
    pub(crate) fn remark(&self, words: impl Display) {
        if !self.quiet {
            remark(words);
        }
    }

    /// Empties the terminal before the same is written again.
    pub(crate) fn begin_again(&self) {
        if self.width.is_some() && self.form == Form::Table {
            clear();
        }
    }
}

/// Writes a line; ends the command when nobody reads it any more.
fn put(line: impl Display) -> Result<(), Fault> {
    if is_read(line) { Ok(()) } else { Err(Fault::silent(Exit::Failed)) }
}

fn text(value: &(impl Serialize + ?Sized)) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(Fault::internal)
}

fn tabbed(cells: &[Cell]) -> String {
    cells.iter().map(Cell::exact).collect::<Vec<_>>().join("\t")
}

/// Columns of the terminal.
fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// The key of a lane as people write it; one that is no text in base64.
pub(crate) fn key_of(key: Option<&str>, key_b64: Option<&str>) -> Cell {
    match (key, key_b64) {
        (Some(key), _) => Cell::Text(key.to_owned()),
        (None, Some(coded)) => Cell::Text(format!("base64:{coded}")),
        (None, None) => Cell::Nothing,
    }
}
