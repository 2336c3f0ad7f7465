//! What cases say about errors.

/// Fails unless the answer is an error of this shape.
macro_rules! expect_error {
    ($answer:expr, $pattern:pat $(if $guard:expr)?) => {
        match $answer {
            Err($pattern) $(if $guard)? => {}
            other => panic!("expected {}: {other:?}", stringify!($pattern $(if $guard)?)),
        }
    };
}

/// Fails unless the call is refused with a field, a value and a limit to read.
macro_rules! expect_refused {
    ($answer:expr) => {
        match $answer {
            Err(laneway_core::StoreError::Refused(refusal)) => {
                assert!(!refusal.field.is_empty(), "a refusal names the field: {refusal:?}");
                assert!(!refusal.value.is_empty(), "a refusal names the value: {refusal:?}");
                assert!(!refusal.limit.is_empty(), "a refusal names the limit: {refusal:?}");
            }
            other => panic!("expected a refusal: {other:?}"),
        }
    };
}

/// Fails unless the call conflicts for this reason.
macro_rules! expect_conflict {
    ($answer:expr, $pattern:pat $(if $guard:expr)?) => {
        match $answer {
            Err(laneway_core::StoreError::Conflict(laneway_core::Conflict { reason: $pattern, .. }))
                $(if $guard)? => {}
            other => panic!("expected a conflict {}: {other:?}", stringify!($pattern $(if $guard)?)),
        }
    };
}

/// The rows of one kind that a query answers.
macro_rules! rows {
    ($bench:expr, $query:expr, $kind:ident) => {
        match $bench.query($query).await {
            laneway_core::store::Rows::$kind(rows) => rows,
            other => panic!("rows of another kind were answered: {other:?}"),
        }
    };
}

/// Reads a list page by page to its empty page. Each page begins after the last row of the one before.
macro_rules! pages {
    ($bench:expr, $limit:expr, $kind:ident($of:expr, $first:expr), $cursor:expr) => {{
        let (mut all, mut after) = (Vec::new(), $first);
        loop {
            let page = super::expect::rows!(
                $bench,
                laneway_core::store::Query::$kind($of, after.clone(), $limit),
                $kind
            );
            assert!(page.len() <= $limit, "a page of {} rows, asked for {}", page.len(), $limit);
            let Some(last) = page.last() else { break all };
            after = super::expect::cursor_of(last, $cursor);
            all.extend(page);
        }
    }};
}

/// Fails unless a list is the same in pages of any size, and twice in a row. Answers it.
macro_rules! paged {
    ($bench:expr, $kind:ident($of:expr, $first:expr), $cursor:expr) => {{
        let whole =
            super::expect::rows!($bench, laneway_core::store::Query::$kind($of, $first, 10_000), $kind);
        for limit in super::expect::PAGE_SIZES {
            let rows = super::expect::pages!($bench, limit, $kind($of, $first), $cursor);
            assert_eq!(rows, whole, "{} in pages of {limit}", stringify!($kind));
        }
        whole
    }};
}

/// One row, few, and sizes around what a store may read at a time.
pub(crate) const PAGE_SIZES: [usize; 5] = [1, 2, 7, 16, 17];

/// Where the page after this row begins. A function, so that closures learn the type of their row.
pub(crate) fn cursor_of<T, C>(row: &T, cursor: impl Fn(&T) -> C) -> C {
    cursor(row)
}

pub(crate) use {expect_conflict, expect_error, expect_refused, paged, pages, rows};
