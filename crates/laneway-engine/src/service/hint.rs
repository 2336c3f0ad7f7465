//! Wake-ups as what they are: hints (rule F12). Whoever waits for one looks by itself now and then.

use std::time::Duration;

use laneway_core::{Topic, Wakeups};

use super::Env;

/// Wait before a wake-up that could not be waited for is waited for again: it grows with every time.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(30);

/// Waits until a topic was announced after the point that was seen; answers the new point. A failure is told once and
/// waited out, because a caller that is answered at once asks again at once.
pub(crate) async fn hint(env: &Env, wakeups: &dyn Wakeups, topic: Topic, seen: u64) -> u64 {
    let mut wait = AGAIN_AFTER;
    loop {
        match wakeups.wait(topic, seen).await {
            Ok(point) => return point,
            Err(error) if wait == AGAIN_AFTER => {
                tracing::warn!(?topic, %error, "nothing is woken; it is looked at now and then");
            }
            Err(_told) => {}
        }
        // In a box: thousands of seats wait here for a wake-up, and few of them ever for this.
        Box::pin(env.sleep(wait)).await;
        wait = (wait * 2).min(AGAIN_AFTER_MAX);
    }
}
