//! The desk: where remote workers claim lanes, settle and extend (contract 1.16).
//!
//! A claim is a run whose handler is somebody else. A lane is offered only while a worker asks for one, so that nothing
//! waits in an offer that could wait in its lane; a worker that says nothing until its lease ends has failed. What the
//! desk does not have open (another node's, or one of before a restart) goes to the owner of its seat as a request.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hashbrown::{HashMap, HashSet};
use laneway_core::{Nonce, Partition, Refusal, Seat, Steady};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, oneshot, watch};

use super::cancel::CancelToken;
use super::progress::{Held, Progress};
use super::token::ClaimToken;
use super::types::{Handler, LaneAnswer, LaneRun, Retry, Run, Running, WhenDurable};
use crate::dispatch::LEASE_ENDED;
use crate::lane::{OperateError, Operator, name_of};
use crate::service::Env;

/// How long an offer waits for a worker before its lane is put back.
const OFFER_WAIT: Duration = Duration::from_secs(1);
/// Events of one claim at most.
const EVENTS_MAX: usize = 1_000;
/// Bytes of a worker's name that are kept.
const WORKER_BYTES_MAX: usize = 256;
/// Settled claims that are remembered.
const SETTLED_MAX: usize = 10_000;

/// What a worker wants.
#[derive(Debug, Clone, Default)]
pub struct ClaimWish {
    /// Lanes at most.
    pub lanes: usize,
    /// Events of one lane at most.
    pub events: usize,
    /// How long it has each lane, unless it extends.
    pub lease: Duration,
    /// How long it waits if there is nothing.
    pub wait: Duration,
    /// Its name, for people who ask why a lane waits.
    pub worker: String,
    /// Names the call: the same name again gets the same claims, as far as they are still open.
    pub request: Option<String>,
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

/// A claim was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// What the worker answered is durable.
    Accepted,
    /// It was settled before: with this, if that is still known here.
    Already(Option<Outcome>),
}

/// What a claim was settled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// So many events, from the first on, were done.
    pub done: usize,
    /// The one after them failed.
    pub failed: bool,
}

impl Outcome {
    fn of(answer: &LaneAnswer) -> Self {
        Self { done: answer.done.len(), failed: answer.failure.is_some() }
    }
}

/// Why a claim could not be settled or extended.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// The claim is not this worker's any more; what it did counts for nothing.
    #[error(
        "the claim is not open: its lease ended, its event was cancelled, its node came to a bad end, or it was settled before its node's last start"
    )]
    Lost,
    /// The token or the answer is not what it must be.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Nobody owns the seat at the moment: the answer is filed, and asking again tells what came of it.
    #[error("the owner of the claim's seat has not decided yet: ask again")]
    Undecided,
    /// It could not be passed on.
    #[error(transparent)]
    Operate(#[from] OperateError),
}

/// Hands lanes of one processor to remote workers.
#[derive(Debug)]
pub struct Desk {
    inner: Arc<Inner>,
}

/// How much workers ask for at this moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Demand(Arc<AtomicUsize>);

impl Demand {
    /// Events of a lane that the greediest of them asks for.
    pub(crate) fn events(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
struct Inner {
    env: Env,
    operator: Operator,
    offers: Mutex<VecDeque<Offer>>,
    open: Mutex<Open>,
    settled: Mutex<Settled>,
    /// There is an offer, or a claim call is over.
    news: Notify,
    /// Lanes that workers ask for at this moment.
    asked: Mutex<usize>,
    demand: Demand,
    places: Arc<Semaphore>,
    claims_max: usize,
}

/// Claims that are open.
#[derive(Debug, Default)]
struct Open {
    claims: HashMap<Nonce, Claim>,
    /// The claims of a call that has a name.
    by_request: HashMap<String, Vec<Nonce>>,
    /// Calls under way that have a name.
    waiting: HashSet<String>,
}

/// What became of claims, as far as it is remembered. Nothing yet while a settle is on its way.
#[derive(Debug, Default)]
struct Settled {
    order: VecDeque<Nonce>,
    outcomes: HashMap<Nonce, watch::Receiver<Option<Outcome>>>,
}

/// A lane that waits for a worker.
#[derive(Debug)]
struct Offer {
    seat: Seat,
    stream: Arc<str>,
    run: LaneRun,
    taken: oneshot::Sender<Taken>,
}

/// A worker took an offer.
#[derive(Debug)]
struct Taken {
    nonce: Nonce,
    expires: watch::Receiver<Steady>,
    answer: oneshot::Receiver<LaneAnswer>,
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
            demand: Demand::default(),
            places: Arc::new(Semaphore::new(0)),
            claims_max,
        };
        Self { inner: Arc::new(inner) }
    }

    pub(crate) fn places(&self) -> Arc<Semaphore> {
        Arc::clone(&self.inner.places)
    }

    pub(crate) fn demand(&self) -> Demand {
        self.inner.demand.clone()
    }

    /// Whether workers have as many lanes as they may.
    pub(crate) fn is_full(&self) -> bool {
        self.inner.open.lock().claims.len() >= self.inner.claims_max
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
        let room = inner.claims_max.saturating_sub(inner.open.lock().claims.len());
        let lanes = wish.lanes.min(room);
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

/// A call with a name, as long as it waits.
struct Called<'a> {
    inner: &'a Inner,
    request: Option<String>,
}

impl<'a> Called<'a> {
    fn new(inner: &'a Inner, request: Option<&String>) -> Option<Self> {
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

/// What one claim asks for, as long as it waits.
struct Asked<'a> {
    inner: &'a Inner,
    lanes: usize,
}

impl<'a> Asked<'a> {
    fn new(inner: &'a Inner, lanes: usize, events: usize) -> Self {
        inner.demand.0.fetch_max(events, Ordering::Relaxed);
        inner.asks(|asked| asked + lanes);
        Self { inner, lanes }
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.inner.asks(|asked| asked - self.lanes);
    }
}

/// A claim, as long as its run goes on: however that ends, the claim ends with it.
struct OpenClaim<'a> {
    inner: &'a Inner,
    nonce: Nonce,
    progress: Progress,
}

impl Drop for OpenClaim<'_> {
    fn drop(&mut self) {
        self.progress.close();
        self.inner.open.lock().close(self.nonce);
    }
}

impl Open {
    fn close(&mut self, nonce: Nonce) {
        self.claims.remove(&nonce);
        let claims = &self.claims;
        self.by_request.retain(|_, nonces| nonces.iter().any(|nonce| claims.contains_key(nonce)));
    }
}

impl Inner {
    /// Changes how many lanes are asked for; there are as many places as are asked for and not offered yet. An offer that
    /// was put back is none.
    fn asks(&self, change: impl FnOnce(usize) -> usize) {
        let mut asked = self.asked.lock();
        *asked = change(*asked);
        if *asked == 0 {
            self.demand.0.store(0, Ordering::Relaxed);
        }
        let offered = {
            let mut offers = self.offers.lock();
            offers.retain(|offer| !offer.taken.is_closed());
            offers.len()
        };
        let wanted = asked.saturating_sub(offered);
        let there = self.places.available_permits();
        if wanted > there {
            self.places.add_permits(wanted - there);
        } else {
            self.places.forget_permits(there - wanted);
        }
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

    /// What a call of this name got before, as far as it is open.
    fn claims_of(&self, wish: &ClaimWish) -> Option<Vec<Claim>> {
        let open = self.open.lock();
        let nonces = open.by_request.get(wish.request.as_ref()?)?;
        Some(nonces.iter().filter_map(|nonce| open.claims.get(nonce).cloned()).collect())
    }

    fn progress_of(&self, nonce: Nonce) -> Option<Progress> {
        self.open.lock().claims.get(&nonce).map(|claim| claim.run.progress.clone())
    }

    /// A settle of this claim is on its way; its outcome is told by what this answers.
    fn remember(&self, nonce: Nonce) -> watch::Sender<Option<Outcome>> {
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

    fn take_offers(&self, wish: &ClaimWish, max: usize) -> Vec<Claim> {
        let mut claims = Vec::new();
        while claims.len() < max
            && let Some(offer) = self.offers.lock().pop_front()
        {
            claims.extend(self.take_offer(wish, offer));
        }
        if let Some(request) = &wish.request
            && !claims.is_empty()
        {
            let nonces = claims.iter().map(|(nonce, _)| *nonce).collect();
            self.open.lock().by_request.insert(request.clone(), nonces);
        }
        claims.into_iter().map(|(_, claim)| claim).collect()
    }

    /// A worker takes an offer; nothing when it was put back at this very moment.
    fn take_offer(&self, wish: &ClaimWish, offer: Offer) -> Option<(Nonce, Claim)> {
        let Offer { seat, stream, mut run, taken } = offer;
        run.events.truncate(wish.events.clamp(1, EVENTS_MAX));
        let (first, last) = (run.events.first()?, run.events.last()?);
        let nonce = self.env.nonce();
        let token = ClaimToken {
            seat,
            lane: name_of(first),
            events: run.events.iter().map(|event| event.id).collect(),
            attempt: run.attempt,
            nonce,
        };
        let since = self.env.now().steady;
        let (expires, expires_seen) = watch::channel(since.after(wish.lease));
        let (answer, answered) = oneshot::channel();
        let mut worker = Bytes::from(wish.worker.clone());
        worker.truncate(WORKER_BYTES_MAX);
        let until = *expires.borrow();
        let claim = laneway_core::Claim { nonce, worker, through: last.id, expires: until };
        if !run.progress.hand_out(Held { claim, since, expires, answer }) {
            return None;
        }
        let partition = seat.shard.partition;
        let claim = Claim { token: token.to_string(), stream, partition, run, expires: until };
        self.open.lock().claims.insert(nonce, claim.clone());
        if taken.send(Taken { nonce, expires: expires_seen, answer: answered }).is_err() {
            claim.run.progress.close();
            self.open.lock().close(nonce);
            return None;
        }
        Some((nonce, claim))
    }

    /// Waits for the worker's answer, the end of its lease or of its time, or the request to stop.
    async fn answer_of(
        &self,
        mut taken: Taken,
        progress: Progress,
        run: (&CancelToken, Option<Duration>),
    ) -> LaneAnswer {
        let (cancel, timeout) = run;
        let _open = OpenClaim { inner: self, nonce: taken.nonce, progress };
        let expired = async {
            loop {
                let expires = *taken.expires.borrow_and_update();
                tokio::select! {
                    biased;
                    changed = taken.expires.changed() => if changed.is_err() { std::future::pending().await },
                    () = self.env.sleep_until(expires) => return,
                }
            }
        };
        let timed_out = async {
            match timeout {
                Some(timeout) => self.env.sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        let failed = |error: String| LaneAnswer::failed(error, Retry::ByPolicy);
        tokio::select! {
            biased;
            answer = &mut taken.answer => answer.unwrap_or_else(|_| failed("stopped on request".to_owned())),
            () = cancel.cancelled() => failed("stopped on request".to_owned()),
            () = timed_out => failed(format!("timed out after {:?}", timeout.unwrap_or_default())),
            () = expired => failed(LEASE_ENDED.to_owned()),
        }
    }

    async fn offer(self: Arc<Self>, run: Run) -> Vec<LaneAnswer> {
        let mut answers = Vec::with_capacity(run.lanes.len());
        for lane in run.lanes {
            let (sender, taken) = oneshot::channel();
            let (stream, progress) = (Arc::clone(&run.stream), lane.progress.clone());
            self.offers.lock().push_back(Offer { seat: run.seat, stream, run: lane, taken: sender });
            self.news.notify_waiters();
            let taken = tokio::select! {
                biased;
                taken = taken => taken.ok(),
                () = run.cancel.cancelled() => None,
                () = self.env.sleep(OFFER_WAIT) => None,
            };
            answers.push(match taken {
                Some(taken) => self.answer_of(taken, progress, (&run.cancel, run.timeout)).await,
                None => {
                    // Its place is used up, and somebody may still wait for one.
                    self.asks(|asked| asked);
                    LaneAnswer::failed("no worker took it", Retry::NotRun)
                }
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
