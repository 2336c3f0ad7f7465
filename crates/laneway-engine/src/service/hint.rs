//! Wake-ups as what they are: hints (rule F12). Whoever waits for one looks by itself now and then.

use std::time::Duration;

use laneway_core::{StoreError, Topic, Wakeups};

use super::Env;

/// Wait before a wake-up that could not be waited for is waited for again: it grows with every time.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(30);

/// Waits until a topic was announced after the point that was seen; answers the new point. A failure is told once and
/// waited out, because a caller that is answered at once asks again at once.
pub(crate) async fn hint(env: &Env, wakeups: &dyn Wakeups, topic: Topic, seen: u64) -> u64 {
    // Thousands of seats wait here for a wake-up, and few of them ever for what follows a failure. So that is in a box,
    // and nothing of the first answer is kept while the second is waited for.
    let failed = match wakeups.wait(topic, seen).await {
        Ok(point) => return point,
        Err(error) => Box::pin(hint_after(error, env, wakeups, topic, seen)),
    };
    failed.await
}

/// The same after a failure.
async fn hint_after(error: StoreError, env: &Env, wakeups: &dyn Wakeups, topic: Topic, seen: u64) -> u64 {
    tracing::warn!(?topic, %error, "wake-ups failed; polling instead");
    let mut wait = AGAIN_AFTER;
    loop {
        env.sleep(wait).await;
        if let Ok(point) = wakeups.wait(topic, seen).await {
            return point;
        }
        wait = (wait * 2).min(AGAIN_AFTER_MAX);
    }
}
