//! A checkpoint on a full disk: it writes nothing into the log, so it asks for no room there.

use std::sync::Arc;

use futures::executor::block_on;
use laneway_core::Documents;

use super::harness::{append, events, open, open_with, options, stream};
use crate::file::disk::simulated::SimulatedDisk;

#[test]
fn checkpoint_needs_no_room_in_a_log_that_is_used_up() {
    let disk = SimulatedDisk::new();
    let store = open(&disk);
    let stream = stream(&store, "first");
    append(&store, &stream, 20, 100).unwrap();
    for name in ["a", "b", "c"] {
        block_on(store.put(name, None, vec![1; 100].into())).unwrap();
    }
    // The index may grow a little, but no segment can be prepared, and the current one is a file that grows.
    disk.set_capacity(Some(disk.used() + (512 << 10)));
    while store.shared().log.upkeep() {}
    assert!(store.shared().log.spares().full && store.shared().log.spares().ready == 0);
    append(&store, &stream, 1, 100).expect_err("nothing is applied that may not fit");
    let first = store.checkpoint();
    disk.set_capacity(None);
    store.shared().log.poke_spares();
    while store.shared().log.upkeep() {}
    block_on(store.put("d", None, vec![1; 100].into())).unwrap();
    append(&store, &stream, 5, 100).unwrap();
    store.checkpoint().unwrap();
    store.close().unwrap();
    let store = open_with(Arc::new(disk), options());
    assert_eq!(events(&store, &stream).len(), 25);
    let documents = block_on(store.list("")).unwrap();
    assert_eq!(documents.iter().map(|document| &document.name[..]).collect::<Vec<_>>(), ["a", "b", "c", "d"]);
    first.expect("a checkpoint writes nothing into the log");
}
