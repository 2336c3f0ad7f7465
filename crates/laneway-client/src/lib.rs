//! The HTTP API as types, and a small client for it.
//!
//! [`wire`] has the JSON twins of the public nouns, one file per noun: what goes over the wire, and nothing of what is
//! inside. The server converts between them and its own types. [`Client`] sends and receives them.
//!
//! Payloads are [`Json`]: the very bytes that were sent, never parsed and written again.
//!
//! ```no_run
//! use laneway_client::Client;
//! use laneway_client::wire::{EventDraft, json};
//!
//! # async fn example() -> Result<(), laneway_client::ClientError> {
//! let client = Client::new("http://127.0.0.1:7070")?;
//! let order = EventDraft { key: Some("ann".to_owned()), data: Some(json(&42)?), ..EventDraft::default() };
//! let appended = client.append("orders", &[order]).await?;
//! println!("{:?} {:?}", appended.events[0].reference, appended.durability);
//! # Ok(()) }
//! ```

mod client;
mod error;
pub mod wire;

pub use client::{Answer, Client, Submission};
pub use error::ClientError;
pub use wire::{Json, Problem};
