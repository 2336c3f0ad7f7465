//! Where workers are served: they claim, settle and extend.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::limits::RETRY_AFTER_MAX;
use laneway_core::{Refusal, Steady};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};

use super::demand::{Asked, Demand};
use super::offer::Offer;
use super::open::{Called, Open, Settled};
use super::words::{Claim, ClaimError, ClaimWish, Outcome, Settlement};
use crate::handler::cancel::Canceller;
use crate::handler::token::ClaimToken;
use crate::handler::types::{Failure, Handler, LaneAnswer, Retry, Run, Running, WhenDurable};
use crate::lane::Operator;
use crate::service::Env;

/// Events of one claim at most.
pub(super) const EVENTS_MAX: usize = 1_000;

/// Hands lanes of one processor to remote workers.
#[derive(Debug)]
pub struct Desk {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) env: Env,
    pub(super) operator: Operator,
    pub(super) offers: Mutex<VecDeque<Offer>>,
    pub(super) open: Mutex<Open>,
    pub(super) settled: Mutex<Settled>,
    /// There is an offer, or a claim call is over.
    pub(super) news: Notify,
    /// Lanes that workers ask for at this moment.
    pub(super) asked: Mutex<usize>,
    /// When the last call of a worker ended that asked for lanes.
    pub(super) asked_until: Mutex<Option<Steady>>,
    pub(super) demand: Demand,
    pub(super) places: Arc<Semaphore>,
    pub(super) claims_max: usize,
    /// Set when nothing is offered here any more.
    closed: Canceller,
}

impl Desk {
    pub(crate) fn new(env: Env, operator: Operator, claims_max: usize) -> Self {
        let inner = Inner {
            env,
            operator,
            offers: Mutex::default(),
            open: Mutex::default(),
            settled: Mutex::default(),
            news: Notify::new(),
            asked: Mutex::default(),
            asked_until: Mutex::default(),
            demand: Demand::default(),
            places: Arc::new(Semaphore::new(0)),
            claims_max,
            closed: Canceller::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    pub(crate) fn places(&self) -> Arc<Semaphore> {
        Arc::clone(&self.inner.places)
    }

    pub(crate) fn demand(&self) -> Demand {
        self.inner.demand.clone()
    }

    /// Whether a worker asks for lanes, or did so not longer ago than this.
    pub(crate) fn was_asked_within(&self, period: Duration) -> bool {
        let now = self.inner.env.steady();
        let lately = || self.inner.asked_until.lock().is_some_and(|until| now.since(until) <= period);
        *self.inner.asked.lock() > 0 || lately()
    }

    /// Whether workers have as many lanes as they may.
    pub(crate) fn is_full(&self) -> bool {
        self.inner.room() == 0
    }

    /// Nothing is offered here any more.
    pub(crate) fn close(&self) {
        self.inner.closed.cancel();
    }

    /// Resolves when nothing is offered here any more: the processor was changed and has another desk, was stopped, or is
    /// gone. Whoever waits for a claim here waits for nothing.
    pub async fn closed(&self) {
        self.inner.closed.token().cancelled().await;
    }

    /// Claims lanes; waits for the first one if there is none. Answers nothing when the wait is over.
    pub async fn claim(&self, wish: ClaimWish) -> Vec<Claim> {
        let inner = &self.inner;
        let until = inner.env.now().steady.after(wish.wait);
        let _called = loop {
            let news = inner.news.notified();
            if let Some(claims) = inner.claims_of(&wish) {
                return claims;
            }
            // Only one call of a name asks for lanes at a time; the others get what it got.
            if let Some(called) = Called::new(inner, wish.request.as_ref()) {
                break called;
            }
            if !inner.wait(news, until).await {
                return Vec::new();
            }
        };
        let lanes = wish.lanes.min(inner.room());
        if lanes == 0 {
            return Vec::new();
        }
        let _asked = Asked::new(inner, lanes, wish.events.clamp(1, EVENTS_MAX));
        loop {
            let news = inner.news.notified();
            let claims = inner.take_offers(&wish, lanes);
            if !claims.is_empty() || !inner.wait(news, until).await {
                return claims;
            }
        }
    }

    /// Settles a claim. Answers when what was answered is durable.
    ///
    /// # Errors
    /// When the claim is not the worker's any more, or its owner could not be asked.
    pub async fn settle(&self, token: &str, answer: LaneAnswer) -> Result<Settlement, ClaimError> {
        let claim: ClaimToken = token.parse()?;
        if let Some(Failure { retry: Retry::After(wait), .. }) = &answer.failure {
            Refusal::check_longest("retry_after", *wait, RETRY_AFTER_MAX)?;
        }
        let outcome = Outcome::of(&answer);
        let known = self.inner.settled.lock().outcomes.get(&claim.nonce).cloned();
        if let Some(mut known) = known
            && let Ok(decided) = known.wait_for(Option::is_some).await
        {
            return Ok(Settlement::Already(*decided));
        }
        if let Some(progress) = self.inner.progress_of(claim.nonce) {
            let (when_durable, durable) = WhenDurable::new();
            let here = LaneAnswer { when_durable, ..answer.clone() };
            if progress.settle(claim.nonce, here).is_ok() {
                let tell = self.inner.remember(claim.nonce);
                if durable.await.is_ok() {
                    tell.send_replace(Some(outcome));
                    return Ok(Settlement::Accepted);
                }
            }
        }
        // Not open here, or its seat went away under it: whoever owns the seat decides.
        let settled = self.inner.operator.settle(token, &answer).await?;
        // Of one that was settled before, what was said then counts.
        if settled == Settlement::Accepted {
            self.inner.remember(claim.nonce).send_replace(Some(outcome));
        }
        Ok(settled)
    }

    /// Gives a worker more time, from now on. Answers until when.
    ///
    /// # Errors
    /// When the claim is not the worker's any more, or its owner could not be asked.
    pub async fn extend(&self, token: &str, lease: Duration) -> Result<Steady, ClaimError> {
        let claim: ClaimToken = token.parse()?;
        let expires = self.inner.env.now().steady.after(lease);
        if let Some(progress) = self.inner.progress_of(claim.nonce)
            && progress.extend(claim.nonce, expires)
        {
            if let Some(open) = self.inner.open.lock().claims.get_mut(&claim.nonce) {
                open.expires = expires;
            }
            return Ok(expires);
        }
        self.inner.operator.extend(token, lease).await
    }
}

impl Inner {
    /// How many lanes workers may have beside those they have.
    pub(super) fn room(&self) -> usize {
        self.claims_max.saturating_sub(self.open.lock().claims.len())
    }

    /// Waits for news; answers whether there is still time.
    async fn wait(&self, news: impl Future<Output = ()>, until: Steady) -> bool {
        tokio::select! {
            biased;
            () = news => {}
            () = self.env.sleep_until(until) => {}
        }
        self.env.now().steady < until
    }
}

impl Handler for Desk {
    fn call(&self, run: Run) -> Running {
        Box::pin(Arc::clone(&self.inner).offer(run))
    }
}
