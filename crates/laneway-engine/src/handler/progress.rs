//! How far a run is, as its handler last said; and, when somebody remote runs it, who has it.

use std::sync::Arc;

use bytes::Bytes;
use laneway_core::limits::CAUSE_BYTES_MAX;
use laneway_core::{Claim, Nonce, Steady};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use super::types::LaneAnswer;

/// Where a handler says how far it is. The last word counts; it is stored with the next commit once the run has
/// taken long enough to show as running.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    words: Bytes,
    /// In a box: most runs are nobody's claim.
    held: Option<Box<Held>>,
    /// Nobody may claim the run any more.
    withdrawn: bool,
    /// The claim whose answer was handed in.
    settled: Option<Nonce>,
}

/// A claim that is open, as the desk and the seat both see it.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) claim: Claim,
    pub(crate) since: Steady,
    pub(crate) expires: watch::Sender<Steady>,
    pub(crate) answer: oneshot::Sender<LaneAnswer>,
}

impl Progress {
    /// Says how far the run is. Words beyond the limit are cut off.
    pub fn report(&self, words: impl Into<Bytes>) {
        let words: Bytes = words.into();
        self.0.lock().words = words.slice(..words.len().min(CAUSE_BYTES_MAX));
    }

    /// That of a claim whose worker has answered.
    pub(crate) fn settled_by(nonce: Nonce) -> Self {
        let progress = Self::default();
        progress.0.lock().settled = Some(nonce);
        progress
    }

    pub(crate) fn last(&self) -> Bytes {
        self.0.lock().words.clone()
    }

    /// A worker takes the run. Answers whether it still could.
    pub(crate) fn hand_out(&self, held: Held) -> bool {
        let mut inner = self.0.lock();
        if inner.withdrawn {
            return false;
        }
        inner.held = Some(Box::new(held));
        true
    }

    /// The open claim, and since when it is.
    pub(crate) fn claim(&self) -> Option<(Claim, Steady)> {
        self.0.lock().held.as_ref().map(|held| (held.claim.clone(), held.since))
    }

    /// Nobody may take the run, or settle it here, from now on. Answers the claim that was open.
    pub(crate) fn withdraw(&self) -> Option<Claim> {
        let mut inner = self.0.lock();
        inner.withdrawn = true;
        inner.held.take().map(|held| held.claim)
    }

    /// Hands in the answer of the worker with this nonce. Gives it back when that is not the open claim.
    pub(crate) fn settle(&self, nonce: Nonce, answer: LaneAnswer) -> Result<(), LaneAnswer> {
        let mut inner = self.0.lock();
        match inner.held.take() {
            Some(held) if held.claim.nonce == nonce => {
                let sent = held.answer.send(answer);
                inner.settled = sent.is_ok().then_some(nonce);
                sent
            }
            other => {
                inner.held = other;
                Err(answer)
            }
        }
    }

    /// Gives the worker with this nonce until then. Answers whether that is the open claim.
    pub(crate) fn extend(&self, nonce: Nonce, expires: Steady) -> bool {
        let mut inner = self.0.lock();
        match &mut inner.held {
            Some(held) if held.claim.nonce == nonce => {
                held.claim.expires = expires;
                held.expires.send_replace(expires);
                true
            }
            _ => false,
        }
    }

    /// The claim whose worker's answer this run came to.
    pub(crate) fn settled(&self) -> Option<Nonce> {
        self.0.lock().settled
    }

    /// The claim is over.
    pub(crate) fn close(&self) {
        self.0.lock().held = None;
    }
}
