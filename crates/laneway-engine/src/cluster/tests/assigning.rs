//! Who should own what, case by case and by random histories of nodes that come and go.

use std::collections::{BTreeMap, BTreeSet};

use laneway_core::{Partition, ProcessorId};
use proptest::prelude::*;

use crate::cluster::assign::{Candidate, Candidates, assign};
use crate::cluster::documents::{NodeToken, Plan};

const P1: ProcessorId = ProcessorId(1);

fn node(weight: u32, processors: &[u32]) -> Candidate {
    let runs = processors.iter().copied().map(ProcessorId).collect();
    Candidate { weight, standby: false, settled: true, runs, asked: BTreeSet::new() }
}

fn nodes(count: u128, processors: &[u32]) -> Candidates {
    (1..=count).map(|token| (NodeToken(token), node(1, processors))).collect()
}

fn one(partitions: u32) -> BTreeMap<ProcessorId, u32> {
    BTreeMap::from([(P1, partitions)])
}

fn held(plan: &Plan, token: u128) -> usize {
    plan.0.values().flatten().filter(|node| **node == Some(NodeToken(token))).count()
}

fn moved(before: &Plan, after: &Plan) -> usize {
    let seats = before.0.iter().flat_map(|(processor, seats)| {
        (0..).map(Partition).zip(seats).map(move |(partition, node)| (*processor, partition, *node))
    });
    seats.filter(|(processor, partition, node)| after.node_of(*processor, *partition) != *node).count()
}

#[test]
fn a_fourth_node_takes_its_share_and_nothing_else_moves() {
    let three = assign(&one(16), &nodes(3, &[1]), &Plan::default());
    assert_eq!([held(&three, 1), held(&three, 2), held(&three, 3)], [6, 5, 5]);
    let four = assign(&one(16), &nodes(4, &[1]), &three);
    assert_eq!([held(&four, 1), held(&four, 2), held(&four, 3), held(&four, 4)], [4, 4, 4, 4]);
    assert_eq!(moved(&three, &four), 4);
}

#[test]
fn orphans_go_to_whoever_is_left_and_nothing_else_moves() {
    let before = assign(&one(16), &nodes(4, &[1]), &Plan::default());
    let mut left = nodes(4, &[1]);
    left.remove(&NodeToken(1));
    let after = assign(&one(16), &left, &before);
    assert_eq!(moved(&before, &after), 4);
    left.retain(|token, _| *token == NodeToken(3));
    assert_eq!(held(&assign(&one(16), &left, &after), 3), 16, "also beyond any share");
}

#[test]
fn weight_decides_how_much() {
    let mut candidates = nodes(2, &[1]);
    candidates.insert(NodeToken(3), node(2, &[1]));
    let plan = assign(&one(16), &candidates, &Plan::default());
    assert_eq!([held(&plan, 1), held(&plan, 2), held(&plan, 3)], [4, 4, 8]);
}

#[test]
fn a_standby_owns_something_only_when_nobody_else_can() {
    let mut candidates = nodes(2, &[1]);
    candidates.get_mut(&NodeToken(2)).unwrap().standby = true;
    let plan = assign(&one(4), &candidates, &Plan::default());
    assert_eq!([held(&plan, 1), held(&plan, 2)], [4, 0]);
    candidates.remove(&NodeToken(1));
    assert_eq!(held(&assign(&one(4), &candidates, &plan), 2), 4);
}

#[test]
fn who_has_just_come_takes_orphans_only_when_nobody_else_can() {
    let mut candidates = nodes(2, &[1]);
    candidates.get_mut(&NodeToken(2)).unwrap().settled = false;
    let plan = assign(&one(4), &candidates, &Plan::default());
    assert_eq!([held(&plan, 1), held(&plan, 2)], [4, 0]);
    candidates.remove(&NodeToken(1));
    assert_eq!(held(&assign(&one(4), &candidates, &plan), 2), 4);
}

#[test]
fn events_of_workers_are_where_workers_ask() {
    let mut candidates = nodes(3, &[1]);
    let spread = assign(&one(6), &candidates, &Plan::default());
    assert_eq!([held(&spread, 1), held(&spread, 2), held(&spread, 3)], [2, 2, 2]);
    candidates.get_mut(&NodeToken(2)).unwrap().asked.insert(P1);
    assert_eq!(held(&assign(&one(6), &candidates, &spread), 2), 6);
}

#[test]
fn many_small_processors_are_even_over_all_nodes() {
    let processors: BTreeMap<_, _> = (1..=12).map(|id| (ProcessorId(id), 1)).collect();
    let all: Vec<u32> = (1..=12).collect();
    let three = assign(&processors, &nodes(3, &all), &Plan::default());
    assert_eq!([held(&three, 1), held(&three, 2), held(&three, 3)], [4, 4, 4]);
    let four = assign(&processors, &nodes(4, &all), &three);
    assert_eq!([held(&four, 1), held(&four, 2), held(&four, 3), held(&four, 4)], [3, 3, 3, 3]);
    assert_eq!(moved(&three, &four), 3);
}

#[test]
fn what_nobody_can_run_has_nobody() {
    let plan = assign(&one(2), &nodes(2, &[2]), &Plan::default());
    assert_eq!(plan.0[&P1], [None, None]);
    assert_eq!(assign(&one(2), &Candidates::new(), &Plan::default()).0[&P1], [None, None]);
}

fn candidates() -> impl Strategy<Value = Candidates> {
    let candidate = (1..4_u32, any::<bool>(), prop::collection::btree_set(1..4_u32, 0..4)).prop_map(
        |(weight, settled, runs)| Candidate {
            weight,
            standby: false,
            settled,
            runs: runs.into_iter().map(ProcessorId).collect(),
            asked: BTreeSet::new(),
        },
    );
    prop::collection::btree_map((1..9_u128).prop_map(NodeToken), candidate, 0..8)
}

fn processors() -> impl Strategy<Value = BTreeMap<ProcessorId, u32>> {
    prop::collection::btree_map((1..4_u32).prop_map(ProcessorId), 1..40_u32, 1..4)
}

/// The nodes among which a processor is spread, when none is a standby and nobody asks.
fn among(candidates: &Candidates, processor: ProcessorId) -> BTreeMap<NodeToken, u64> {
    let able = || candidates.iter().filter(|(_, node)| node.runs.contains(&processor));
    let any_settled = able().any(|(_, node)| node.settled);
    able()
        .filter(|(_, node)| node.settled || !any_settled)
        .map(|(token, node)| (*token, u64::from(node.weight)))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_seat_has_one_able_owner_and_shares_are_even(
        processors in processors(), rounds in prop::collection::vec(candidates(), 1..6)
    ) {
        let mut plan = Plan::default();
        for candidates in &rounds {
            let next = assign(&processors, candidates, &plan);
            for (processor, partitions) in &processors {
                let among = among(candidates, *processor);
                let seats = &next.0[processor];
                prop_assert_eq!(seats.len(), *partitions as usize);
                prop_assert_eq!(seats.iter().all(Option::is_none), among.is_empty());
                let weights: u64 = among.values().sum();
                for (node, weight) in &among {
                    let has = seats.iter().filter(|seat| **seat == Some(*node)).count() as u64;
                    let least = u64::from(*partitions) * weight / weights;
                    prop_assert!((least..=least + 1).contains(&has), "{node} has {has}, its share is {least}");
                }
                prop_assert!(seats.iter().flatten().all(|node| among.contains_key(node)));
            }
            prop_assert_eq!(&assign(&processors, candidates, &next), &next, "it is stable");
            plan = next;
        }
    }

    #[test]
    fn one_more_or_one_less_moves_no_more_than_needed(
        partitions in 1..200_u32, count in 1..9_u128, joins in any::<bool>()
    ) {
        let few = nodes(count, &[1]);
        let many = nodes(count + 1, &[1]);
        let (from, to) = if joins { (few, many) } else { (many, few) };
        let before = assign(&one(partitions), &from, &Plan::default());
        let after = assign(&one(partitions), &to, &before);
        let changed = count + 1;
        let needed = if joins { held(&after, changed) } else { held(&before, changed) };
        prop_assert_eq!(moved(&before, &after), needed);
    }
}
