//! A worker: takes turns in batches, runs them on the spot, and keeps what is not ready in a set of its own.
//!
//! One visit to the hub hands back what is finished and takes what may start. The size of a batch follows how long the
//! last one took, so that cheap handlers share the cost of a visit and dear ones do not hold up turns that another
//! worker could run. The number of handlers under way is bound by the concurrency cap alone, not by the workers.
//!
//! Does not spawn: a run lives and dies with its worker, and a worker that is dropped ends its runs.

use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;
use futures::stream::FuturesUnordered;

use super::attempt::{Attempt, Berth, Polled, Rules, begin, run_of, settle};
use super::gate::Patience;
use super::hub::{EntryTurn, Hub};
use super::outcome::Outcome;
use super::run::Run;
use super::visit::{Basket, Next, Settled, Visit};
use crate::table::{Tick, Verdict};

/// Turns in one batch at most. Few in tests, so that schedules with full batches are explored.
const BATCH_MAX: usize = if cfg!(test) { 2 } else { 64 };
/// A batch that takes longer is halved, a shorter one doubled.
const BATCH_TIME: Duration = Duration::from_micros(100);
/// How long a worker goes on with brisk batches before other tasks of the runtime get their chance.
const ROUNDS_TIME: Duration = Duration::from_micros(500);
/// Visits after which they get it whatever the clock says: a test may have stopped it.
const ROUNDS_MAX: u32 = 512;
/// Visits in vain before a worker parks: being woken from another thread costs more than looking again.
const LOOKS_BEFORE_PARKING: u32 = 3;
/// Times a worker lets other tasks have its thread, rather than hold it up, while another worker is in the hall.
const TRIES_BEFORE_WAITING: u32 = 1_024;

pub(super) struct Worker<K: Hash + Eq + Clone, V, R, E, H, F> {
    hub: Arc<Hub<K, V, R, E>>,
    handler: Arc<H>,
    number: usize,
    rules: Rules,
    basket: Basket<K, V, R, E>,
    batch_len: usize,
    under_way: FuturesUnordered<Attempt<K, V, R, E, F>>,
    spare: Option<Berth<F>>,
    last_visit: Tick,
    /// It is registered at the gate, or was until it was woken from there.
    parked: bool,
    /// Visits in a row that brought nothing.
    looks: u32,
    /// Visits in a row that found another worker in the hall.
    tries: u32,
}

// Nothing in a worker is pinned in place: handler futures are boxed in their berths.
impl<K: Hash + Eq + Clone, V, R, E, H, F> Unpin for Worker<K, V, R, E, H, F> {}

impl<K, V, R, E, H, F> Worker<K, V, R, E, H, F>
where
    K: Hash + Eq + Clone,
    V: Send + Sync + 'static,
    R: Send + 'static,
    E: Send + 'static,
    H: Fn(Run<K, V>) -> F,
    F: Future<Output = Outcome<R, E>>,
{
    pub(super) fn new(hub: Arc<Hub<K, V, R, E>>, handler: Arc<H>, number: usize) -> Self {
        let rules = Rules::new(&hub.settings, hub.clock);
        let last_visit = hub.clock.now();
        Self {
            hub,
            handler,
            number,
            rules,
            basket: Basket::new(BATCH_MAX),
            batch_len: 1,
            under_way: FuturesUnordered::new(),
            spare: None,
            last_visit,
            parked: false,
            looks: 0,
            tries: 0,
        }
    }

    fn collect_finished(&mut self, context: &mut Context<'_>) {
        // Counted apart from the runs of the batch: a full one would leave those that waited unpolled for ever.
        let enough = self.basket.settled.len() + BATCH_MAX;
        while !self.under_way.is_empty()
            && self.basket.settled.len() < enough
            && let Poll::Ready(Some(settled)) = Pin::new(&mut self.under_way).poll_next(context)
        {
            self.basket.settled.push(settled);
        }
    }

    fn visit(&mut self, context: &Context<'_>, returns: bool) -> Next {
        let patience = if self.tries < TRIES_BEFORE_WAITING { Patience::GiveUp } else { Patience::Wait };
        // Runs that go on after their first poll are work that others can share, however quick the polls are.
        let brisk = self.batch_len == BATCH_MAX && self.under_way.is_empty();
        // Two that get in each other's way over brisk runs are slower than one.
        let withdraws = brisk && self.tries > 0;
        let visit = Visit {
            worker: self.number,
            batch_max: self.batch_len,
            brisk,
            withdraws,
            returns,
            patience,
            waker: context.waker(),
            parks: self.looks >= LOOKS_BEFORE_PARKING,
        };
        let (next, now) = self.hub.exchange(&mut self.basket, &visit);
        if next == Next::Busy {
            self.tries += 1;
            return next;
        }
        self.tries = 0;
        if self.looks == 0 {
            self.batch_len = match now.since(self.last_visit) > BATCH_TIME {
                true => (self.batch_len / 2).max(1),
                false => (self.batch_len * 2).min(BATCH_MAX),
            };
        }
        self.last_visit = now;
        self.looks = if matches!(next, Next::Work | Next::WorkAfterOthers) { 0 } else { self.looks + 1 };
        next
    }

    /// Works until there is nothing to do, or other tasks are to have their chance.
    fn rounds(&mut self, context: &mut Context<'_>) -> Next {
        let (mut first_visit, mut visits) = (None, 0);
        loop {
            // Empty, unless the last visit asked to let others go first.
            self.run_batch(context);
            self.collect_finished(context);
            visits += 1;
            let in_time = first_visit.is_none_or(|first| self.last_visit.since(first) < ROUNDS_TIME);
            let returns = in_time && visits < ROUNDS_MAX;
            let next = self.visit(context, returns);
            if next != Next::Work {
                return next;
            }
            self.run_batch(context);
            if !returns {
                return next;
            }
            first_visit.get_or_insert(self.last_visit);
        }
    }

    fn run_batch(&mut self, context: &mut Context<'_>) {
        let mut batch = std::mem::take(&mut self.basket.batch);
        for turn in batch.drain(..) {
            self.run(turn, context);
        }
        self.basket.batch = batch;
    }

    fn run(&mut self, mut turn: EntryTurn<K, V, R, E>, context: &mut Context<'_>) {
        let mut berth = self.spare.take().unwrap_or_else(|| Box::pin(None));
        // A turn late in its batch must not pay for those before it; without a timeout nobody asks.
        let started = self.rules.timeout.map_or(self.last_visit, |_| self.rules.clock.now());
        let call = || (self.handler)(run_of(&mut turn, &self.rules, started));
        let polled = begin(&mut berth, call, context);
        if matches!(polled, Polled::Pending) {
            let attempt = Attempt::new(turn, berth, self.rules.clone(), started);
            self.under_way.push(attempt);
            return;
        }
        self.spare = Some(berth);
        self.basket.settled.extend(settle(turn, polled, &self.rules));
    }
}

impl<K, V, R, E, H, F> Future for Worker<K, V, R, E, H, F>
where
    K: Hash + Eq + Clone,
    V: Send + Sync + 'static,
    R: Send + 'static,
    E: Send + 'static,
    H: Fn(Run<K, V>) -> F,
    F: Future<Output = Outcome<R, E>>,
{
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let called = std::mem::take(&mut this.parked) && this.hub.gate().unpark(this.number);
        // What it was called for comes before its own runs: one of them may be ready too, and take long, and nobody
        // else is called while this one is thought to be on its way.
        let errand = called && !this.under_way.is_empty();
        let next = if errand { this.visit(context, true) } else { Next::Work };
        match if next == Next::WorkAfterOthers { next } else { this.rounds(context) } {
            Next::Finished => return Poll::Ready(()),
            Next::Parked => this.parked = true,
            Next::Work | Next::WorkAfterOthers | Next::Busy | Next::Nothing => context.waker().wake_by_ref(),
        }
        Poll::Pending
    }
}

impl<K: Hash + Eq + Clone, V, R, E, H, F> Drop for Worker<K, V, R, E, H, F> {
    /// Every turn is given back, whatever ended the worker: a key is never left locked by a run that is gone.
    fn drop(&mut self) {
        let unfinished = std::mem::take(&mut self.under_way).into_iter().filter_map(Attempt::abandon);
        let lost = unfinished.chain(self.basket.batch.drain(..)).map(|turn| Settled {
            turn,
            verdict: Verdict::Stopped,
            end: None,
            ending: None,
        });
        self.basket.settled.extend(lost);
        self.hub.lose_worker(self.number, &mut self.basket);
    }
}
