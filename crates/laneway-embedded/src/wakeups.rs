//! Wake-ups inside one process: whoever waits for a topic hears of it; they carry no truth.
//!
//! Only topics that somebody has waited for are kept, and only so many of them. Points come from one counter
//! for all topics, and the highest point that may have been missed is remembered, so a topic that was forgotten
//! answers its next waiter early instead of leaving it asleep.

use async_trait::async_trait;
use hashbrown::HashMap;
use laneway_core::{Result, Topic, Wakeups};
use parking_lot::Mutex;
use tokio::sync::watch;

/// Topics kept before those that nobody waits for are looked through.
const TOPICS_MAX: usize = 8_192;

/// The wake-ups of one process.
#[derive(Debug, Default)]
pub(crate) struct LocalWakeups {
    topics: Mutex<Topics>,
}

#[derive(Debug, Default)]
struct Topics {
    /// Point of the newest announcement.
    last: u64,
    /// Highest point of an announcement that no kept topic remembers.
    missed: u64,
    kept: HashMap<Topic, watch::Sender<u64>>,
}

impl LocalWakeups {
    /// Wakes whoever waits for one of the topics. A topic that nobody waits for costs one look-up.
    pub(crate) fn announce_all(&self, announced: &[Topic]) {
        if announced.is_empty() {
            return;
        }
        let mut topics = self.topics.lock();
        announced.iter().for_each(|topic| topics.announce(topic));
    }
}

#[async_trait]
impl Wakeups for LocalWakeups {
    async fn announce(&self, topic: Topic) -> Result<()> {
        self.announce_all(&[topic]);
        Ok(())
    }

    async fn wait(&self, topic: Topic, seen: u64) -> Result<u64> {
        let mut point = self.topics.lock().subscribe(topic);
        match point.wait_for(|point| *point > seen).await {
            Ok(point) => Ok(*point),
            // The topic was forgotten while somebody waited: early is allowed, asleep for ever is not.
            Err(_) => Ok(self.topics.lock().last.max(seen)),
        }
    }
}

impl Topics {
    fn announce(&mut self, topic: &Topic) {
        self.last += 1;
        match self.kept.get(topic) {
            Some(sender) => {
                sender.send_replace(self.last);
            }
            None => self.missed = self.last,
        }
    }

    fn subscribe(&mut self, topic: Topic) -> watch::Receiver<u64> {
        if let Some(sender) = self.kept.get(&topic) {
            return sender.subscribe();
        }
        if self.kept.len() >= TOPICS_MAX {
            self.forget_idle();
        }
        let (sender, receiver) = watch::channel(self.missed);
        self.kept.insert(topic, sender);
        receiver
    }

    /// Forgets topics that nobody waits for, and remembers that their last announcement may be missed.
    fn forget_idle(&mut self) {
        let mut missed = self.missed;
        self.kept.retain(|_, sender| {
            let waited_for = sender.receiver_count() > 0;
            if !waited_for {
                missed = missed.max(*sender.borrow());
            }
            waited_for
        });
        self.missed = missed;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use laneway_core::{Partition, Shard, StreamId};

    use super::*;

    fn topic(partition: u32) -> Topic {
        Topic::Shard(Shard { stream: StreamId(1), partition: Partition(partition) })
    }

    fn tell(wakeups: &LocalWakeups, topic: Topic) {
        wakeups.announce_all(&[topic]);
    }

    /// What a waiter learns at once; `None` if it would sleep.
    fn look(wakeups: &LocalWakeups, topic: Topic, seen: u64) -> Option<u64> {
        wakeups.wait(topic, seen).now_or_never().map(Result::unwrap)
    }

    #[test]
    fn an_announcement_before_the_wait_is_not_missed() {
        let wakeups = LocalWakeups::default();
        assert_eq!(look(&wakeups, topic(1), 0), None);
        tell(&wakeups, topic(1));
        let point = look(&wakeups, topic(1), 0).unwrap();
        assert_eq!(look(&wakeups, topic(1), point), None);
        tell(&wakeups, topic(2));
        assert_eq!(look(&wakeups, topic(1), point), None);
        tell(&wakeups, topic(1));
        assert!(look(&wakeups, topic(1), point).unwrap() > point);
    }

    #[test]
    fn a_forgotten_topic_wakes_its_next_waiter_early() {
        let wakeups = LocalWakeups::default();
        assert_eq!(look(&wakeups, topic(0), 0), None);
        tell(&wakeups, topic(0));
        let seen = look(&wakeups, topic(0), 0).unwrap();
        tell(&wakeups, topic(0));
        for other in 1..=u32::try_from(TOPICS_MAX).unwrap() {
            assert_eq!(look(&wakeups, topic(other), u64::MAX), None);
        }
        assert!(wakeups.topics.lock().kept.len() <= TOPICS_MAX);
        assert!(look(&wakeups, topic(0), seen).unwrap() > seen);
    }

    #[tokio::test]
    async fn a_waiter_is_woken() {
        let wakeups = LocalWakeups::default();
        let waiter = wakeups.wait(topic(1), 0);
        let teller = async {
            tokio::task::yield_now().await;
            tell(&wakeups, topic(1));
        };
        assert_eq!(futures::join!(waiter, teller).0.unwrap(), 1);
    }
}
