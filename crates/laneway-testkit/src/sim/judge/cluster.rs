//! Nodes and their leases. F6: what is over is not renewed. S2: nobody takes a seat from a node that lives. L3: whoever
//! has no lease any more starts and commits nothing. S1: a seat is not long without an owner.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::Seize;
use laneway_core::{Seat, Steady};

use super::Judge;
use super::seats::SeatModel;
use crate::sim::life::TrueNow;
use crate::sim::record::{By, Change};

const NODE: &str = "cluster/node/";
const LEADER: &str = "cluster/leader";

/// What is known of the cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct ClusterModel {
    /// Nodes by their tokens, also those that are gone.
    nodes: BTreeMap<Bytes, NodeModel>,
    /// The token under which each life is known now.
    tokens: BTreeMap<u32, Bytes>,
    /// Who said last that it leads.
    leader: Option<Bytes>,
    /// Lives that were asked to end somebody's lease before its time.
    breakers: std::collections::BTreeSet<u32>,
    /// When something last happened that may cost a seat its owner, other than what the model knows.
    disturbed_at: Steady,
}

/// One life of a node in the eyes of others.
#[derive(Debug, Clone, Copy)]
struct NodeModel {
    life: u32,
    /// Since when its document is there.
    since: Steady,
    /// When its lease was last renewed: when that was sent, and when it took effect.
    renewal_sent: Steady,
    renewed: Steady,
    /// When its document went, if it did.
    gone_at: Option<Steady>,
}

impl ClusterModel {
    /// Documents are as they were. What a node believes of its own lease stays.
    pub(super) fn fail_over(&mut self, now: TrueNow, kept: &Self) {
        for (token, node) in &mut self.nodes {
            match kept.nodes.get(token) {
                Some(kept) => *node = NodeModel { renewed: node.renewed, ..*kept },
                None => node.gone_at = Some(now.steady),
            }
        }
        self.leader.clone_from(&kept.leader);
    }
}

impl Judge {
    /// Something happened after which a seat may be without an owner for a while.
    pub(super) fn disturb(&mut self, now: TrueNow) {
        self.cluster.disturbed_at = now.steady;
    }

    /// This life may end leases that last.
    pub(crate) fn may_break_leases(&mut self, life: u32) {
        self.cluster.breakers.insert(life);
    }

    /// A document was changed.
    pub(super) fn document(&mut self, now: TrueNow, by: By, name: &str, change: Change) {
        if by.late {
            self.disturb(now);
        }
        if let Some(token) = name.strip_prefix(NODE) {
            let token = Bytes::from(token.to_owned());
            match change {
                Change::Create => self.joined_cluster(now, by, token),
                Change::Replace => self.renewed(now, by, &token),
                Change::Delete => self.left_cluster(now, by, &token),
            }
        } else if name == LEADER && change != Change::Delete {
            let token = self.cluster.tokens.get(&by.life).cloned();
            if self.cluster.leader.is_some() && self.cluster.leader != token {
                self.hit("another leader");
            }
            self.cluster.leader = token;
        }
    }

    fn joined_cluster(&mut self, now: TrueNow, by: By, token: Bytes) {
        let node = NodeModel {
            life: by.life,
            since: now.steady,
            renewal_sent: by.sent_at,
            renewed: now.steady,
            gone_at: None,
        };
        match self.cluster.nodes.insert(token.clone(), node) {
            // A creation that was on its way for long, and had been repeated with success.
            Some(_) => self.hit("dead node's document written again"),
            None if self.cluster.tokens.insert(by.life, token).is_some() => {
                self.hit("joined again with a new token");
            }
            None => self.hit("node joined"),
        }
    }

    fn renewed(&mut self, now: TrueNow, by: By, token: &Bytes) {
        let Some(node) = self.cluster.nodes.get_mut(token) else {
            return self.report("F6", format!("node {token:?} was renewed and never joined"));
        };
        if node.gone_at.is_some() {
            return self.report("F6", format!("node {token:?} was renewed after it was buried"));
        }
        (node.renewal_sent, node.renewed) = (by.sent_at, now.steady);
        self.hit("lease renewed");
    }

    fn left_cluster(&mut self, now: TrueNow, by: By, token: &Bytes) {
        let Some(node) = self.cluster.nodes.get_mut(token) else { return };
        node.gone_at = Some(now.steady);
        let node = *node;
        if node.life == by.life && !self.cluster.breakers.contains(&by.life) {
            return self.hit("node departed");
        }
        self.hit("node buried");
        // Whoever renews has asked for the time half a lease ago at most.
        let least = node.renewal_sent.after(self.options.lease / 2);
        if now.steady < least && !self.cluster.breakers.contains(&by.life) {
            let detail = format!("node {token:?} was buried at {:?}, its lease lasted", now.steady);
            self.report("L3", detail);
        }
    }

    /// A seat was granted: not from a node that others believe alive.
    pub(super) fn check_taken(&mut self, by: By, seize: &Seize, model: &SeatModel) {
        if !self.options.is_cluster() || model.fence.is_none() || seize.node.is_empty() {
            return;
        }
        let before = self.cluster.nodes.get(&model.node).copied();
        let dead = self.is_dead(model.owner);
        match before {
            // Whoever took it back had lost what it knew of it.
            _ if model.node == seize.node => {}
            Some(_) if model.clean => {
                self.hit(if dead { "seat taken after a departure" } else { "seat moved by plan" });
            }
            Some(node) if node.gone_at.is_some() => {
                self.hit("seat taken from a buried node");
            }
            // It joined, was buried, and joined again under the same name by a call of before: nobody could know.
            Some(node) if node.since > model.granted_at => {}
            Some(node) => {
                let detail = format!(
                    "seat {} was taken by life {} from life {}, whose lease lasts",
                    seize.seat, by.life, node.life
                );
                self.report("S2", detail);
            }
            None => {}
        }
    }

    /// L3: whatever a node starts or sends, it has a lease in its own eyes. It counts from before its last renewal took
    /// effect, so that this is the most it may believe.
    pub(super) fn check_leased(&mut self, what: &str, life: u32, seat: Seat, sent_at: Steady) {
        if !self.options.is_cluster() {
            return;
        }
        let Some(node) = self.cluster.tokens.get(&life).and_then(|token| self.cluster.nodes.get(token))
        else {
            return self.report("L3", format!("seat {seat}: life {life} {what} and never joined"));
        };
        let until = node.renewed.after(self.options.lease);
        if sent_at >= until {
            let detail =
                format!("seat {seat}: life {life} {what} at {sent_at:?}, its lease ended at {until:?}");
            self.report("L3", detail);
        }
    }

    /// S1: every seat has an owner, or had one not long ago.
    pub(crate) fn look_for_orphans(&mut self, now: TrueNow, within: Duration) {
        let mut orphans = Vec::new();
        for (seat, model) in &self.seats {
            let node = self.cluster.nodes.get(&model.node);
            let lived = self.lives.get(&model.owner).copied().unwrap_or_default();
            let gone_at = node.and_then(|node| node.gone_at);
            let owned = node.is_some() && gone_at.is_none() && !lived.dead && !model.clean;
            let since = [model.changed_at, lived.died_at, gone_at.unwrap_or_default()];
            let since = since.into_iter().fold(self.cluster.disturbed_at, Steady::max);
            if !owned && now.steady.since(since) > within {
                orphans.push(format!("seat {seat} has had no owner since {since:?}: {now:?}"));
            }
        }
        self.strand(&orphans);
    }
}
