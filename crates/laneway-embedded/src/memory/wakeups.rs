//! Wake-ups of the memory store.

use async_trait::async_trait;
use laneway_core::{Result, Topic, Wakeups};

use super::MemoryStore;

#[async_trait]
impl Wakeups for MemoryStore {
    async fn announce(&self, topic: Topic) -> Result<()> {
        self.wakeups.announce(topic).await
    }

    async fn wait(&self, topic: Topic, seen: u64) -> Result<u64> {
        Ok(self.wakeups.announced(topic, seen).await)
    }
}
