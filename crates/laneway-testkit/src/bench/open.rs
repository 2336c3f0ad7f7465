//! The open store of one test, and numbers that are never used twice in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use laneway_core::{
    Capabilities, Clock, CommitId, Documents, Incarnation, ManualClock, Nonce, Store, Timestamp, TokenId,
    Wakeups,
};
use parking_lot::Mutex;

use crate::fixture::{Fixture, TestStore};

/// Where the numbers of another store of the same test begin.
const ANOTHER: u64 = 1 << 32;

/// An open store under test.
pub struct Bench {
    fixture: Arc<dyn Fixture>,
    opened: Mutex<Option<TestStore>>,
    numbers: AtomicU64,
}

impl Bench {
    /// Opens a new, empty store.
    pub async fn open(fixture: Arc<dyn Fixture>) -> Self {
        let opened = fixture.open().await;
        Self { fixture, opened: Mutex::new(Some(opened)), numbers: AtomicU64::new(1) }
    }

    /// Another new, empty store from the same fixture, for what goes from one store to another. Names and numbers
    /// made there are not made here.
    pub async fn another(&self) -> Self {
        let other = Self::open(Arc::clone(&self.fixture)).await;
        other.numbers.store(ANOTHER, Ordering::Relaxed);
        if other.clock_moves() {
            // Time passes for the other store until both have the same; a jump would have to settle first.
            other.advance(Duration::from_micros(self.now().0.saturating_sub(other.now().0)));
            other.jump_to(self.now());
        }
        other
    }

    fn opened(&self) -> TestStore {
        self.opened.lock().clone().expect("the store is open except inside reopen")
    }

    /// The store.
    pub fn store(&self) -> Arc<dyn Store> {
        self.opened().store
    }

    /// Its documents.
    pub fn documents(&self) -> Arc<dyn Documents> {
        self.opened().documents
    }

    /// Its wake-ups.
    pub fn wakeups(&self) -> Arc<dyn Wakeups> {
        self.opened().wakeups
    }

    /// Puts another store in front of this one, such as a wrapper that injects faults.
    pub fn wrap_store(&self, wrap: impl FnOnce(Arc<dyn Store>) -> Arc<dyn Store>) {
        let mut opened = self.opened.lock();
        let found = opened.as_mut().expect("the store is open except inside reopen");
        found.store = wrap(found.store.clone());
    }

    /// Closes the store and opens it again.
    pub async fn reopen(&self) {
        let opened = self.opened.lock().take().expect("the store is open except inside reopen");
        let again = self.fixture.reopen(opened).await;
        *self.opened.lock() = Some(again);
    }

    /// Closes the store, boots the machine, and opens the store again. The wall clock does not move.
    pub async fn reboot(&self) {
        let opened = self.opened.lock().take().expect("the store is open except inside reopen");
        self.fixture.clock_moves().then(|| opened.clock.reboot());
        let again = self.fixture.reopen(opened).await;
        *self.opened.lock() = Some(again);
    }

    /// The same content under another incarnation.
    pub async fn restore(&self) {
        let opened = self.opened.lock().take().expect("the store is open except inside reopen");
        let again = self.fixture.restored(opened).await;
        *self.opened.lock() = Some(again);
    }

    /// What the store says of itself.
    pub fn capabilities(&self) -> Capabilities {
        self.store().about().capabilities
    }

    /// The incarnation that the connection has learned.
    pub fn incarnation(&self) -> Incarnation {
        self.store().about().incarnation
    }

    /// Whether tests can move the store's time. Cases that must move it end early where they cannot.
    pub fn clock_moves(&self) -> bool {
        self.fixture.clock_moves()
    }

    fn clock(&self) -> ManualClock {
        assert!(self.clock_moves(), "a case that uses the clock must ask clock_moves first");
        self.opened().clock
    }

    /// The store's calendar time.
    pub fn now(&self) -> Timestamp {
        self.clock().calendar()
    }

    /// Lets time pass.
    pub fn advance(&self, by: Duration) {
        self.clock().advance(by);
    }

    /// Sets the wall clock, as a time server would; steady time does not move.
    pub fn jump_to(&self, calendar: Timestamp) {
        self.clock().jump_to(calendar);
    }

    /// A number that this test has not used yet.
    pub fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// A nonce that this test has not used yet.
    pub fn nonce(&self) -> Nonce {
        Nonce((0xA11CE << 64) | u128::from(self.number()))
    }

    /// A commit id that this test has not used yet.
    pub fn commit_id(&self) -> CommitId {
        CommitId((0xC033 << 64) | u128::from(self.number()))
    }

    /// A request token that this test has not used yet.
    pub fn token(&self) -> TokenId {
        TokenId((0x70CE << 64) | u128::from(self.number()))
    }
}
