//! One list at a time: pages are read as large as their rows allow and written in bounded pieces.

use crate::error::{Result, StoreError};
use crate::store::import_bytes::Weighed;
use crate::store::{Define, Import, Query, Rows, Store};

/// Most bytes of one import: small enough for a log with small segments, large enough that its sync does not matter.
const IMPORT_BYTES: usize = 512 << 10;
/// Most rows of one page of a list, and of the first one, whose rows may turn out to be large.
const PAGE_ROWS: usize = 4096;
const FIRST_PAGE_ROWS: usize = 64;
/// From so many bytes of a page on the next one asks for fewer rows.
const PAGE_BYTES: usize = 4 << 20;

/// How to copy one kind of rows.
pub(super) struct Kind<'a, T> {
    /// The page after this row.
    pub(super) ask: &'a (dyn Fn(Option<&T>, usize) -> Query + Sync),
    /// The rows of its answer; `None` if it is of another kind.
    pub(super) open: fn(Rows) -> Option<Vec<T>>,
    /// The import of some of them.
    pub(super) give: &'a (dyn Fn(Vec<T>) -> Import + Sync),
}

/// What was written: rows, and their bytes about.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Written {
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

impl std::ops::AddAssign for Written {
    fn add_assign(&mut self, other: Self) {
        self.rows += other.rows;
        self.bytes += other.bytes;
    }
}

/// The error for an answer to another question.
pub(super) fn wrong_kind() -> StoreError {
    StoreError::Corrupt { what: "a query was answered with rows of another kind".to_owned() }
}

/// How many rows the next page asks for.
pub(super) struct PageSize(usize);

impl PageSize {
    pub(super) fn new() -> Self {
        Self(FIRST_PAGE_ROWS)
    }

    pub(super) fn rows(&self) -> usize {
        self.0
    }

    /// Learns from a page.
    pub(super) fn learn<T: Weighed>(&mut self, page: &[T]) {
        let bytes: usize = page.iter().map(Weighed::bytes).sum();
        self.0 = if bytes > PAGE_BYTES { (self.0 / 2).max(1) } else { (self.0 * 2).min(PAGE_ROWS) };
    }
}

/// Copies a whole list; `change` makes of each row what the target keeps, if anything.
pub(super) async fn copy_rows<T: Weighed + Send>(
    from: &dyn Store,
    to: &dyn Store,
    kind: Kind<'_, T>,
    change: impl Fn(&T) -> Option<T>,
) -> Result<Written> {
    let (mut last, mut size, mut written) = (None, PageSize::new(), Written::default());
    loop {
        let rows = from.query((kind.ask)(last.as_ref(), size.rows())).await?;
        let page = (kind.open)(rows).ok_or_else(wrong_kind)?;
        size.learn(&page);
        let changed = page.iter().filter_map(&change).collect();
        let Some(end) = page.into_iter().next_back() else { return Ok(written) };
        last = Some(end);
        written += import_all(to, changed, kind.give).await?;
    }
}

/// Writes rows in bounded pieces.
pub(super) async fn import_all<T: Weighed + Send>(
    to: &dyn Store,
    rows: Vec<T>,
    give: &(dyn Fn(Vec<T>) -> Import + Sync),
) -> Result<Written> {
    let mut written = Written::default();
    let (mut piece, mut piece_bytes) = (Vec::new(), 0);
    for row in rows {
        let bytes = row.bytes();
        if !piece.is_empty() && piece_bytes + bytes > IMPORT_BYTES {
            to.define(Define::Import(give(std::mem::take(&mut piece)))).await?;
            piece_bytes = 0;
        }
        piece_bytes += bytes;
        written += Written { rows: 1, bytes: bytes as u64 };
        piece.push(row);
    }
    if !piece.is_empty() {
        to.define(Define::Import(give(piece))).await?;
    }
    Ok(written)
}
