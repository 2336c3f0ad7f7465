//! What a node does about what it saw: plain code, view and time in, steps out.
//!
//! Invariant: every step is one conditional write that names the version it was decided on. So it does not matter who
//! decides: what was decided on an old view conflicts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use laneway_core::{ProcessorId, Steady, Term, Timestamp};

use super::assign::{Candidate, Candidates, assign};
use super::documents::{Leader, NodeRecord, NodeToken, Plan, Seen, View};
use super::node::NodeSettings;

/// This node in one life.
#[derive(Debug, Clone)]
pub(super) struct Own {
    pub(super) node: NodeToken,
    /// It was seen in the store: if it is not there any more, somebody buried it.
    pub(super) joined: bool,
    /// When it joined, by the store's clock.
    pub(super) since: Option<Timestamp>,
    /// When the last renewal was sent.
    pub(super) renewed: Option<Steady>,
    pub(super) leaving: bool,
}

/// Since when each node's document has not changed, by the own steady clock (contract 3.18).
#[derive(Debug, Default)]
pub(super) struct Watched(BTreeMap<NodeToken, (u64, Steady)>);

/// What this node can run, and what there is to run.
#[derive(Debug, Clone, Default)]
pub(super) struct Work {
    pub(super) runs: BTreeSet<ProcessorId>,
    pub(super) asked: BTreeSet<ProcessorId>,
    /// All processors of the store with their partitions.
    pub(super) processors: BTreeMap<ProcessorId, u32>,
}

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// This life is over: drop everything, and join again under another name.
    Fenced,
    Steps(Box<Steps>),
}

/// Conditional writes, in this order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Steps {
    pub(super) renew: Option<(Option<u64>, NodeRecord)>,
    pub(super) bury: Vec<(NodeToken, u64)>,
    pub(super) lead: Option<(Option<u64>, Leader)>,
    pub(super) plan: Option<(Option<u64>, Plan)>,
    /// Look again after this long, whatever happens: the first lease that is known to end.
    pub(super) look_after: Option<Duration>,
}

impl Watched {
    /// Takes in what is there now.
    pub(super) fn see(&mut self, view: &View, now: Steady) {
        self.0.retain(|node, _| view.nodes.contains_key(node));
        for (node, Seen { version, .. }) in &view.nodes {
            let known = self.0.entry(*node).or_insert((*version, now));
            if known.0 != *version {
                *known = (*version, now);
            }
        }
    }

    /// How long a node's lease lasts from now on; nothing when it is over.
    fn left(&self, node: NodeToken, view: &View, usual: Duration, now: Steady) -> Option<Duration> {
        let record = view.record(node);
        let left = match (view.clock, record.and_then(|record| record.expires)) {
            (Some(clock), Some(expires)) => Duration::from_micros(expires.0.saturating_sub(clock.0)),
            // Without a clock, or with a record of a newer Laneway: seen unchanged for a whole lease.
            _ => {
                let lease = record.map_or(usual, |record| record.lease);
                let unchanged = self.0.get(&node).map_or(Duration::ZERO, |(_, since)| now.since(*since));
                lease.saturating_sub(unchanged)
            }
        };
        (left > Duration::ZERO).then_some(left)
    }
}

/// Decides on what was seen.
pub(super) fn decide(
    view: &View,
    own: &Own,
    settings: &NodeSettings,
    watched: &Watched,
    work: &Work,
    now: Steady,
) -> Decision {
    let left = |node| watched.left(node, view, settings.lease, now);
    let here = view.nodes.get(&own.node);
    let expired = here.is_some() && view.clock.is_some() && left(own.node).is_none();
    if (own.joined && here.is_none()) || expired {
        return Decision::Fenced;
    }
    let others = view.nodes.keys().filter(|node| **node != own.node);
    let (living, dead): (Vec<NodeToken>, Vec<NodeToken>) = others.partition(|node| left(**node).is_some());
    let mut steps = Steps {
        renew: renewal(view, own, settings, work, now),
        bury: dead.iter().map(|node| (*node, view.nodes[node].version)).collect(),
        look_after: living.iter().filter_map(|node| left(*node)).min(),
        ..Steps::default()
    };
    let lives = |node: NodeToken| node == own.node || living.contains(&node);
    let leader = view.leader.as_ref();
    // One that cannot be read is of a newer Laneway, which knows what it does.
    let has_leader = leader.is_some_and(|seen| seen.content.is_none_or(|leader| lives(leader.node)));
    if !has_leader && own.joined && !own.leaving {
        let term = leader.and_then(|seen| seen.content).map_or(0, |leader| leader.term.0);
        let next = Leader { node: own.node, term: Term(term + 1) };
        steps.lead = Some((leader.map(|seen| seen.version), next));
    }
    let leads = leader.is_some_and(|seen| seen.content.is_some_and(|leader| leader.node == own.node));
    if leads {
        let before = view.plan().cloned().unwrap_or_default();
        let plan = assign(&work.processors, &candidates(view, settings, lives), &before);
        if view.plan() != Some(&plan) {
            steps.plan = Some((view.plan.as_ref().map(|seen| seen.version), plan));
        }
    }
    Decision::Steps(Box::new(steps))
}

/// The own document as it should be, if it must be written: because a third of the lease has passed, or what it says has changed.
fn renewal(
    view: &View,
    own: &Own,
    settings: &NodeSettings,
    work: &Work,
    now: Steady,
) -> Option<(Option<u64>, NodeRecord)> {
    let here = view.nodes.get(&own.node);
    let record = NodeRecord {
        name: settings.name.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        weight: settings.weight,
        standby: settings.standby,
        tags: settings.tags.clone(),
        role: settings.role.clone(),
        since: own.since.or(view.clock).unwrap_or_default(),
        lease: settings.lease,
        expires: view.clock.map(|clock| clock.after(settings.lease)),
        leaving: own.leaving,
        runs: work.runs.clone(),
        asked: work.asked.clone(),
    };
    let is_due = own.renewed.is_none_or(|renewed| now.since(renewed) >= settings.lease / 3);
    let says_the_same = here.and_then(|seen| seen.content.as_ref()).is_some_and(|content| {
        NodeRecord { expires: None, ..content.clone() } == NodeRecord { expires: None, ..record.clone() }
    });
    (is_due || !says_the_same).then(|| (here.map(|seen| seen.version), record))
}

fn candidates(view: &View, settings: &NodeSettings, lives: impl Fn(NodeToken) -> bool) -> Candidates {
    let living = view.nodes.iter().filter(|(node, _)| lives(**node));
    let readable = living.filter_map(|(node, seen)| Some((*node, seen.content.as_ref()?)));
    let staying = readable.filter(|(_, record)| !record.leaving && !view.drained.contains(&record.name));
    let candidate = |record: &NodeRecord| Candidate {
        weight: record.weight,
        standby: record.standby,
        settled: view.clock.is_none_or(|clock| clock >= record.since.after(settings.settle)),
        runs: record.runs.clone(),
        asked: record.asked.clone(),
    };
    staying.map(|(node, record)| (node, candidate(record))).collect()
}
