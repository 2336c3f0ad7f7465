//! Sends a commit until it is answered.

use std::time::Duration;

use laneway_core::store::{Commit, Committed};
use laneway_core::{Store, StoreError};

use crate::service::Env;

/// Wait before an unanswered commit is repeated: it grows with every time.
const REPEAT_AFTER: Duration = Duration::from_millis(20);
const REPEAT_AFTER_MAX: Duration = Duration::from_secs(2);

/// Sends a commit; repeats it unchanged while nobody knows whether it happened, or the store is out of reach, as long as
/// the sender may: a process that was stopped while it waited sends nothing any more.
///
/// Any other error is for the caller: the seat is lost, or the commit is wrong.
pub(crate) async fn send(
    env: &Env,
    store: &dyn Store,
    commit: Commit,
    may: impl Fn() -> bool + Send,
) -> Result<Committed, StoreError> {
    let mut wait = REPEAT_AFTER;
    loop {
        let error = match store.commit(commit.clone()).await {
            Err(error @ (StoreError::Unknown { .. } | StoreError::Down { .. } | StoreError::Full(_))) => {
                error
            }
            answer => return answer,
        };
        env.sleep(wait).await;
        if !may() {
            return Err(error);
        }
        tracing::warn!(seat = %commit.seat, %error, "a commit is repeated");
        wait = (wait * 2).min(REPEAT_AFTER_MAX);
    }
}
