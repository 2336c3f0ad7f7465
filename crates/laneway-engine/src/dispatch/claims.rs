//! Claims of remote workers, as the owner of a seat sees them (contract 1.16).
//!
//! A claim is a run of this seat while it is young. Once it is older than a few seconds, or when the seat is handed over,
//! it is written into its lane record, with its events in the lane's siding, so that the next owner can honour it: that
//! one leaves the lane alone until the worker settles or its lease ends by the store's clock. What was not written is
//! lost with its owner.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashSet;
use laneway_core::store::{Entry, LaneView, Page};
use laneway_core::{Block, Claim, Due, EventId, LaneName, LaneRecord, Nonce, Steady};

use super::fetch::{Siding, Wish};
use super::queue::Until;
use super::requests::{ALREADY, APPLIED, Verdict, refused};
use super::seat::{ActiveLane, Seat};
use super::settle::Failed;
use super::turns::is_due;
use crate::commit::Prepared;
use crate::handler::{ClaimToken, Failure, LaneAnswer, Progress, Retry, WhenDurable};
use crate::lane::{Answer, Refused, Waiting};
use crate::service::{Env, Now};

/// A claim of this age is written into its lane record.
const WRITTEN_AFTER: Duration = Duration::from_secs(5);
/// Settled claims that are remembered, so that settling again is answered as what it is.
const SETTLED_MAX: usize = 4_096;

/// What a worker that goes silent comes to.
pub(crate) const LEASE_ENDED: &str = "the worker's lease ended without an answer";

/// The claims that were settled last.
#[derive(Debug, Default)]
pub(super) struct Settled {
    order: VecDeque<Nonce>,
    known: HashSet<Nonce>,
}

impl Settled {
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    pub(super) fn remember(&mut self, nonce: Nonce) {
        if !self.known.insert(nonce) {
            return;
        }
        self.order.push_back(nonce);
        if self.order.len() > SETTLED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

impl Seat {
    /// Lets remote workers run what is here: a lane per run, as many events as they ask for.
    pub(crate) fn serve_workers(&mut self) {
        self.remote = true;
        self.book.run_batches();
    }

    /// How many events of a lane a worker asks for at most.
    pub(crate) fn offer_events(&mut self, max: usize) {
        self.offered_max = max.max(1);
    }

    /// Settles a claim on request: one that runs here, or one that an owner before has written.
    pub(super) fn settle_claim(&mut self, env: &Env, wish: Wish, now: Now) -> Verdict {
        let Some(token) = &wish.claim else { return refused(Refused::Malformed) };
        if self.settled.known.contains(&token.nonce) {
            return ALREADY;
        }
        if let Some(progress) = self.claimed_here(token) {
            let Some(answer) = wish.answer else { return refused(Refused::Malformed) };
            let when_durable = WhenDurable::for_request(wish.row.number);
            // Its run ends with this answer, and the commit of that answers the request.
            return match progress.settle(token.nonce, LaneAnswer { when_durable, ..answer }) {
                Ok(()) => Verdict::Follows,
                Err(_) => refused(Refused::ClaimLost),
            };
        }
        let token = token.clone();
        let not_open = self.not_open(&token, wish.lane.as_ref());
        if self.is_draining() {
            return left_to_the_next_owner(token.lane);
        }
        if self.book.len_of(&token.lane) > 0 {
            // What runs in the lane is not this claim, or it is just being settled.
            let settling = self.book.running_of(&token.lane).is_some_and(|running| running.has_ended());
            let until = Until::Lane(token.lane);
            return if settling { Verdict::PutOff(until) } else { not_open };
        }
        let (Some(view), Some(prepared)) = (wish.lane, wish.prepared) else { return not_open };
        if written_claim(&view, &token, now).is_none() {
            return not_open;
        }
        let Some(active) = self.take_over(view, wish.siding, token.last().0, now) else { return not_open };
        let Some((active, rest)) = self.settle_lane(env, now, active, prepared, now.calendar) else {
            self.settled.remember(token.nonce);
            return APPLIED;
        };
        let progress = Progress::settled_by(token.nonce);
        let when_durable = WhenDurable::for_request(wish.row.number);
        let rest = Prepared { when_durable, ..rest };
        self.settle_later(ActiveLane { progress, ..active }, rest, now);
        Verdict::Follows
    }

    /// What is said to the settlement of a claim that is not open: that its event has ended, by this claim or by another
    /// one, or that the claim is lost (contract 1.16).
    fn not_open(&self, token: &ClaimToken, view: Option<&LaneView>) -> Verdict {
        let ended = self.has_ended(&token.lane, token.first(), view);
        if ended { ALREADY } else { refused(Refused::ClaimLost) }
    }

    /// Gives a worker more time on request.
    pub(super) fn extend_claim(&mut self, wish: &Wish, lease: Duration, now: Now) -> Verdict {
        let Some(token) = &wish.claim else { return refused(Refused::Malformed) };
        let expires = now.steady.after(lease);
        if let Some(progress) = self.claimed_here(token) {
            let extended = progress.extend(token.nonce, expires);
            return if extended { APPLIED } else { refused(Refused::ClaimLost) };
        }
        if self.is_draining() {
            return left_to_the_next_owner(token.lane.clone());
        }
        let Some(view) = wish.lane.as_ref().filter(|_| self.book.len_of(&token.lane) == 0) else {
            return refused(Refused::ClaimLost);
        };
        let Some(claim) = written_claim(view, token, now) else { return refused(Refused::ClaimLost) };
        let block = Block::Claimed(Claim { expires, ..claim });
        self.gather_record(&token.lane, Some(LaneRecord { block: Some(block), ..view.record.clone() }));
        APPLIED
    }

    /// The run that this claim is, if it is open here.
    fn claimed_here(&self, token: &ClaimToken) -> Option<Progress> {
        let mut lanes = self.runs.values().flat_map(|active| &active.lanes);
        let found = lanes.find(|lane| {
            lane.turn.key == token.lane
                && lane.progress.claim().is_some_and(|(claim, _)| claim.nonce == token.nonce)
        });
        found.map(|lane| lane.progress.clone())
    }

    /// Brings a claimed lane into memory as what it is: a run of its first events.
    fn take_over(&mut self, view: LaneView, siding: Siding, through: u64, now: Now) -> Option<ActiveLane> {
        let (lane, attempts) = (view.record.lane.clone(), view.record.attempts);
        self.load_lane(view, siding, now);
        let turn = self.book.start_lane(&lane)?;
        let mut also = self.book.behind(&lane, usize::MAX);
        also.retain(|(_, waiting)| waiting.event.id.0 <= through);
        let progress = Progress::default();
        Some(ActiveLane { turn, also, attempt: attempts + 1, settled: 0, progress, stop: None })
    }

    /// The lease of a written claim is over: its run failed.
    pub(super) fn lapse(&mut self, env: &Env, view: LaneView, siding: Siding, now: Now) {
        let first = siding.events.entries.iter().find_map(|entry| match entry {
            Entry::Event(event) => Some(event.id),
            Entry::Superseded { .. } => None,
        });
        if first != view.record.head {
            // What the worker had was superseded meanwhile.
            return self.load_lane(view, siding, now);
        }
        let Some(active) = self.take_over(view, siding, 0, now) else { return };
        let failure = Failure { error: LEASE_ENDED.to_owned(), retry: Retry::ByPolicy };
        let failing = Arc::clone(&active.turn.payload);
        let failed = Failed { failing, attempts: active.attempt, failure, started_at: now.calendar };
        self.fail(env, now, active.turn, failed);
    }

    /// Claims that are old enough are written, and again when they were extended.
    pub(super) fn write_claims(&mut self, now: Now) {
        let mut old: Vec<(LaneName, Claim, EventId)> = Vec::new();
        for lane in self.runs.values().flat_map(|active| &active.lanes) {
            let Some((claim, since)) = lane.progress.claim() else { continue };
            if now.steady >= since.after(WRITTEN_AFTER) {
                old.push((lane.turn.key.clone(), claim, lane.turn.payload.event.id));
            }
        }
        for (lane, claim, head) in old {
            let record = self.record_with_head(&lane, head);
            let block = Some(Block::Claimed(claim));
            let stays = matches!(record.block, Some(Block::Paused { .. } | Block::Diverting { .. }));
            if stays || record.block == block {
                continue;
            }
            self.side_in_memory(&lane);
            self.put_record(&lane, Some(LaneRecord { block, ..record }));
        }
    }

    /// When the next claim is to be written.
    pub(super) fn next_claim_to_write(&self) -> Option<Steady> {
        let lanes = self.runs.values().flat_map(|active| &active.lanes);
        let young = lanes.filter(|lane| {
            let record = self.book.memo(&lane.turn.key).and_then(|memo| memo.record.as_ref());
            record.is_none_or(|record| record.block.is_none())
        });
        young.filter_map(|lane| lane.progress.claim().map(|(_, since)| since.after(WRITTEN_AFTER))).min()
    }

    /// The seat is handed over: open claims go with their lanes, and what no worker has taken is taken back.
    pub(super) fn hand_over_claims(&mut self) {
        if !self.remote {
            return;
        }
        for (number, active) in std::mem::take(&mut self.runs) {
            let claim = active.lanes.first().and_then(|lane| lane.progress.withdraw());
            active.canceller.cancel();
            let Some(claim) = claim else {
                // It was settled and is on its way here, or nobody has it.
                self.runs.insert(number, active);
                continue;
            };
            for lane in active.lanes {
                let record = self.record_with_head(&lane.turn.key, lane.turn.payload.event.id);
                self.block(lane.turn, Block::Claimed(claim.clone()), record);
            }
        }
    }

    /// What a run of a worker came to is settled.
    pub(super) fn claim_settled(&mut self, active: &ActiveLane, when_durable: &WhenDurable) {
        if let Some(nonce) = active.progress.settled() {
            self.settled.remember(nonce);
        }
        if let Some(number) = when_durable.request() {
            self.answer(number, Answer::Applied);
        }
    }
}

/// Claims that were handed over are not this owner's to decide about: the request stays filed for the next one.
fn left_to_the_next_owner(lane: LaneName) -> Verdict {
    Verdict::PutOff(Until::Lane(lane))
}

/// The claim of this token as an owner before has written it, while its lease lasts.
fn written_claim(view: &LaneView, token: &ClaimToken, now: Now) -> Option<Claim> {
    match &view.record.block {
        Some(Block::Claimed(claim))
            if claim.nonce == token.nonce
                && claim.through == token.last()
                && view.record.head == Some(token.first())
                && !is_due(Due::Steady(claim.expires), now) =>
        {
            Some(claim.clone())
        }
        _ => None,
    }
}

/// The events of a claim, if all of them are still what the worker was given.
pub(super) fn claimed_events(token: &ClaimToken, siding: &Page) -> Option<Vec<Arc<Waiting>>> {
    let mut events = Vec::new();
    for entry in siding.entries.iter().filter(|entry| entry.id() <= token.last()) {
        match entry {
            Entry::Event(event) => events.push(Arc::new(Waiting::new(event.clone(), true))),
            // A newer event took its place while it was away (latest mode).
            Entry::Superseded { .. } => return None,
        }
    }
    let ids = events.iter().map(|waiting| waiting.event.id);
    ids.eq(token.events.iter().copied()).then_some(events)
}
