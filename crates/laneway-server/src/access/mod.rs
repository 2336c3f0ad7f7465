//! Who may call, and what for: tokens with scopes, kept as hashes.

mod book;
mod files;
mod scope;
mod secret;
mod token;

pub(crate) use book::{Book, BookError};
pub(crate) use files::{FileError, read_private};
pub(crate) use scope::{Scope, Scopes};
pub(crate) use secret::Secret;
pub(crate) use token::{Caller, make};
