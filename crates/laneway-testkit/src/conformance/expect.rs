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

pub(crate) use {expect_conflict, expect_error, expect_refused, rows};
