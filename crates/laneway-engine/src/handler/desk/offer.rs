//! How a run waits for a worker, and then for its answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::{Nonce, Seat, Steady};
use tokio::sync::{oneshot, watch};

use super::front::{EVENTS_MAX, Inner};
use super::open::{Open, OpenClaim};
use super::words::{Claim, ClaimWish};
use crate::dispatch::LEASE_ENDED;
use crate::handler::cancel::CancelToken;
use crate::handler::progress::{Held, Progress};
use crate::handler::token::ClaimToken;
use crate::handler::types::{LaneAnswer, LaneRun, Retry, Run, TIMED_OUT};
use crate::lane::name_of;

/// How long an offer waits for a worker before its lane is put back.
const OFFER_WAIT: Duration = Duration::from_secs(1);
/// Bytes of a worker's name that are kept.
const WORKER_BYTES_MAX: usize = 256;

/// A lane that waits for a worker.
#[derive(Debug)]
pub(super) struct Offer {
    seat: Seat,
    stream: Arc<str>,
    run: LaneRun,
    taken: oneshot::Sender<Taken>,
}

impl Offer {
    /// Whether its lane does not wait for a worker any more.
    pub(super) fn is_put_back(&self) -> bool {
        self.taken.is_closed()
    }
}

/// A worker took an offer.
#[derive(Debug)]
struct Taken {
    nonce: Nonce,
    expires: watch::Receiver<Steady>,
    answer: oneshot::Receiver<LaneAnswer>,
}

impl Inner {
    /// Takes as many offers as there are, as are wished for, and as workers may still have: others took some meanwhile.
    pub(super) fn take_offers(&self, wish: &ClaimWish, max: usize) -> Vec<Claim> {
        let mut open = self.open.lock();
        let mut claims = Vec::new();
        while claims.len() < max
            && open.claims.len() < self.claims_max
            && let Some(offer) = self.offers.lock().pop_front()
        {
            claims.extend(self.take_offer(&mut open, wish, offer));
        }
        if let Some(request) = &wish.request
            && !claims.is_empty()
        {
            let nonces = claims.iter().map(|(nonce, _)| *nonce).collect();
            open.by_request.insert(request.clone(), nonces);
        }
        claims.into_iter().map(|(_, claim)| claim).collect()
    }

    /// A worker takes an offer; nothing when it was put back at this very moment.
    fn take_offer(&self, open: &mut Open, wish: &ClaimWish, offer: Offer) -> Option<(Nonce, Claim)> {
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
        open.claims.insert(nonce, claim.clone());
        if taken.send(Taken { nonce, expires: expires_seen, answer: answered }).is_err() {
            claim.run.progress.close();
            open.close(nonce);
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
            () = timed_out => failed(format!("{TIMED_OUT}{:?}", timeout.unwrap_or_default())),
            () = expired => failed(LEASE_ENDED.to_owned()),
        }
    }

    pub(super) async fn offer(self: Arc<Self>, run: Run) -> Vec<LaneAnswer> {
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
