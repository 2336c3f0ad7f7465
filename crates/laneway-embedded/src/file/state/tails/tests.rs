//! Tails beside a map that forgets nothing, over checkpoints, and with far less memory than there are lanes.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::Ordering;

use laneway_core::{EventId, Key, Partition, Seq, Shard, StreamId, Timestamp};
use proptest::prelude::*;

use super::lanes::Place;
use super::{ChangedLanes, Tails};
use crate::file::index::fixture::{meta, new_index};
use crate::file::index::{CheckpointWrite, Index, PackedChanges};
use crate::file::state::fetched::Directly;
use crate::machine::Tail;

const SHARDS: u8 = 2;

fn shard(number: u8) -> Shard {
    Shard { stream: StreamId(1), partition: Partition(u32::from(number % SHARDS)) }
}

/// Short keys and one that does not fit into the place of a short one.
fn key(number: u8) -> Key {
    let long = if number.is_multiple_of(7) { "-".repeat(50) } else { String::new() };
    Key::new(format!("key{long}-{number}")).unwrap()
}

fn tail(step: usize) -> Tail {
    let generation = step.is_multiple_of(3).then_some(step as u64);
    let (id, seq) = (EventId(step as u64 + 1), Seq(step as u64 * 1_000));
    Tail { id, seq, generation, incarnation: 1, deleted: step.is_multiple_of(5) }
}

/// Writes what was frozen, as a checkpoint does.
fn finish(tails: &mut Tails, frozen: &ChangedLanes, index: &Index) {
    let mut changes = PackedChanges::default();
    let mut shards: Vec<_> = frozen.iter().collect();
    shards.sort_unstable_by_key(|(shard, _)| **shard);
    for (_, places) in shards {
        let first = changes.len();
        tails.collect(places, &mut changes);
        changes.sort_from(first);
    }
    assert!(changes.iter().map(|(key, _)| key).is_sorted_by(|a, b| a < b), "each lane once, in order");
    index.write(&meta(), &CheckpointWrite { tails: changes, ..CheckpointWrite::default() }).unwrap();
    tails.rebase(index.snapshot().unwrap());
}

fn checkpoint(tails: &mut Tails, index: &Index) {
    let frozen = tails.freeze(Timestamp(0));
    finish(tails, &frozen, index);
}

/// Tails over an empty index.
fn new_tails(lanes_max: usize) -> (Tails, Index) {
    let (mut tails, index) = (Tails::new(lanes_max), new_index());
    index.write(&meta(), &CheckpointWrite::default()).unwrap();
    tails.attach(index.snapshot().unwrap()).unwrap();
    (tails, index)
}

fn listed(tails: &Tails, number: u8, after: Option<&Key>, limit: usize) -> Vec<(Key, Tail)> {
    tails.list(shard(number), after, limit, &Directly).unwrap()
}

proptest! {
    #[test]
    fn tails_are_those_of_a_map(
        lanes_max in 0usize..12,
        steps in proptest::collection::vec((0u8..10, 0u8..40), 1..300),
    ) {
        let (mut tails, index) = new_tails(lanes_max);
        let mut model = BTreeMap::<(Shard, Key), Tail>::new();
        // A checkpoint under way, and tails that were looked up and not yet kept.
        let (mut frozen, mut found) = (None, None);
        for (step, (action, number)) in steps.into_iter().enumerate() {
            let (shard, key) = (shard(number), key(number));
            match action {
                0..=3 => {
                    tails.set(shard, &key, Some(tail(step)));
                    model.insert((shard, key.clone()), tail(step));
                }
                4 => {
                    tails.set(shard, &key, None);
                    model.remove(&(shard, key.clone()));
                }
                5 => found = tails.missing(shard, [&key].into_iter()).map(|missing| missing.look_up().unwrap()),
                6 => found.take().into_iter().for_each(|found| tails.warm(found)),
                7 if frozen.is_none() => frozen = Some(tails.freeze(Timestamp(step as u64))),
                7 => finish(&mut tails, &frozen.take().unwrap(), &index),
                8 => {
                    let after = Some(&key).filter(|_| number.is_multiple_of(2));
                    let expected = model.iter().filter(|((in_shard, key), _)| {
                        *in_shard == shard && after.is_none_or(|after| key.bytes() > after.bytes())
                    });
                    let mut expected: Vec<_> = expected.map(|((_, key), tail)| (key.clone(), *tail)).collect();
                    expected.sort_by(|(a, _), (b, _)| a.bytes().cmp(b.bytes()));
                    expected.truncate(3);
                    prop_assert_eq!(listed(&tails, number, after, 3), expected);
                }
                _ => {}
            }
            let known = tails.get(shard, &key, &Directly).unwrap();
            prop_assert_eq!(known, model.get(&(shard, key)).copied());
        }
    }
}

#[test]
fn memory_holds_no_more_lanes_than_it_may_and_must() {
    const MAX: usize = 100;
    let (mut tails, index) = new_tails(MAX);
    assert!(tails.complete().load(Ordering::Relaxed));
    for interval in 0..40_u32 {
        for number in 0..50_u32 {
            let key = Key::new(format!("{}", interval * 50 + number)).unwrap();
            tails.set(shard(0), &key, Some(tail(1)));
        }
        assert!(tails.lanes.len() <= MAX + 50, "in interval {interval}: {}", tails.lanes.len());
        checkpoint(&mut tails, &index);
    }
    assert!(!tails.complete().load(Ordering::Relaxed), "some are in the index alone");
    assert_eq!(listed(&tails, 0, None, 3_000).len(), 2_000);
}

#[test]
fn memory_of_a_burst_is_given_back() {
    const MAX: usize = 4_096;
    let (mut tails, index) = new_tails(MAX);
    let key = |number: u32| Key::new(format!("{number}")).unwrap();
    let some =
        |tails: &mut Tails| (0..1_000).for_each(|number| tails.set(shard(0), &key(number), Some(tail(1))));
    (0..100_000).for_each(|number| tails.set(shard(0), &key(number), Some(tail(1))));
    assert_eq!(tails.lanes.len(), 100_000, "the index has none of them");
    checkpoint(&mut tails, &index);
    // Only lanes that are in memory change from here on.
    for _ in 0..200 {
        some(&mut tails);
        checkpoint(&mut tails, &index);
    }
    assert!(tails.lanes.len() <= MAX, "{}", tails.lanes.len());
    assert!(tails.lanes.blocks_len() <= 8, "{} blocks", tails.lanes.blocks_len());
}

#[test]
fn tails_that_were_looked_up_together_stay_until_they_are_needed() {
    let (mut tails, index) = new_tails(10);
    let keys: Vec<Key> = (0..1_000_u32).map(|number| Key::new(format!("{number}")).unwrap()).collect();
    keys.iter().for_each(|key| tails.set(shard(0), key, Some(tail(1))));
    checkpoint(&mut tails, &index);
    for number in (0..u8::MAX).cycle().take(2_000) {
        tails.set(shard(1), &key(number), Some(tail(2)));
    }
    let missing = tails.missing(shard(0), keys.iter()).expect("most are in the index alone");
    tails.warm(missing.look_up().unwrap());
    assert!(tails.missing(shard(0), keys.iter()).is_none());
}

#[test]
fn lanes_that_are_wanted_again_stay_in_memory() {
    let (mut tails, index) = new_tails(200);
    let often: Vec<Key> = (0..50_u32).map(|number| Key::new(format!("often-{number}")).unwrap()).collect();
    for interval in 0..40_u32 {
        often.iter().for_each(|key| tails.set(shard(0), key, Some(tail(1))));
        for number in 0..50_u32 {
            let once = Key::new(format!("once-{}", interval * 50 + number)).unwrap();
            tails.set(shard(0), &once, Some(tail(2)));
        }
        checkpoint(&mut tails, &index);
    }
    let missing = tails.missing(shard(0), often.iter()).map_or(0, |missing| missing.keys.len());
    assert_eq!(missing, 0, "of 50 lanes that change in every interval");
}

#[test]
fn many_lanes_are_found_by_their_own_keys() {
    let (mut tails, _index) = new_tails(1 << 20);
    let key = |number: u64| Key::new(number.to_be_bytes().to_vec()).unwrap();
    for number in 0..100_000_u64 {
        tails.set(shard(0), &key(number), Some(Tail { id: EventId(number), ..tail(0) }));
    }
    let found = |number| tails.get(shard(0), &key(number), &Directly).unwrap().map(|tail| tail.id);
    assert!((0..100_000).all(|number| found(number) == Some(EventId(number))));
    let places: HashSet<Place> =
        (0..100_000).filter_map(|number| tails.lanes.find(shard(0), key(number).bytes())).collect();
    assert_eq!(places.len(), 100_000);
}

#[test]
fn tail_read_below_a_checkpoint_does_not_replace_a_newer_one() {
    let (mut tails, index) = new_tails(0);
    let (lane, others) = (key(1), |number: u8| key(100 + number));
    tails.set(shard(1), &lane, Some(tail(1)));
    checkpoint(&mut tails, &index);
    (0..10).for_each(|number| tails.set(shard(1), &others(number), Some(tail(2))));
    let found = tails.missing(shard(1), [&lane].into_iter()).expect("it is not in memory").look_up().unwrap();
    tails.set(shard(1), &lane, Some(tail(3)));
    checkpoint(&mut tails, &index);
    (10..30).for_each(|number| tails.set(shard(1), &others(number), Some(tail(4))));
    assert!(tails.lanes.find(shard(1), lane.bytes()).is_none(), "it was forgotten again");
    tails.warm(found);
    assert_eq!(tails.get(shard(1), &lane, &Directly).unwrap(), Some(tail(3)));
}
