//! Keeping a node in the cluster: look, decide, act, and tell the seats; again and again until the engine ends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use laneway_core::{Documents, ProcessorId, Result, Steady, StoreError};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::decide::{Decision, Own, Steps, Watched, Work, decide};
use super::documents::{LEADER, NodeToken, PLAN, PREFIX, Plan, View};
use super::node::NodeSettings;
use super::standing::{Grant, Grants, Standing};
use crate::log::Catalogue;
use crate::observe::{count_lost_lease, count_rebalance, show_cluster};
use crate::service::Env;

/// A lease is looked after so many times while it lasts.
const ROUNDS_PER_LEASE: u32 = 10;
/// Whoever lets a lease end is looked at so long after that.
const AFTER_EXPIRY: Duration = Duration::from_millis(20);
/// A round that changed something is followed by the next at once, so often in a row at most.
const AT_ONCE_MAX: u32 = 16;
/// How often a departing node tries to take its document away.
const DEPART_TRIES: u32 = 3;

/// What this node can run: the part of the engine that the cluster steers.
pub(crate) trait Abilities: Send + Sync {
    /// The processors that could run here, and those that remote workers asked for lately.
    fn abilities(&self) -> (BTreeSet<ProcessorId>, BTreeSet<ProcessorId>);
    /// Seats that the plan gives to this node run, all others rest.
    fn follow(&self, plan: &Plan, node: NodeToken);
    /// All seats rest.
    fn rest(&self);
}

/// This node's membership, as the engine holds it.
pub(crate) struct Membership {
    pub(crate) settings: NodeSettings,
    grants: Arc<Grants>,
    /// Something changed that others should know.
    changed: Notify,
    leaving: AtomicBool,
    node: Mutex<Option<NodeToken>>,
}

impl Membership {
    pub(crate) fn new(settings: NodeSettings) -> Arc<Self> {
        Arc::new(Self {
            settings,
            grants: Arc::default(),
            changed: Notify::new(),
            leaving: AtomicBool::new(false),
            node: Mutex::new(None),
        })
    }

    pub(crate) fn standing(&self) -> Standing {
        Standing::Member(Arc::clone(&self.grants))
    }

    /// What can run here has changed.
    pub(crate) fn look_again(&self) {
        self.changed.notify_one();
    }

    /// Takes nothing from now on; what it owns is given up as it is drained.
    pub(crate) fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
        self.look_again();
    }

    /// The current life of this node.
    pub(crate) fn node(&self) -> Option<NodeToken> {
        *self.node.lock()
    }

    /// Tells the others that this node is gone, once it owns nothing any more: they need not wait for its lease to end.
    pub(crate) async fn depart(&self, documents: &dyn Documents) -> Result<()> {
        self.grants.set(None);
        let Some(node) = self.node.lock().take() else { return Ok(()) };
        let mut left = DEPART_TRIES;
        loop {
            let Some(document) = documents.get(&node.document()).await? else { return Ok(()) };
            left -= 1;
            match documents.delete(&document.name, document.version).await {
                // A renewal that was under way.
                Err(StoreError::Conflict(_)) if left > 0 => {}
                deleted => return deleted,
            }
        }
    }
}

/// Keeps the node in the cluster.
pub(crate) struct Keeper {
    pub(crate) env: Env,
    pub(crate) documents: Arc<dyn Documents>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) membership: Arc<Membership>,
    pub(crate) seats: Arc<dyn Abilities>,
}

/// What a life of the node knows.
struct Life {
    own: Own,
    watched: Watched,
    /// When the lease that was granted last ends, by the own clock.
    deadline: Option<Steady>,
    /// How long the store took, lately at most.
    slowest: Duration,
}

/// What a round came to.
enum Came {
    /// Something was changed: look at once whether more is to do.
    Changed,
    /// Nothing is to do until then.
    Quiet(Option<Duration>),
    /// This life is over.
    Fenced,
}

impl Keeper {
    /// Joins, and joins again whenever it was fenced; never ends by itself.
    pub(crate) async fn keep(self: Arc<Self>) {
        loop {
            let node = NodeToken(self.env.token().0);
            *self.membership.node.lock() = Some(node);
            let outlived = self.live(node).await;
            self.drop_all();
            count_lost_lease();
            if outlived {
                self.forget(node).await;
            }
            tracing::error!(%node, "this node lost its lease: everything it had is dropped, and it joins again");
        }
    }

    fn drop_all(&self) {
        self.membership.grants.set(None);
        self.seats.rest();
    }

    /// Lives until others believe it dead, or the store lives another life. Answers whether that was it.
    async fn live(&self, node: NodeToken) -> bool {
        let life_of_store = self.catalogue.life();
        let tick = self.membership.settings.lease / ROUNDS_PER_LEASE;
        let own = Own { node, joined: false, since: None, renewed: None, leaving: false };
        let mut life = Life { own, watched: Watched::default(), deadline: None, slowest: Duration::ZERO };
        let mut at_once = 0;
        loop {
            let came = self.limited(&mut life).await;
            // A seat that this node has handed over may be in its name again, and nobody would take it as long as it lives.
            if self.catalogue.life() != life_of_store {
                return true;
            }
            let wait = match came {
                Ok(Came::Fenced) => return false,
                Ok(Came::Changed) if at_once < AT_ONCE_MAX => {
                    at_once += 1;
                    Duration::ZERO
                }
                Ok(Came::Changed) => tick,
                Ok(Came::Quiet(until)) => {
                    at_once = 0;
                    until.map_or(tick, |until| tick.min(until + AFTER_EXPIRY))
                }
                Err(error) => {
                    tracing::warn!(%node, %error, "the cluster could not be looked at; it is tried again");
                    tick
                }
            };
            if life.deadline.is_some_and(|deadline| deadline <= self.env.steady()) {
                // Others may believe it dead already, and what it has would be refused.
                self.drop_all();
            }
            tokio::select! {
                biased;
                () = self.membership.changed.notified() => {}
                () = self.env.sleep(wait) => {}
            }
        }
    }

    /// Takes the document of an earlier life of this node away, so that nobody waits for its lease to end. It ends anyway.
    async fn forget(&self, node: NodeToken) {
        let forgetting = async {
            let Some(document) = self.documents.get(&node.document()).await? else { return Ok(()) };
            self.documents.delete(&document.name, document.version).await
        };
        tokio::select! {
            biased;
            forgotten = forgetting => {
                if let Err(error) = forgotten {
                    tracing::warn!(%node, %error, "an earlier life of this node is left to its lease");
                }
            }
            () = self.env.sleep(self.membership.settings.lease / 2) => {}
        }
    }

    /// A round that takes no longer than the lease would last.
    async fn limited(&self, life: &mut Life) -> Result<Came> {
        let limit = self.membership.settings.lease / 2;
        tokio::select! {
            biased;
            came = self.round(life) => came,
            () = self.env.sleep(limit) => {
                let source = std::io::Error::from(std::io::ErrorKind::TimedOut).into();
                Err(StoreError::Unknown { action: "look at the cluster", source })
            },
        }
    }

    async fn round(&self, life: &mut Life) -> Result<Came> {
        let settings = &self.membership.settings;
        // Before anything is asked: whatever the store says is at least as new (rule F3).
        let asked_at = self.env.steady();
        let clock = self.documents.clock().await?;
        let view = View::read(clock, self.documents.list(PREFIX).await?);
        let now = self.env.steady();
        life.slowest = (life.slowest * 9 / 10).max(now.since(asked_at));
        life.watched.see(&view, now);
        life.own.leaving = self.membership.leaving.load(Ordering::Relaxed);
        if let Some(record) = view.record(life.own.node) {
            (life.own.joined, life.own.since) = (true, Some(record.since));
        }
        let leads = view
            .leader
            .as_ref()
            .is_some_and(|seen| seen.content.is_some_and(|leader| leader.node == life.own.node));
        let work = self.work(leads).await?;
        let steps = match decide(&view, &life.own, settings, &life.watched, &work, now) {
            Decision::Fenced => return Ok(Came::Fenced),
            Decision::Steps(steps) => *steps,
        };
        let look_after = steps.look_after;
        let changed = self.act(life, steps, asked_at).await?;
        self.extend(life);
        if let (Some(plan), true) = (view.plan(), life.deadline.is_some()) {
            self.seats.follow(plan, life.own.node);
        }
        show_cluster(view.nodes.len(), leads);
        Ok(if changed { Came::Changed } else { Came::Quiet(look_after) })
    }

    /// What there is to run is of interest only to who plans it.
    async fn work(&self, leads: bool) -> Result<Work> {
        let (runs, asked) = self.seats.abilities();
        let mut processors = BTreeMap::new();
        if leads {
            for stream in self.catalogue.streams().await? {
                let partitions = stream.settings.partitions;
                processors.extend(stream.processors.iter().map(|processor| (processor.id, partitions)));
            }
        }
        Ok(Work { runs, asked, processors })
    }

    /// Carries the steps out. Answers whether something was changed; what conflicts is left to the next round.
    async fn act(&self, life: &mut Life, steps: Steps, asked_at: Steady) -> Result<bool> {
        let Steps { renew, bury, lead, plan, look_after: _ } = steps;
        let mut changed = false;
        if let Some((expect, record)) = renew {
            let put = self.documents.put(&life.own.node.document(), expect, record.encode()).await;
            if happened(put.map(|_| ()))? {
                changed |= !life.own.joined;
                life.own.renewed = Some(asked_at);
                life.deadline = Some(self.deadline(asked_at, life.slowest));
            }
        }
        for (node, version) in bury {
            if happened(self.documents.delete(&node.document(), version).await)? {
                tracing::warn!(%node, "a node was not heard of for its whole lease: others take what it had");
                changed = true;
            }
        }
        if let Some((expect, leader)) = lead {
            let put = self.documents.put(LEADER, expect, leader.encode()).await;
            changed |= happened(put.map(|_| ()))?;
        }
        if let Some((expect, plan)) = plan {
            let put = self.documents.put(PLAN, expect, plan.encode()).await;
            if happened(put.map(|_| ()))? {
                count_rebalance();
                changed = true;
            }
        }
        Ok(changed)
    }

    /// When a lease that was renewed by what was asked then is not to be relied on any more (rule F3).
    fn deadline(&self, asked_at: Steady, slowest: Duration) -> Steady {
        let lease = self.membership.settings.lease;
        let drift = lease / 2_000;
        let margin = (lease / 10).max(slowest * 2).min(lease / 2) + drift;
        asked_at.after(lease.saturating_sub(margin))
    }

    /// Tells the seats how long they may rely on the lease. Never longer than half of it from now: if this is not told
    /// again by then, the process was stopped (rule F11).
    fn extend(&self, life: &Life) {
        let Some(deadline) = life.deadline else { return };
        let now = self.env.steady();
        let until = deadline.min(now.after(self.membership.settings.lease / 2));
        let grant = (now < until).then_some(Grant { node: life.own.node, until });
        self.membership.grants.set(grant);
    }
}

/// Whether a conditional write took place; somebody else may have been faster.
fn happened(written: Result<()>) -> Result<bool> {
    match written {
        Ok(()) => Ok(true),
        Err(StoreError::Conflict(_)) => Ok(false),
        Err(error) => Err(error),
    }
}
