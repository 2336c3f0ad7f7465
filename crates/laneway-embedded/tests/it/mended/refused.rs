//! A refusal shows what it was judged on, so it counts only when that is durable.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::channel;

use futures::FutureExt;
use futures::executor::block_on;
use laneway_core::{Documents, ManualClock, StoreError};
use laneway_embedded::file::disk::simulated::{Call, SimulatedDisk, WatchedDisk};
use parking_lot::Mutex;

use super::harness::{SMALLEST, open};

#[test]
fn refusal_judged_on_a_group_that_was_never_written_is_not_answered() {
    let inner = SimulatedDisk::new();
    let disk = WatchedDisk::new(inner.clone());
    let store = open(Arc::new(disk.clone()), SMALLEST, &ManualClock::default());
    block_on(store.put("before", None, vec![1].into())).unwrap();
    let ((tell, syncing), (go, held)) = (channel(), channel());
    let gate = Mutex::new(Some((tell, held)));
    disk.watch(move |call, path| {
        let in_log = path.parent().is_some_and(|parent| parent.ends_with("log"));
        let gate = if in_log && call == Call::Write { gate.lock().take() } else { None };
        let Some((tell, held)) = gate else { return Ok(()) };
        tell.send(()).unwrap();
        held.recv().unwrap();
        Err(io::Error::other("planted: the disk is broken"))
    });
    let mut first = store.put("name", None, vec![1].into());
    assert!(first.as_mut().now_or_never().is_none());
    syncing.recv().unwrap();
    let mut second = store.put("name", None, vec![2].into());
    assert!(second.as_mut().now_or_never().is_none(), "what it is refused for is not durable yet");
    go.send(()).unwrap();
    let (first, second) = block_on(futures::future::join(first, second));
    assert!(matches!(first, Err(StoreError::Unknown { .. })), "{first:?}");
    assert!(matches!(second, Err(StoreError::Down { .. })), "there may be no such document: {second:?}");
    drop(store);
    disk.watch(|_, _| Ok(()));
    let store = open(Arc::new(inner), SMALLEST, &ManualClock::default());
    assert!(block_on(store.get("name")).unwrap().is_none(), "the frame was never written");
    assert!(block_on(store.get("before")).unwrap().is_some());
}
