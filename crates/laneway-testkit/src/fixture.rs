//! What somebody who wrote a store supplies to have it tested.
//!
//! A fixture opens stores; it tests nothing itself.

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use laneway_core::{Documents, ManualClock, Store, Wakeups};

/// An open store with everything the suite needs of it. Clones share it.
#[derive(Clone)]
pub struct TestStore {
    /// The store under test.
    pub store: Arc<dyn Store>,
    /// Its documents.
    pub documents: Arc<dyn Documents>,
    /// Its wake-ups.
    pub wakeups: Arc<dyn Wakeups>,
    /// The clock the store was opened with. Where [`Fixture::clock_moves`] is false the suite never looks at it.
    pub clock: ManualClock,
    /// Whatever the fixture needs to close or restore this store: a folder, a connection, the concrete type.
    pub extra: Option<Arc<dyn Any + Send + Sync>>,
}

impl TestStore {
    /// A bundle around one value that implements all three seams.
    pub fn of<S: Store + Documents + Wakeups + 'static>(store: Arc<S>, clock: ManualClock) -> Self {
        Self {
            store: store.clone(),
            documents: store.clone(),
            wakeups: store.clone(),
            clock,
            extra: Some(store),
        }
    }

    /// The fixture's own part as the type that it put in.
    pub fn extra<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.extra.clone().and_then(|extra| extra.downcast().ok())
    }
}

/// Opens stores for the suite.
///
/// One fixture value serves one test; [`Fixture::open`] may be called more than once and gives an empty store
/// each time.
#[async_trait]
pub trait Fixture: Send + Sync {
    /// A new, empty store.
    async fn open(&self) -> TestStore;

    /// Closes the store and opens it again. A store whose capabilities say `persistent` has everything it
    /// had; any other is empty. The clock goes on.
    async fn reopen(&self, opened: TestStore) -> TestStore;

    /// The same content under another incarnation, as after a failover or a restored backup (contract 1.4).
    async fn restored(&self, opened: TestStore) -> TestStore;

    /// Whether [`TestStore::clock`] is the clock the store goes by. False for a store with a clock of its own
    /// on a server: cases that must move time then do not apply.
    fn clock_moves(&self) -> bool {
        true
    }
}
