//! Who should own what: a pure function of the nodes, the processors and the plan before.
//!
//! Invariants: a processor that some node can run has a node for every partition; a processor's partitions are even over
//! its candidates to within one by weight, and so are all seats over nodes that can run the same; what need not move
//! stays; the same arguments give the same plan, and a plan that was made from itself is itself.

use std::collections::{BTreeMap, BTreeSet};

use laneway_core::{Partition, ProcessorId};

use super::documents::{NodeToken, Plan};

/// A living node that stays, as far as assignment is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) weight: u32,
    /// Owns something only where no other node can.
    pub(super) standby: bool,
    /// It joined long enough ago to take something from others.
    pub(super) settled: bool,
    pub(super) runs: BTreeSet<ProcessorId>,
    /// What remote workers asked it for lately.
    pub(super) asked: BTreeSet<ProcessorId>,
}

pub(super) type Candidates = BTreeMap<NodeToken, Candidate>;

/// Assigns every partition of every processor.
pub(super) fn assign(processors: &BTreeMap<ProcessorId, u32>, nodes: &Candidates, before: &Plan) -> Plan {
    let mut totals: BTreeMap<NodeToken, u64> = nodes.keys().map(|node| (*node, 0)).collect();
    let mut shares = Vec::new();
    for (processor, partitions) in processors {
        let able = able(nodes, *processor);
        let seats: Vec<Option<NodeToken>> = (0..*partitions)
            .map(|partition| {
                let kept = before.node_of(*processor, Partition(partition));
                kept.filter(|node| able.contains_key(node))
            })
            .collect();
        let share = Share::of(*processor, seats, able, &mut totals);
        shares.push(share);
    }
    even_out(&mut shares, &mut totals, nodes);
    Plan(shares.into_iter().map(|share| (share.processor, share.seats)).collect())
}

/// The nodes that may own a processor's seats, with their weights.
fn able(nodes: &Candidates, processor: ProcessorId) -> BTreeMap<NodeToken, u64> {
    let mut able: Vec<(&NodeToken, &Candidate)> =
        nodes.iter().filter(|(_, node)| node.runs.contains(&processor)).collect();
    // Each narrows the choice only if somebody is left: a seat always has a taker as long as one can run it.
    let narrower: [fn(&Candidate, ProcessorId) -> bool; 3] =
        [|node, _| !node.standby, |node, _| node.settled, |node, processor| node.asked.contains(&processor)];
    for fits in narrower {
        if able.iter().any(|(_, node)| fits(node, processor)) {
            able.retain(|(_, node)| fits(node, processor));
        }
    }
    able.into_iter().map(|(token, node)| (*token, u64::from(node.weight.max(1)))).collect()
}

/// The seats of one processor.
struct Share {
    processor: ProcessorId,
    seats: Vec<Option<NodeToken>>,
    able: BTreeMap<NodeToken, u64>,
    /// What each node has at least: its part by weight, rounded down.
    least: BTreeMap<NodeToken, u64>,
}

impl Share {
    fn of(
        processor: ProcessorId,
        seats: Vec<Option<NodeToken>>,
        able: BTreeMap<NodeToken, u64>,
        totals: &mut BTreeMap<NodeToken, u64>,
    ) -> Self {
        let weights: u64 = able.values().sum();
        let all = seats.len() as u64;
        let least = able.iter().map(|(node, weight)| (*node, all * weight / weights)).collect();
        let mut share = Self { processor, seats, able, least };
        if !share.able.is_empty() {
            share.fill(totals);
        }
        for node in share.seats.iter().flatten() {
            *totals.entry(*node).or_default() += 1;
        }
        share
    }

    fn held(&self) -> BTreeMap<NodeToken, u64> {
        let mut held: BTreeMap<NodeToken, u64> = self.able.keys().map(|node| (*node, 0)).collect();
        for node in self.seats.iter().flatten() {
            *held.entry(*node).or_default() += 1;
        }
        held
    }

    /// Takes from those above their share, and gives to those below.
    fn fill(&mut self, totals: &BTreeMap<NodeToken, u64>) {
        let held = self.held();
        let mut quota = self.least.clone();
        let left = self.seats.len() as u64 - quota.values().sum::<u64>();
        // One more for those who have it already, so that it need not move; then for those with the least to do.
        let mut order: Vec<NodeToken> = self.able.keys().copied().collect();
        order.sort_by(|one, other| {
            let keeps = |node: &NodeToken| held[node] > self.least[node];
            let load = |node: &NodeToken, by: &NodeToken| (totals[node] + self.least[node]) * self.able[by];
            keeps(other).cmp(&keeps(one)).then(load(one, other).cmp(&load(other, one))).then(one.cmp(other))
        });
        for node in order.iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
            *quota.entry(*node).or_default() += 1;
        }
        for seat in &mut self.seats {
            let Some(node) = *seat else { continue };
            let room = quota.get_mut(&node).expect("whoever holds a seat is able");
            if *room == 0 {
                *seat = None;
            } else {
                *room -= 1;
            }
        }
        let mut takers = order.into_iter().flat_map(|node| {
            let room = usize::try_from(quota[&node]).unwrap_or(usize::MAX);
            std::iter::repeat_n(node, room)
        });
        for seat in self.seats.iter_mut().filter(|seat| seat.is_none()) {
            *seat = takers.next();
        }
    }
}

/// Moves what is left over of single processors to where less is to do, as long as that makes the whole more even: many
/// processors with few partitions would otherwise stay with the nodes that came first.
///
/// Comes to an end: every move makes the sum of squares of what nodes have, each by its weight, smaller.
fn even_out(shares: &mut [Share], totals: &mut BTreeMap<NodeToken, u64>, nodes: &Candidates) {
    let weight = |node: NodeToken| u64::from(nodes[&node].weight.max(1));
    while shares.iter_mut().any(|share| {
        let Some((from, to)) = share.lightened(totals, weight) else { return false };
        let seat = share.seats.iter_mut().rev().find(|seat| **seat == Some(from));
        *seat.expect("whoever has more than its least has one") = Some(to);
        *totals.entry(from).or_default() -= 1;
        *totals.entry(to).or_default() += 1;
        true
    }) {}
}

impl Share {
    /// Who could give one of its seats to whom, so that all is more even and this processor still is.
    fn lightened(
        &self,
        totals: &BTreeMap<NodeToken, u64>,
        weight: impl Fn(NodeToken) -> u64,
    ) -> Option<(NodeToken, NodeToken)> {
        let held = self.held();
        let has_more = |node: &NodeToken| held[node] > self.least[node];
        // Fractions of what a node has by its weight, compared by multiplying over.
        let heavier = |one: &NodeToken, other: &NodeToken| {
            (totals[one] * weight(*other)).cmp(&(totals[other] * weight(*one))).then(other.cmp(one))
        };
        let from = *held.keys().filter(|node| has_more(node)).max_by(|one, other| heavier(one, other))?;
        let to = *held.keys().filter(|node| !has_more(node)).min_by(|one, other| heavier(one, other))?;
        let is_better = (totals[&from] - 1) * weight(to) >= (totals[&to] + 1) * weight(from);
        is_better.then_some((from, to))
    }
}
