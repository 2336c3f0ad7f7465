//! Columns for people, no wider than the terminal.
//!
//! A writer of our own: tables here are rows of short cells of which one column may be cut, and that is less code than the
//! set-up of a library for it, and nothing to build. Widths are those that terminals show, so that keys in any script
//! line up.

use laneway::Timestamp;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::cell::Cell;
use super::row::{Align, Column};
use crate::terminal::{Terminal, Tone};

/// Between two columns.
const GAP: &str = "  ";
/// No column is cut below this, however narrow the terminal is.
const NARROWEST: usize = 8;

/// Rows under their headings, each line without its end.
pub(super) fn lines(
    columns: &[Column],
    rows: &[Vec<Cell>],
    now: Timestamp,
    width_max: Option<usize>,
    terminal: Terminal,
) -> Vec<String> {
    let used: Vec<usize> = (0..columns.len())
        .filter(|at| !columns[*at].rare || rows.iter().any(|row| row[*at] != Cell::Nothing))
        .collect();
    let columns: &[Column] = &used.iter().map(|at| columns[*at]).collect::<Vec<_>>();
    let rows: &[Vec<Cell>] =
        &rows.iter().map(|row| used.iter().map(|at| row[*at].clone()).collect()).collect::<Vec<_>>();
    let shown: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| cell.shown(now)).collect()).collect();
    let mut widths: Vec<usize> = columns.iter().map(|column| column.name.width()).collect();
    for row in &shown {
        for (width, text) in widths.iter_mut().zip(row) {
            *width = (*width).max(text.width());
        }
    }
    if let Some(width_max) = width_max {
        narrow(columns, &mut widths, width_max);
    }
    let heading =
        columns.iter().map(|column| (column.name.to_owned(), Cell::Toned(Tone::Strong, String::new())));
    let mut lines = vec![line(columns, &widths, heading.collect(), terminal)];
    for (row, texts) in rows.iter().zip(shown) {
        let cells = texts.into_iter().zip(row.iter().cloned()).collect();
        lines.push(line(columns, &widths, cells, terminal));
    }
    lines
}

/// Takes what is too much from the columns that may be cut, the last one first.
fn narrow(columns: &[Column], widths: &mut [usize], width_max: usize) {
    let whole = widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1);
    let mut excess = whole.saturating_sub(width_max);
    for (column, width) in columns.iter().zip(widths).rev() {
        if column.cut {
            let given = excess.min(width.saturating_sub(NARROWEST.max(column.name.width())));
            *width -= given;
            excess -= given;
        }
    }
}

fn line(columns: &[Column], widths: &[usize], cells: Vec<(String, Cell)>, terminal: Terminal) -> String {
    let mut line = String::new();
    let last = columns.len() - 1;
    for (at, ((column, width), (text, cell))) in columns.iter().zip(widths).zip(cells).enumerate() {
        let text = cut(&text, *width);
        let room = " ".repeat(width - text.width());
        let text = cell.toned(terminal, text);
        match column.align {
            Align::Right => line.extend([room.as_str(), &text]),
            Align::Left if at == last => line.push_str(&text),
            Align::Left => line.extend([text.as_str(), &room]),
        }
        if at < last {
            line.push_str(GAP);
        }
    }
    line.trim_end().to_owned()
}

/// Text no wider than this; what is missing is shown by `…`.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut taken = 1; // the sign itself
    for letter in text.chars() {
        taken += letter.width().unwrap_or_default();
        if taken > width {
            break;
        }
        kept.push(letter);
    }
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [Column::left("KEY").cut(), Column::right("LAG"), Column::left("WHY").cut()];

    fn check(rows: &[[&str; 3]], width: usize, expected: &[&str]) {
        let rows: Vec<Vec<Cell>> =
            rows.iter().map(|row| row.iter().map(|text| Cell::Text((*text).to_owned())).collect()).collect();
        let drawn = lines(&COLUMNS, &rows, Timestamp(0), Some(width), Terminal::without_colours());
        assert_eq!(drawn, expected);
    }

    #[test]
    fn columns_line_up_whatever_the_script() {
        check(
            &[["ann", "7", "waits"], ["鍵", "1204", "é"]],
            80,
            &["KEY   LAG  WHY", "ann     7  waits", "鍵   1204  é"],
        );
    }

    #[test]
    fn the_last_column_that_may_be_cut_is_cut_first() {
        check(
            &[["a-rather-long-key", "7", "parked: the bank says no"]],
            36,
            &["KEY                LAG  WHY", "a-rather-long-key    7  parked: the…"],
        );
        check(
            &[["a-rather-long-key", "7", "parked: the bank says no"]],
            10,
            &["KEY       LAG  WHY", "a-rathe…    7  parked:…"],
        );
    }
}
