//! A panic in a rule: half a call is in memory, and must never be anywhere else.

use std::sync::Arc;

use futures::executor::block_on;
use laneway_core::{Documents, EventId, StoreError};

use super::harness::{append, events, open, open_with, options, shard, stream};
use crate::file::cost;
use crate::file::disk::simulated::SimulatedDisk;
use crate::file::state::{Fetched, FileState};
use crate::machine::{State, Table, View};

#[test]
fn panic_in_a_rule_fails_its_call_and_leaves_nothing_of_it() {
    let disk = SimulatedDisk::new();
    let store = open(&disk);
    let stream = stream(&store, "first");
    append(&store, &stream, 3, 10).unwrap();
    block_on(store.put("kept", None, vec![1].into())).unwrap();
    let before = events(&store, &stream);
    let half = |state: &mut FileState, _| -> laneway_core::Result<()> {
        state.put(Table::Store, b"half", b"applied");
        panic!("planted: this rule panics after its first change");
    };
    let failed = block_on(store.shared().call(cost::settling(64), half));
    assert!(matches!(&failed, Err(StoreError::Down { reason }) if reason.contains("panicked")), "{failed:?}");
    let later = append(&store, &stream, 1, 10);
    assert!(matches!(&later, Err(StoreError::Down { .. })), "no call joins what is half applied: {later:?}");
    // Closing waits for the thread that puts the state back.
    store.clone().close().unwrap();
    assert_eq!(events(&store, &stream), before, "what is durable stays readable");
    assert_eq!(store.shared().state.read().get(Table::Store, b"half").unwrap(), None);
    drop(store);
    let store = open_with(Arc::new(disk), options());
    assert_eq!(events(&store, &stream), before);
    assert_eq!(store.shared().state.read().get(Table::Store, b"half").unwrap(), None);
    assert!(block_on(store.get("kept")).unwrap().is_some());
    append(&store, &stream, 1, 10).unwrap();
}

#[test]
fn rule_that_changes_something_before_it_has_read_all_stops_the_store() {
    let disk = SimulatedDisk::new();
    let store = open(&disk);
    let stream = stream(&store, "first");
    append(&store, &stream, 3, 10).unwrap();
    // The first event is in no cache any more.
    append(&store, &stream, 10, 100_000).unwrap();
    let early = |state: &mut FileState, _| {
        state.put(Table::Store, b"half", b"applied");
        state.event(shard(&stream), EventId(1))
    };
    let failed = block_on(store.shared().call_with(cost::settling(64), Fetched::default(), early));
    assert!(matches!(&failed, Err(StoreError::Down { reason }) if reason.contains("panicked")), "{failed:?}");
    let later = append(&store, &stream, 1, 10);
    assert!(matches!(&later, Err(StoreError::Down { .. })), "no call joins what is half applied: {later:?}");
    store.close().unwrap();
    let store = open_with(Arc::new(disk), options());
    assert_eq!(store.shared().state.read().get(Table::Store, b"half").unwrap(), None);
    assert_eq!(events(&store, &stream).len(), 13);
}
