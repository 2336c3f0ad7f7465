//! From what was typed, exported and written to what can be used: everything is checked here, and all faults are told at
//! once, each with where it came from.
//!
//! Flags go before the environment, the environment before `laneway.toml`, the file before defaults.
//!
//! **To add a setting**, give [`Settings`] a field and add one entry to [`table::TABLE`]: its path in the file, what it
//! looks like, its default as text, what it does, how it is read, and whether it has a flag or is a secret. Its variable
//! (`http.listen` is `LANEWAY_HTTP_LISTEN`), its flag of `laneway serve` with its help, its merging, its faults, its rows in
//! `config show`, `config check` and `config init`, and its row in `docs/reference/settings.md` come from that entry
//! (`LANEWAY_WRITE=1 cargo test -p laneway-server settings` writes the page anew). What two settings mean together is
//! checked in `together.rs`. A field of `[[stream]]`, `[[processor]]` or `[[schedule]]` is one entry in its file under
//! `sections`.
//!
//! Reading order: `values` (the result), `field` (one setting, and how values are read), `table` (all of them), `sections` (the lists), `file`
//! (finds and parses), `load` (merges), `describe` (a file to begin with), `dev` (what `laneway dev` is asked to do).

mod describe;
mod dev;
mod field;
mod file;
mod flags;
mod http;
mod listen;
mod load;
mod member;
mod origin;
#[cfg(test)]
mod reference;
mod sections;
mod table;
#[cfg(test)]
mod tests;
mod together;
mod values;
mod webhook;

pub(crate) use describe::template;
pub(crate) use dev::{Dev, Handler};
pub(crate) use flags::Flags;
pub(crate) use http::Http;
pub(crate) use load::{Environment, Faults, Loaded, Sources, load};
pub(crate) use sections::{Processor, ProcessorHandler, Schedule, SecretPlace, Stream};
pub(crate) use values::{Log, Settings, Store, is_single};
