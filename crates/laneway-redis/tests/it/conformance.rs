//! The conformance suite, by a clock that tests move and by the server's own; and the same history of calls on the memory
//! store and here, every answer the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use laneway_core::{Incarnation, ManualClock};
use laneway_embedded::MemoryStore;
use laneway_redis::{RedisOptions, RedisStore};
use laneway_testkit::{Fixture, TestStore, differential};

use crate::server::SHARED;

/// Opens stores of their own on a server.
pub(crate) struct RedisFixture {
    url: String,
    clock_moves: bool,
    answer_within: Duration,
}

impl RedisFixture {
    /// On the shared server, by a clock that the test moves.
    pub(crate) fn moved() -> Self {
        Self::at(SHARED.url())
    }

    /// On this server, by a clock that the test moves.
    pub(crate) fn at(url: String) -> Self {
        Self { url, clock_moves: true, answer_within: Duration::from_secs(10) }
    }

    /// On this server, whose answers and connections are given up after this time.
    pub(crate) fn impatient(url: String, answer_within: Duration) -> Self {
        Self { answer_within, ..Self::at(url) }
    }

    /// On the shared server, by its own clock.
    fn of_server() -> Self {
        Self::of(SHARED.url())
    }

    /// On this server, by its own clock.
    pub(crate) fn of(url: String) -> Self {
        Self { clock_moves: false, ..Self::at(url) }
    }

    async fn open_with(&self, namespace: String, clock: ManualClock, life: Option<Incarnation>) -> TestStore {
        let options = RedisOptions {
            namespace: namespace.clone(),
            clock: if self.clock_moves { Some(Arc::new(clock.clone())) } else { None },
            incarnation: life,
            answer_within: self.answer_within,
            connect_within: self.answer_within,
            ..RedisOptions::new(self.url.clone())
        };
        let store = RedisStore::open(options).await.expect("the server is there");
        let mut opened = TestStore::of(Arc::new(store), clock);
        opened.extra = Some(Arc::new(Place { namespace, life }));
        opened
    }
}

/// Where a store lies, and the life it was given.
struct Place {
    namespace: String,
    life: Option<Incarnation>,
}

/// A number of its own for everything in this process that needs one.
pub(crate) fn next_number() -> u64 {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

#[async_trait]
impl Fixture for RedisFixture {
    async fn open(&self) -> TestStore {
        self.open_with(format!("test-{}", next_number()), ManualClock::default(), None).await
    }

    async fn reopen(&self, opened: TestStore) -> TestStore {
        let place = opened.extra::<Place>().expect("this fixture opened it");
        let clock = opened.clock.clone();
        drop(opened);
        self.open_with(place.namespace.clone(), clock, place.life).await
    }

    async fn restored(&self, opened: TestStore) -> TestStore {
        let place = opened.extra::<Place>().expect("this fixture opened it");
        let life = Some(Incarnation(u128::from(next_number())));
        self.open_with(place.namespace.clone(), opened.clock.clone(), life).await
    }

    fn clock_moves(&self) -> bool {
        self.clock_moves
    }
}

/// The oracle.
struct MemoryFixture;

impl MemoryFixture {
    fn bundle(store: MemoryStore, clock: ManualClock) -> TestStore {
        TestStore::of(Arc::new(store), clock)
    }
}

#[async_trait]
impl Fixture for MemoryFixture {
    async fn open(&self) -> TestStore {
        let clock = ManualClock::default();
        Self::bundle(MemoryStore::new(Arc::new(clock.clone())), clock)
    }

    async fn reopen(&self, _: TestStore) -> TestStore {
        self.open().await
    }

    async fn restored(&self, opened: TestStore) -> TestStore {
        let old = opened.extra::<MemoryStore>().expect("this fixture opened it");
        Self::bundle(old.restored(Incarnation(u128::from(next_number()))), opened.clock)
    }
}

mod moved {
    laneway_testkit::conformance!(super::RedisFixture::moved());
}

mod of_server {
    laneway_testkit::conformance!(super::RedisFixture::of_server());
}

mod planted {
    laneway_testkit::planted!(super::RedisFixture::moved(), known);
}

#[test]
fn redis_answers_as_memory_does() {
    for seed in [1, 114] {
        differential(Arc::new(MemoryFixture), Arc::new(RedisFixture::moved()), seed, 800);
    }
}
