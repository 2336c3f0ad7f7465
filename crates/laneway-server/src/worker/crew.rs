//! Claims as much as there is room for.

use std::future::Future;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::OptionFuture;
use futures::stream::FuturesUnordered;
use laneway::core::period;
use laneway_client::wire::{Claim, ClaimRequest};
use laneway_client::{Client, ClientError};
use tokio::sync::watch;

use super::held;
use crate::handlers::Command;
use crate::seam;

/// How long a claim waits for work. A wish to end waits for it too: lanes that are on their way would wait for the end of
/// their leases.
const WAIT: Duration = Duration::from_secs(2);
/// How long any answer may take; that of a claim waits for work besides.
pub(crate) const ANSWER: Duration = Duration::from_secs(12);
/// Wait after a call that brought nothing, though it did not wait for work; it doubles with each.
const BACKOFF: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// Who works on what.
pub(crate) struct Crew {
    /// The server.
    pub(crate) client: Client,
    /// Whose events.
    pub(crate) processor: String,
    /// What runs them.
    pub(crate) command: Command,
    /// Lanes at the same time.
    pub(crate) concurrency: usize,
    /// How long a lane is ours without a word.
    pub(crate) lease: Duration,
    /// How long runs may take after the wish to end.
    pub(crate) grace: Duration,
    /// Who we are, for people.
    pub(crate) name: String,
}

/// Works until `end` has come; then finishes what it has. What takes longer than the grace is ended and given back.
///
/// # Errors
/// When the first answer is a refusal: what is wrong then stays wrong. Whatever comes later may be over some time.
pub(crate) async fn work(crew: &Crew, end: impl Future<Output = ()>) -> Result<(), ClientError> {
    tokio::pin!(end);
    let (give_back, given_back) = watch::channel(false);
    let mut calls = Calls::new();
    let mut runs = FuturesUnordered::new();
    let mut claiming = None;
    let mut grace = None;
    loop {
        let room = crew.concurrency - runs.len();
        if claiming.is_none() && grace.is_none() && room > 0 {
            claiming = Some(Box::pin(calls.next(crew, room)));
        }
        if claiming.is_none() && runs.is_empty() {
            return Ok(());
        }
        tokio::select! {
            () = &mut end, if grace.is_none() => grace = Some(Box::pin(seam::pass(crew.grace))),
            Some(()) = OptionFuture::from(grace.as_mut()), if !*given_back.borrow() => {
                give_back.send_replace(true);
            }
            Some(()) = runs.next() => {}
            Some(claimed) = OptionFuture::from(claiming.as_mut()) => {
                claiming = None;
                let claims = calls.heard(claimed)?;
                runs.extend(claims.into_iter().map(|claim| held::run(crew, claim, given_back.clone())));
            }
        }
    }
}

/// How the calls for claims went so far.
struct Calls {
    /// The name of the next call. It stays while there is no answer: whatever was handed out comes with the next one.
    request: u64,
    /// Tells our calls from those of another process that had our name.
    began: u64,
    is_met: bool,
    failures: u32,
}

/// What a call brought, and how long that took.
struct Claimed {
    answer: Result<Vec<Claim>, ClientError>,
    after: Duration,
}

impl Calls {
    fn new() -> Self {
        Self { request: 1, began: seam::now().0, is_met: false, failures: 0 }
    }

    /// Calls for claims, not too soon.
    fn next<'a>(&self, crew: &'a Crew, lanes: usize) -> impl Future<Output = Claimed> + use<'a> {
        let wish = ClaimRequest {
            max_lanes: Some(lanes),
            wait: Some(period::text(WAIT)),
            lease: Some(period::text(crew.lease)),
            worker: Some(crew.name.clone()),
            request: Some(format!("{}-{}-{}", crew.name, self.began, self.request)),
            ..ClaimRequest::default()
        };
        let doublings = self.failures.checked_sub(1);
        async move {
            if let Some(doublings) = doublings {
                seam::pass(BACKOFF.saturating_mul(1 << doublings.min(10)).min(BACKOFF_MAX)).await;
            }
            let called = seam::steady();
            let answer = crew.client.claim(&crew.processor, &wish).await.map(|answer| answer.claims);
            Claimed { answer, after: seam::steady().since(called) }
        }
    }

    /// Takes note of how a call went, and answers what it brought.
    fn heard(&mut self, Claimed { answer, after }: Claimed) -> Result<Vec<Claim>, ClientError> {
        match answer {
            Ok(claims) => {
                self.is_met = true;
                self.request += 1;
                // A server that is about to end answers at once.
                let is_idle = claims.is_empty() && after < WAIT / 2;
                self.failures = if is_idle { self.failures + 1 } else { 0 };
                Ok(claims)
            }
            Err(error) if !self.is_met && !error.is_retryable() => Err(error),
            Err(error) => {
                tracing::warn!(error = crate::http::chain(&error), "no work can be claimed now");
                self.failures += 1;
                Ok(Vec::new())
            }
        }
    }
}
