//! `#[derive(Record)]` and `#[derive(Job)]`: say in one line which field orders the events of a type.
//!
//! The traits they implement, and the examples, are in the crate `laneway`, which re-exports both macros; nobody needs
//! this crate directly. The macros read attributes and write two short `impl` blocks. They neither serialise (serde's
//! derives do) nor judge field types: `laneway::record::KeyField` does that where the types are known, and the
//! compiler's error then points at the attribute that named the field.
//!
//! `#[record(…)]` and `#[job(…)]` take, as `name = "text"`:
//!
//! | name | means |
//! | --- | --- |
//! | `key` | the field that names the lane; needed, unless the bare word `keyless` stands there |
//! | `kind` | the event's type; otherwise the name of the Rust type, `OrderPaid` as `order-paid` |
//! | `generation`, `incarnation`, `deleted` | the fields for streams where the newest wins |
//! | `output` | jobs only, needed: the type of the result |
//! | `processor` | jobs only: who answers; otherwise the stream's only processor |
//! | `timeout`, `keep` | jobs only: how long a run may take, how long the result is kept (`"30s"`, `"7d"`) |
//!
//! A tuple struct names its fields by number: `#[record(key = "0")]`.

mod attributes;
mod expand;
mod fields;
mod kind;
mod nearest;
mod period;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `laneway::Record` for a struct.
#[proc_macro_derive(Record, attributes(record))]
pub fn derive_record(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::record(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Implements `laneway::Record` and `laneway::JobRecord` for a struct: a job is an event whose sender wants its result.
#[proc_macro_derive(Job, attributes(job))]
pub fn derive_job(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::job(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}
