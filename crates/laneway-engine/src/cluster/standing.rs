//! What the seats of this node may rely on: that it lives in the eyes of others, and under which name.
//!
//! It only saves work that would be refused (rule F4): whatever matters is decided by the fence of each commit.

use std::sync::Arc;

use laneway_core::Steady;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::documents::NodeToken;
use crate::service::Env;

/// A lease that was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) node: NodeToken,
    /// Not to be relied on from this moment, by the own steady clock.
    pub(crate) until: Steady,
}

impl Grant {
    /// Of a node whose store nobody else can open.
    const FOR_EVER: Self = Self { node: NodeToken::ALONE, until: Steady(u64::MAX) };
}

/// The lease of this node as its seats see it. They are told of a change in the order in which they began to wait, so
/// that a simulation can be repeated.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    now: Mutex<Option<Grant>>,
    changed: Notify,
}

impl Grants {
    pub(super) fn set(&self, grant: Option<Grant>) {
        *self.now.lock() = grant;
        self.changed.notify_waiters();
    }
}

/// How this node stands. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) enum Standing {
    /// Nobody else can open the store.
    Alone,
    /// One of several nodes: nothing while it has no lease.
    Member(Arc<Grants>),
}

impl Standing {
    /// The lease, if it can be relied on now.
    pub(crate) fn grant(&self, now: Steady) -> Option<Grant> {
        match self {
            Self::Alone => Some(Grant::FOR_EVER),
            Self::Member(grants) => grants.now.lock().filter(|grant| now < grant.until),
        }
    }

    /// Waits for a lease that can be relied on.
    pub(crate) async fn granted(&self, env: &Env) -> Grant {
        let Self::Member(grants) = self else {
            return Grant::FOR_EVER;
        };
        loop {
            // Made before the lease is looked at, so that nothing between the two is missed.
            let changed = grants.changed.notified();
            if let Some(grant) = self.grant(env.steady()) {
                return grant;
            }
            changed.await;
        }
    }
}
