//! The desk: where remote workers claim lanes, settle and extend (contract 1.16).
//!
//! A claim is a run whose handler is somebody else. A lane is offered only while a worker asks for one, so that nothing
//! waits in an offer that could wait in its lane; a worker that says nothing until its lease ends has failed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;
use laneway_core::{Partition, Steady};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, oneshot, watch};

use super::types::{Handler, LaneAnswer, LaneRun, Retry, Run, Running, WhenDurable};
use crate::service::Env;

/// How long an offer waits for a worker before its lane is put back.
const OFFER_WAIT: Duration = Duration::from_secs(1);

/// What a worker wants.
#[derive(Debug, Clone)]
pub struct ClaimWish {
    /// Lanes at most.
    pub lanes: usize,
    /// Events of one lane at most.
    pub events: usize,
    /// How long it has each lane, unless it extends.
    pub lease: Duration,
    /// How long it waits if there is nothing.
    pub wait: Duration,
}

/// A lane that a worker has, until it settles or its lease ends.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Names it.
    pub token: String,
    /// Name of the stream.
    pub stream: Arc<str>,
    /// Where its events live.
    pub partition: Partition,
    /// What to run.
    pub run: LaneRun,
    /// When the lease ends.
    pub expires: Steady,
}

/// The claim is not this worker's any more: its lease ended, it was settled, or the lane moved on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the claim was lost: its lease ended, it was settled before, or its node was restarted")]
pub struct ClaimLost;

/// Hands lanes of one processor to remote workers.
#[derive(Debug)]
pub struct Desk {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    env: Env,
    offers: Mutex<VecDeque<Offer>>,
    claims: Mutex<HashMap<String, Held>>,
    offered: Notify,
    /// Lanes that workers ask for at this moment.
    asked: Mutex<usize>,
    places: Arc<Semaphore>,
    claims_max: usize,
}

/// A lane that waits for a worker.
#[derive(Debug)]
struct Offer {
    stream: Arc<str>,
    partition: Partition,
    run: LaneRun,
    taken: oneshot::Sender<Taken>,
}

/// A worker took an offer.
#[derive(Debug)]
struct Taken {
    token: String,
    expires: watch::Receiver<Steady>,
    answer: oneshot::Receiver<LaneAnswer>,
}

/// A claim as the desk knows it.
#[derive(Debug)]
struct Held {
    expires: watch::Sender<Steady>,
    answer: oneshot::Sender<LaneAnswer>,
}

impl Desk {
    pub(crate) fn new(env: Env, claims_max: usize) -> Self {
        let inner = Inner {
            env,
            offers: Mutex::default(),
            claims: Mutex::default(),
            offered: Notify::new(),
            asked: Mutex::default(),
            places: Arc::new(Semaphore::new(0)),
            claims_max,
        };
        Self { inner: Arc::new(inner) }
    }

    pub(crate) fn places(&self) -> Arc<Semaphore> {
        Arc::clone(&self.inner.places)
    }

    /// Whether workers have as many lanes as they may.
    pub(crate) fn is_full(&self) -> bool {
        self.inner.claims.lock().len() >= self.inner.claims_max
    }

    /// Claims lanes; waits for the first one if there is none. Answers nothing when the wait is over.
    pub async fn claim(&self, wish: ClaimWish) -> Vec<Claim> {
        let inner = &self.inner;
        let room = inner.claims_max.saturating_sub(inner.claims.lock().len());
        let lanes = wish.lanes.min(room);
        if lanes == 0 {
            return Vec::new();
        }
        let asked = Asked::new(inner, lanes);
        let until = inner.env.now().steady.after(wish.wait);
        let mut claims = Vec::new();
        loop {
            let offered = inner.offered.notified();
            claims.extend(inner.take_offers(&wish, lanes - claims.len()));
            if !claims.is_empty() || inner.env.now().steady >= until {
                break;
            }
            tokio::select! {
                biased;
                () = offered => {}
                () = inner.env.sleep_until(until) => {}
            }
        }
        drop(asked);
        claims
    }

    /// Settles a claim. Answers when what was answered is durable.
    ///
    /// # Errors
    /// When the claim is not the worker's any more; what it did counts for nothing.
    pub async fn settle(&self, token: &str, answer: LaneAnswer) -> Result<(), ClaimLost> {
        let held = self.inner.claims.lock().remove(token).ok_or(ClaimLost)?;
        let (when_durable, durable) = WhenDurable::new();
        held.answer.send(LaneAnswer { when_durable, ..answer }).map_err(|_| ClaimLost)?;
        durable.await.map_err(|_| ClaimLost)
    }

    /// Gives a worker more time, from now on.
    ///
    /// # Errors
    /// When the claim is not the worker's any more.
    pub fn extend(&self, token: &str, lease: Duration) -> Result<Steady, ClaimLost> {
        let claims = self.inner.claims.lock();
        let held = claims.get(token).ok_or(ClaimLost)?;
        let expires = self.inner.env.now().steady.after(lease);
        held.expires.send_replace(expires);
        Ok(expires)
    }
}

/// What one claim asks for, as long as it waits.
struct Asked<'a> {
    inner: &'a Inner,
    lanes: usize,
}

impl<'a> Asked<'a> {
    fn new(inner: &'a Inner, lanes: usize) -> Self {
        inner.asks(|asked| asked + lanes);
        Self { inner, lanes }
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.inner.asks(|asked| asked - self.lanes);
    }
}

impl Inner {
    /// Changes how many lanes are asked for; there are as many places as are asked for and not offered yet.
    fn asks(&self, change: impl FnOnce(usize) -> usize) {
        let mut asked = self.asked.lock();
        *asked = change(*asked);
        let wanted = asked.saturating_sub(self.offers.lock().len());
        let there = self.places.available_permits();
        if wanted > there {
            self.places.add_permits(wanted - there);
        } else {
            self.places.forget_permits(there - wanted);
        }
    }

    fn take_offers(&self, wish: &ClaimWish, max: usize) -> Vec<Claim> {
        let mut claims = Vec::new();
        while claims.len() < max
            && let Some(offer) = self.offers.lock().pop_front()
        {
            let token = format!("{:032x}", self.env.nonce().0);
            let (expires, expires_seen) = watch::channel(self.env.now().steady.after(wish.lease));
            let (answer, answered) = oneshot::channel();
            let mut run = offer.run;
            run.events.truncate(wish.events.max(1));
            let claim = Claim {
                token: token.clone(),
                stream: offer.stream,
                partition: offer.partition,
                run,
                expires: *expires_seen.borrow(),
            };
            let taken = Taken { token: token.clone(), expires: expires_seen, answer: answered };
            // The offer was put back at this very moment.
            if offer.taken.send(taken).is_err() {
                continue;
            }
            self.claims.lock().insert(token, Held { expires, answer });
            claims.push(claim);
        }
        claims
    }

    /// Waits for the worker's answer, the end of its lease, or the request to stop.
    async fn answer_of(&self, mut taken: Taken, cancelled: impl Future<Output = ()>) -> LaneAnswer {
        let expired = async {
            loop {
                let expires = *taken.expires.borrow_and_update();
                tokio::select! {
                    biased;
                    changed = taken.expires.changed() => if changed.is_err() { return },
                    () = self.env.sleep_until(expires) => return,
                }
            }
        };
        let answer = tokio::select! {
            biased;
            answer = &mut taken.answer => answer.ok(),
            () = cancelled => Some(LaneAnswer::failed("stopped on request", Retry::ByPolicy)),
            () = expired => None,
        };
        self.claims.lock().remove(&taken.token);
        answer.unwrap_or_else(|| {
            LaneAnswer::failed("the worker's lease ended without an answer", Retry::ByPolicy)
        })
    }

    async fn offer(self: Arc<Self>, run: Run) -> Vec<LaneAnswer> {
        let mut answers = Vec::with_capacity(run.lanes.len());
        for lane in run.lanes {
            let (sender, taken) = oneshot::channel();
            let (stream, partition) = (Arc::clone(&run.stream), run.partition);
            self.offers.lock().push_back(Offer { stream, partition, run: lane, taken: sender });
            self.offered.notify_waiters();
            let taken = tokio::select! {
                biased;
                taken = taken => taken.ok(),
                () = run.cancel.cancelled() => None,
                () = self.env.sleep(OFFER_WAIT) => None,
            };
            answers.push(match taken {
                Some(taken) => self.answer_of(taken, run.cancel.cancelled()).await,
                None => LaneAnswer::failed("no worker took it", Retry::NotRun),
            });
        }
        answers
    }
}

impl Handler for Desk {
    fn call(&self, run: Run) -> Running {
        Box::pin(Arc::clone(&self.inner).offer(run))
    }
}
