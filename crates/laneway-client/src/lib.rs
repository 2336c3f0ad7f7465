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
//!
//! A worker claims a lane, runs its events, and settles them before its lease ends; while the work goes on it asks for more
//! time. An answer that says `claim_lost` means that somebody else has the lane by now: the work is dropped.
//!
//! ```no_run
//! use std::time::Duration;
//! use laneway_client::wire::{Claim, ClaimRequest, Extend, Outcome, Settle, Settlement};
//! use laneway_client::{Client, ClientError};
//!
//! async fn charge(claim: &Claim) -> Result<(), String> {
//!     for event in &claim.events {
//!         println!("{} attempt {}: {:?}", event.reference, claim.attempt, event.data);
//!     }
//!     Ok(())
//! }
//!
//! /// Asks for more time as long as it is polled.
//! async fn keep(client: &Client, claim: &Claim) -> Result<(), ClientError> {
//!     let extend = Extend { claims: vec![claim.claim.clone()], lease: "30s".to_owned() };
//!     loop {
//!         tokio::time::sleep(Duration::from_secs(10)).await;
//!         if !client.extend("charge", &extend).await?.claims[0].accepted {
//!             return Ok(()); // the lane is somebody else's
//!         }
//!     }
//! }
//!
//! async fn work(client: &Client) -> Result<(), ClientError> {
//!     let wish = ClaimRequest {
//!         wait: Some("20s".to_owned()),
//!         lease: Some("30s".to_owned()),
//!         worker: Some("w1".to_owned()),
//!         ..ClaimRequest::default()
//!     };
//!     loop {
//!         for claim in client.claim("charge", &wish).await?.claims {
//!             let outcome = tokio::select! {
//!                 done = charge(&claim) => done,
//!                 lost = keep(client, &claim) => { lost?; continue } // nothing of it counts
//!             };
//!             let settlement = Settlement {
//!                 claim: claim.claim.clone(),
//!                 outcome: if outcome.is_ok() { Outcome::Done } else { Outcome::Retry },
//!                 error: outcome.err(),
//!                 through: None,
//!                 result: None,
//!                 state: None,
//!                 emit: Vec::new(),
//!                 retry_after: None,
//!             };
//!             let told = client.settle("charge", &Settle { settlements: vec![settlement] }).await?;
//!             println!("{:?}", told.settlements[0]);
//!         }
//!     }
//! }
//! ```

mod client;
mod connect;
mod error;
mod seam;
pub mod wire;

/// Of calls that the client has no method for.
pub use http::Method;

pub use client::{Answer, Client, Follow, Followed, Following, Submission};
pub use error::ClientError;
pub use wire::{Json, Problem};
