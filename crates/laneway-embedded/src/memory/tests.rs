//! Corners of the rules that lie between two transitions, on the memory store.

use std::sync::Arc;
use std::time::Duration;

use futures::executor::block_on;
use laneway_core::event::Dedup;
use laneway_core::store::{Append, Commit, Define, Promote, Receipt, Seize, Trim};
use laneway_core::{
    Bytes, CommitId, Delay, DelayMode, Draft, EventId, Fence, Incarnation, Key, Kind, ManualClock, Nonce,
    Partition, Seat, Shard, StartAfter, StartAt, Store, StoreError, StreamSettings,
};

use super::MemoryStore;

const MINUTE: Duration = Duration::from_secs(60);

struct Place {
    clock: ManualClock,
    store: MemoryStore,
    seat: Seat,
}

fn place() -> Place {
    let clock = ManualClock::default();
    let store = MemoryStore::with_incarnation(Arc::new(clock.clone()), Incarnation(1));
    let settings = StreamSettings { partitions: 1, ..StreamSettings::default() };
    let define = Define::Stream { name: "orders".to_owned(), expect: None, settings };
    let stream = block_on(store.define(define)).unwrap().stream.unwrap().id;
    let (name, settings) = ("mailer".to_owned(), Bytes::new());
    let define = Define::Processor { stream, name, start: StartAt::Beginning, settings };
    let processor = block_on(store.define(define)).unwrap().stream.unwrap().processors[0].id;
    let shard = Shard { stream, partition: Partition(0) };
    Place { clock, store, seat: Seat { shard, processor } }
}

impl Place {
    fn append(&self, draft: Draft) -> Result<Receipt, StoreError> {
        let append = Append {
            shard: self.seat.shard,
            incarnation: self.store.about().incarnation,
            layout: 1,
            origin: None,
            drafts: vec![draft],
            object: None,
        };
        block_on(self.store.append(append)).map(|appended| appended.receipts[0].clone())
    }

    fn seize(&self) -> Fence {
        let incarnation = self.store.about().incarnation;
        let seize = Seize { seat: self.seat, incarnation, expect: None, nonce: Nonce(7), node: Bytes::new() };
        block_on(self.store.seize(seize)).unwrap().progress.fence
    }

    fn pass(&self, fence: Fence, ids: &[u64]) -> Result<EventId, StoreError> {
        let mut commit = Commit::new(self.seat, fence, CommitId(u128::from(fence.version) + 1));
        commit.passed = ids.iter().copied().map(EventId).collect();
        block_on(self.store.commit(commit)).map(|committed| committed.floor)
    }
}

fn draft() -> Draft {
    Draft::new(Some(Key::new("a").unwrap()), Kind::default(), "data")
}

#[test]
fn a_dedup_id_is_kept_for_its_window_after_a_late_promotion() {
    let place = place();
    let mut delayed = draft();
    delayed.delay = Some(Delay { until: StartAfter::Delay(MINUTE), mode: DelayMode::Join });
    delayed.dedup = Some(Dedup { id: Bytes::from("once"), body: 1, window: MINUTE });
    let shard = place.seat.shard;
    let is_duplicate = || matches!(place.append(delayed.clone()), Ok(Receipt::Duplicate { .. }));
    assert!(!is_duplicate());
    // Due and window are long over, but nobody promoted.
    place.clock.advance(10 * MINUTE);
    block_on(place.store.trim(Trim { shard })).unwrap();
    assert!(is_duplicate());
    assert_eq!(block_on(place.store.promote(Promote { shard, limit: 10 })).unwrap().moved, 1);
    place.clock.advance(MINUTE);
    block_on(place.store.trim(Trim { shard })).unwrap();
    assert!(is_duplicate());
    place.clock.advance(MINUTE);
    assert!(!is_duplicate());
}

#[test]
fn a_rolled_back_store_accepts_no_commit_before_it_is_adopted() {
    let mut place = place();
    place.append(draft()).unwrap();
    let fence = place.seize();
    place.store = place.store.restored(Incarnation(2));
    assert!(matches!(place.pass(fence, &[1]), Err(StoreError::Fenced { .. })));
}

#[test]
fn an_open_event_before_the_jump_does_not_hold_up_those_after_it() {
    let mut place = place();
    place.append(draft()).unwrap();
    place.store = place.store.restored(Incarnation(2));
    assert!(matches!(place.append(draft()), Err(StoreError::Adopt { .. })));
    let adopt = Define::Adopt { shard: place.seat.shard, stored: Incarnation(1) };
    block_on(place.store.define(adopt)).unwrap();
    let Receipt::New { id: EventId(after), .. } = place.append(draft()).unwrap() else { panic!("it is new") };
    let fence = place.seize();
    assert_eq!(place.pass(fence, &[after]).unwrap(), EventId(0));
    let fence = Fence { version: fence.version + 1, ..fence };
    assert_eq!(place.pass(fence, &[1]).unwrap(), EventId(after));
}
