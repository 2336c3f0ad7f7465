//! Wake-ups inside one process: whoever waits for a topic hears of it; they carry no truth.
//!
//! Only topics that somebody has waited for are kept, and only so many of them. Points come from one counter
//! for all topics, and the highest point that may have been missed is remembered, so a topic that was forgotten
//! answers its next waiter early instead of leaving it asleep.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use hashbrown::HashMap;
use laneway_core::{Result, Topic, Wakeups};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Topics kept before those that nobody waits for are looked through.
const TOPICS_MAX: usize = 8_192;

/// The wake-ups of one process.
#[derive(Debug, Default)]
pub(crate) struct LocalWakeups {
    topics: Mutex<Topics>,
}

#[derive(Debug)]
struct Topics {
    /// Point of the newest announcement.
    last: u64,
    /// Highest point of an announcement that no kept topic remembers.
    missed: u64,
    kept: HashMap<Topic, Arc<Kept>>,
    /// How many topics are kept when those that nobody waits for are next looked for. Twice as many as stayed the last
    /// time: a look at all of them is paid by as many new ones.
    look_at: usize,
}

/// A topic that somebody has waited for. Small, because every seat waits for two.
#[derive(Debug)]
struct Kept {
    /// Point of its newest announcement, or of one that it may have missed.
    point: AtomicU64,
    announced: Notify,
}

impl Default for Topics {
    fn default() -> Self {
        Self { last: 0, missed: 0, kept: HashMap::new(), look_at: TOPICS_MAX }
    }
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

    /// Waits until the topic was announced after the point `seen`, and answers the new point.
    pub(crate) async fn announced(&self, topic: Topic, seen: u64) -> u64 {
        let kept = self.topics.lock().keep(topic);
        loop {
            // Created before reading the counter, so an announcement in between is not missed.
            let announced = kept.announced.notified();
            let point = kept.point.load(Ordering::Acquire);
            if point > seen {
                return point;
            }
            announced.await;
        }
    }
}

#[async_trait]
impl Wakeups for LocalWakeups {
    async fn announce(&self, topic: Topic) -> Result<()> {
        self.announce_all(&[topic]);
        Ok(())
    }

    async fn wait(&self, topic: Topic, seen: u64) -> Result<u64> {
        Ok(self.announced(topic, seen).await)
    }
}

impl Topics {
    fn announce(&mut self, topic: &Topic) {
        self.last += 1;
        match self.kept.get(topic) {
            Some(kept) => {
                kept.point.store(self.last, Ordering::Release);
                kept.announced.notify_waiters();
            }
            None => self.missed = self.last,
        }
    }

    fn keep(&mut self, topic: Topic) -> Arc<Kept> {
        if let Some(kept) = self.kept.get(&topic) {
            return Arc::clone(kept);
        }
        if self.kept.len() >= self.look_at {
            self.forget_idle();
            self.look_at = TOPICS_MAX.max(2 * self.kept.len());
        }
        let kept = Arc::new(Kept { point: AtomicU64::new(self.missed), announced: Notify::new() });
        self.kept.insert(topic, Arc::clone(&kept));
        kept
    }

    /// Forgets topics that nobody waits for, and remembers that their last announcement may be missed.
    fn forget_idle(&mut self) {
        let mut missed = self.missed;
        self.kept.retain(|_, kept| {
            // The waiter holds the other reference.
            let waited_for = Arc::strong_count(kept) > 1;
            if !waited_for {
                missed = missed.max(kept.point.load(Ordering::Acquire));
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

    #[test]
    fn topics_that_are_all_waited_for_are_not_looked_through_each_time() {
        let wakeups = LocalWakeups::default();
        let topics = u32::try_from(3 * TOPICS_MAX).unwrap();
        let mut waiters: Vec<_> = (0..topics).map(|number| wakeups.wait(topic(number), 0)).collect();
        waiters.iter_mut().for_each(|waiter| assert!(waiter.now_or_never().is_none()));
        let topics = wakeups.topics.lock();
        assert_eq!(topics.kept.len(), 3 * TOPICS_MAX);
        assert!(topics.look_at > topics.kept.len(), "the next one looks through nothing");
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
