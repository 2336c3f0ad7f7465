//! Calls that change nothing: they are answered without a group, as long as all they saw is durable.

use futures::executor::block_on;
use laneway_core::Store;
use laneway_core::store::Trim;

use super::harness::{append, open, shard, stream};
use crate::file::FileStore;
use crate::file::disk::simulated::SimulatedDisk;
use crate::file::group::Cost;
use crate::file::log::Space;

fn groups(store: &FileStore) -> u64 {
    store.shared().state.read().groups
}

#[test]
fn trim_that_finds_nothing_writes_nothing() {
    let store = open(&SimulatedDisk::default());
    let stream = stream(&store, "first");
    append(&store, &stream, 1, 10).unwrap();
    let before = groups(&store);
    let trimmed = block_on(store.trim(Trim { shard: shard(&stream) })).unwrap();
    assert_eq!((trimmed.events, trimmed.rows), (0, 0));
    assert_eq!(groups(&store), before, "the write thread was woken for nothing");
}

#[test]
fn call_that_needs_a_sync_gets_one_although_it_changes_nothing() {
    let store = open(&SimulatedDisk::default());
    let before = groups(&store);
    let cost = Cost { space: Space::Reserve, bytes: 0, first: false, synced: true, may_wait: false };
    block_on(store.shared().call(cost, |_, _| Ok(()))).unwrap();
    assert_eq!(groups(&store), before + 1);
}

#[test]
fn call_that_changes_nothing_waits_for_the_group_that_it_saw() {
    let store = open(&SimulatedDisk::default());
    let shared = store.shared();
    let cost = Cost { space: Space::Reserve, bytes: 0, first: false, synced: false, may_wait: false };
    let (first, second) = block_on(async {
        let synced = Cost { synced: true, ..cost };
        futures::join!(shared.call(synced, |_, _| Ok(())), shared.call(cost, |state, _| Ok(state.groups)))
    });
    first.unwrap();
    let second = second.unwrap();
    assert!(shared.durable.borrow().groups >= second, "it was answered before all it saw was durable");
}
