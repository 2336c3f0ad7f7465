//! The conformance suite on the memory store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use laneway_core::{Incarnation, ManualClock};
use laneway_embedded::MemoryStore;
use laneway_testkit::{Fixture, TestStore};

/// Opens memory stores. Incarnations are counted, so that a test sees the same ones every time.
#[derive(Default)]
pub(crate) struct MemoryFixture {
    incarnations: AtomicU64,
}

impl MemoryFixture {
    fn next_incarnation(&self) -> Incarnation {
        Incarnation(1 + u128::from(self.incarnations.fetch_add(1, Ordering::Relaxed)))
    }

    fn empty(&self, clock: ManualClock) -> TestStore {
        let store = MemoryStore::with_incarnation(Arc::new(clock.clone()), self.next_incarnation());
        TestStore::of(Arc::new(store), clock)
    }
}

#[async_trait]
impl Fixture for MemoryFixture {
    async fn open(&self) -> TestStore {
        self.empty(ManualClock::default())
    }

    async fn reopen(&self, opened: TestStore) -> TestStore {
        self.empty(opened.clock)
    }

    async fn restored(&self, opened: TestStore) -> TestStore {
        let store = opened.extra::<MemoryStore>().expect("this fixture opened it");
        let restored = store.restored(self.next_incarnation());
        TestStore::of(Arc::new(restored), opened.clock)
    }
}

mod conformance {
    laneway_testkit::conformance!(super::MemoryFixture::default());
}

mod planted {
    laneway_testkit::planted!(super::MemoryFixture::default());
}

mod planted_known {
    laneway_testkit::planted!(super::MemoryFixture::default(), known);
}
