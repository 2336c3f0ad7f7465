//! What the seats of this node may rely on: that it lives in the eyes of others, and under which name.
//!
//! It only saves work that would be refused (rule F4): whatever matters is decided by the fence of each commit.

use laneway_core::Steady;
use tokio::sync::watch;

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
    const FOR_EVER: Self = Self { node: NodeToken(0), until: Steady(u64::MAX) };
}

/// How this node stands. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) enum Standing {
    /// Nobody else can open the store.
    Alone,
    /// One of several nodes: nothing while it has no lease.
    Member(watch::Receiver<Option<Grant>>),
}

impl Standing {
    /// The lease, if it can be relied on now.
    pub(crate) fn grant(&self, now: Steady) -> Option<Grant> {
        match self {
            Self::Alone => Some(Grant::FOR_EVER),
            Self::Member(grants) => grants.borrow().filter(|grant| now < grant.until),
        }
    }

    /// Waits for a lease that can be relied on.
    pub(crate) async fn granted(&self, env: &Env) -> Grant {
        let Self::Member(grants) = self else {
            return Grant::FOR_EVER;
        };
        let mut grants = grants.clone();
        loop {
            if let Some(grant) = grants.borrow_and_update().filter(|grant| env.steady() < grant.until) {
                return grant;
            }
            if grants.changed().await.is_err() {
                // The engine has come to its end: nobody is waiting for this any more.
                std::future::pending::<()>().await;
            }
        }
    }
}
