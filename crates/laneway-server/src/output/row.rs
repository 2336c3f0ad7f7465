//! How a thing is written in all forms: as a row of a list, or as a whole.

use serde::Serialize;

use super::cell::Cell;

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(super) name: &'static str,
    pub(super) align: Align,
    /// Whether it is cut where the terminal is too narrow.
    pub(super) cut: bool,
    /// Whether it is left out of a table in which no row has anything there.
    pub(super) rare: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

impl Column {
    /// For text.
    pub(crate) const fn left(name: &'static str) -> Self {
        Self { name, align: Align::Left, cut: false, rare: false }
    }

    /// For numbers.
    pub(crate) const fn right(name: &'static str) -> Self {
        Self { name, align: Align::Right, cut: false, rare: false }
    }

    /// The same, cut where the terminal is too narrow.
    pub(crate) const fn cut(self) -> Self {
        Self { cut: true, ..self }
    }

    /// The same, left out of a table in which no row has anything there.
    pub(crate) const fn rare(self) -> Self {
        Self { rare: true, ..self }
    }
}

/// One of a list.
pub(crate) trait Row: Serialize {
    const COLUMNS: &'static [Column];

    /// What names it for other commands.
    fn id(&self) -> String;

    /// One cell per column.
    fn cells(&self) -> Vec<Cell>;
}

/// A thing with all its parts.
pub(crate) trait Detail: Serialize {
    /// What names it for other commands.
    fn id(&self) -> String;

    /// Names and values, in the order of reading; a name may come again.
    fn parts(&self) -> Vec<(&'static str, Cell)>;
}
