//! Wake-ups of a world. Those of a store wake who waits in an order that cannot be repeated; these wake them in the order
//! in which they began to wait.

use std::collections::BTreeMap;
use std::sync::Arc;

use laneway_core::Topic;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Who waits for what.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    topics: Mutex<BTreeMap<Topic, (u64, Arc<Notify>)>>,
}

impl Bell {
    pub(crate) fn ring(&self, topic: Topic) {
        let mut topics = self.topics.lock();
        let (point, notify) = topics.entry(topic).or_default();
        *point += 1;
        notify.notify_waiters();
    }

    /// Waits until it rang for the topic after this point.
    pub(crate) async fn wait(&self, topic: Topic, seen: u64) -> u64 {
        loop {
            let notify = Arc::clone(&self.topics.lock().entry(topic).or_default().1);
            // Made before the point is compared, so that nothing between the two is missed.
            let rung = notify.notified();
            let point = self.topics.lock().entry(topic).or_default().0;
            if point > seen {
                return point;
            }
            rung.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use laneway_core::{Partition, Shard, StreamId};

    use super::*;

    #[test]
    fn ring_before_the_wait_is_not_missed() {
        let topic = Topic::Shard(Shard { stream: StreamId(1), partition: Partition(0) });
        let bell = Bell::default();
        assert_eq!(bell.wait(topic, 0).now_or_never(), None);
        bell.ring(topic);
        assert_eq!(bell.wait(topic, 0).now_or_never(), Some(1));
        assert_eq!(bell.wait(topic, 1).now_or_never(), None);
    }
}
