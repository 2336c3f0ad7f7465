//! Which claims are open, and what became of those that were, as far as it is remembered.

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};
use laneway_core::Nonce;
use tokio::sync::watch;

use super::front::Inner;
use super::words::{Claim, ClaimWish, Outcome};
use crate::handler::progress::Progress;

/// Settled claims that are remembered.
const SETTLED_MAX: usize = 10_000;

/// Claims that are open.
#[derive(Debug, Default)]
pub(super) struct Open {
    pub(super) claims: HashMap<Nonce, Claim>,
    /// The claims of a call that has a name.
    pub(super) by_request: HashMap<String, Vec<Nonce>>,
    /// Calls under way that have a name.
    pub(super) waiting: HashSet<String>,
}

/// What became of claims, as far as it is remembered. Nothing yet while a settle is on its way.
#[derive(Debug, Default)]
pub(super) struct Settled {
    order: VecDeque<Nonce>,
    pub(super) outcomes: HashMap<Nonce, watch::Receiver<Option<Outcome>>>,
}

/// A call with a name, as long as it waits.
pub(super) struct Called<'a> {
    inner: &'a Inner,
    request: Option<String>,
}

impl<'a> Called<'a> {
    pub(super) fn new(inner: &'a Inner, request: Option<&String>) -> Option<Self> {
        if let Some(request) = request
            && !inner.open.lock().waiting.insert(request.clone())
        {
            return None;
        }
        Some(Self { inner, request: request.cloned() })
    }
}

impl Drop for Called<'_> {
    fn drop(&mut self) {
        if let Some(request) = &self.request {
            self.inner.open.lock().waiting.remove(request);
            self.inner.news.notify_waiters();
        }
    }
}

/// A claim, as long as its run goes on: however that ends, the claim ends with it.
pub(super) struct OpenClaim<'a> {
    pub(super) inner: &'a Inner,
    pub(super) nonce: Nonce,
    pub(super) progress: Progress,
}

impl Drop for OpenClaim<'_> {
    fn drop(&mut self) {
        self.progress.close();
        self.inner.open.lock().close(self.nonce);
        // Its place is free for those who wait.
        self.inner.asks(|asked| asked);
        self.inner.news.notify_waiters();
    }
}

impl Open {
    pub(super) fn close(&mut self, nonce: Nonce) {
        self.claims.remove(&nonce);
        let claims = &self.claims;
        self.by_request.retain(|_, nonces| nonces.iter().any(|nonce| claims.contains_key(nonce)));
    }
}

impl Inner {
    /// What a call of this name got before, as far as it is open.
    pub(super) fn claims_of(&self, wish: &ClaimWish) -> Option<Vec<Claim>> {
        let open = self.open.lock();
        let nonces = open.by_request.get(wish.request.as_ref()?)?;
        Some(nonces.iter().filter_map(|nonce| open.claims.get(nonce).cloned()).collect())
    }

    pub(super) fn progress_of(&self, nonce: Nonce) -> Option<Progress> {
        self.open.lock().claims.get(&nonce).map(|claim| claim.run.progress.clone())
    }

    /// A settle of this claim is on its way; its outcome is told by what this answers.
    pub(super) fn remember(&self, nonce: Nonce) -> watch::Sender<Option<Outcome>> {
        let (tell, told) = watch::channel(None);
        let mut settled = self.settled.lock();
        if settled.outcomes.insert(nonce, told).is_none() {
            settled.order.push_back(nonce);
        }
        if settled.order.len() > SETTLED_MAX
            && let Some(oldest) = settled.order.pop_front()
        {
            settled.outcomes.remove(&oldest);
        }
        tell
    }
}
