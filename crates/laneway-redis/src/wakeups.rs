//! Wake-ups: scripts and callers tell a channel of the store what changed, and every process listens to it. Hints only: what
//! is told while a process does not listen is lost, and polling finds it.
//!
//! Points come from one counter for all topics; only topics that somebody waited for are kept.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Buf, BufMut};
use futures::StreamExt;
use hashbrown::HashMap;
use laneway_core::{
    JobId, Partition, ProcessorId, Result, Seat, Shard, StoreError, StreamId, Topic, Wakeups,
};
use parking_lot::Mutex;
use redis::aio::{PubSubSink, PubSubStream};
use redis::{Client, Value};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::link::pause;
use crate::seam;
use crate::store::RedisStore;

/// Topics kept before those that nobody waits for are let go.
const TOPICS_MAX: usize = 8_192;

/// How long nothing may be heard before the connection is asked whether it still leads anywhere.
const QUIET: Duration = Duration::from_secs(15);

/// What this process has heard.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    topics: Mutex<Topics>,
}

#[derive(Debug, Default)]
struct Topics {
    last: u64,
    /// Highest point that a topic nobody kept may have had.
    missed: u64,
    kept: HashMap<Topic, watch::Sender<u64>>,
}

impl Topics {
    fn hear(&mut self, topic: Topic) {
        self.last += 1;
        match self.kept.get(&topic) {
            Some(sender) => {
                sender.send_replace(self.last);
            }
            None => self.missed = self.last,
        }
    }

    /// Something may have been told while nobody listened: everybody looks.
    fn hear_all(&mut self) {
        self.last += 1;
        self.missed = self.last;
        self.kept.values().for_each(|sender| {
            sender.send_replace(self.last);
        });
    }

    fn subscribe(&mut self, topic: Topic) -> watch::Receiver<u64> {
        if let Some(sender) = self.kept.get(&topic) {
            return sender.subscribe();
        }
        if self.kept.len() >= TOPICS_MAX {
            self.kept.retain(|_, sender| sender.receiver_count() > 0);
            self.missed = self.last;
        }
        let (sender, receiver) = watch::channel(self.missed);
        self.kept.insert(topic, sender);
        receiver
    }
}

/// The task that listens, which ends with the store.
#[derive(Debug)]
pub(crate) struct Listener(JoinHandle<()>);

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Listens from before this returns on.
pub(crate) async fn listen(client: Client, channel: String, heard: Arc<Heard>, within: Duration) -> Listener {
    let (ready, listening) = oneshot::channel();
    let listener = Listener(seam::spawn(hear(client, channel, heard, within, ready)));
    // A listener that cannot begin goes on trying; hints are lost until it can.
    let _ = listening.await;
    listener
}

async fn hear(
    client: Client,
    channel: String,
    heard: Arc<Heard>,
    within: Duration,
    ready: oneshot::Sender<()>,
) {
    let (mut failed, mut told, mut ready) = (0, false, Some(ready));
    loop {
        match seam::within(within, subscribed(&client, &channel)).await {
            Some(Ok((sink, messages))) => {
                (failed, told) = (0, false);
                heard.topics.lock().hear_all();
                let _ = ready.take().map(|ready| ready.send(()));
                hear_messages(sink, messages, &heard, within).await;
                tracing::debug!(channel, "the channel of wake-ups is closed");
            }
            // Told once, and again after every time that it worked: whoever polls is slower, and nothing else shows why.
            unheard if !told => {
                let reason = unheard.and_then(Result::err).map(|error| error.to_string());
                let reason = reason.unwrap_or_else(|| format!("no answer within {within:?}"));
                told = true;
                tracing::warn!(channel, reason, "no wake-ups are heard: changes are found by polling");
            }
            _ => {}
        }
        drop(ready.take());
        failed += 1;
        seam::sleep(pause(failed)).await;
    }
}

/// Until the channel is closed.
async fn hear_messages(mut sink: PubSubSink, mut messages: PubSubStream, heard: &Heard, within: Duration) {
    loop {
        match seam::within(QUIET, messages.next()).await {
            Some(Some(message)) => {
                if let Some(topic) = read_topic(message.get_payload_bytes()) {
                    heard.topics.lock().hear(topic);
                }
            }
            Some(None) => return,
            // Nothing was told, or the connection leads nowhere.
            None if matches!(seam::within(within, sink.ping::<Value>()).await, Some(Ok(_))) => {}
            None => return,
        }
    }
}

async fn subscribed(client: &Client, channel: &str) -> redis::RedisResult<(PubSubSink, PubSubStream)> {
    let mut pubsub = client.get_async_pubsub().await?;
    pubsub.subscribe(channel).await?;
    Ok(pubsub.split())
}

/// A topic as it is told.
pub(crate) fn topic_bytes(topic: Topic) -> Vec<u8> {
    let mut out = Vec::new();
    match topic {
        Topic::Shard(shard) => {
            out.put_u8(b's');
            out.put_u32(shard.stream.0);
            out.put_u32(shard.partition.0);
        }
        Topic::Seat(seat) => {
            out.put_u8(b'p');
            out.put_u32(seat.shard.stream.0);
            out.put_u32(seat.shard.partition.0);
            out.put_u32(seat.processor.0);
        }
        Topic::Job(job) => {
            out.put_u8(b'j');
            out.put_u128(job.bits());
        }
    }
    out
}

fn read_topic(mut bytes: &[u8]) -> Option<Topic> {
    let kind = bytes.try_get_u8().ok()?;
    if kind == b'j' {
        return JobId::from_bits(bytes.try_get_u128().ok()?).map(Topic::Job);
    }
    let stream = StreamId(bytes.try_get_u32().ok()?);
    let shard = Shard { stream, partition: Partition(bytes.try_get_u32().ok()?) };
    match kind {
        b's' => Some(Topic::Shard(shard)),
        b'p' => Some(Topic::Seat(Seat { shard, processor: ProcessorId(bytes.try_get_u32().ok()?) })),
        _ => None,
    }
}

#[async_trait]
impl Wakeups for RedisStore {
    async fn announce(&self, topic: Topic) -> Result<()> {
        self.tell(&topic_bytes(topic)).await
    }

    async fn wait(&self, topic: Topic, seen: u64) -> Result<u64> {
        let mut point = self.heard().topics.lock().subscribe(topic);
        match point.wait_for(|point| *point > seen).await {
            Ok(point) => Ok(*point),
            // The topic was let go while somebody waited: early is allowed, asleep for ever is not.
            Err(closed) => Err(StoreError::Unknown { action: "wait for a topic", source: closed.into() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use laneway_core::{EventId, JobNumber, Timestamp};

    use super::*;

    #[test]
    fn topics_read_back_as_told() {
        let shard = Shard { stream: StreamId(7), partition: Partition(3) };
        let job = JobId::new(Timestamp(5_000_000), shard, JobNumber::Event(EventId(9)));
        for topic in
            [Topic::Shard(shard), Topic::Seat(Seat { shard, processor: ProcessorId(2) }), Topic::Job(job)]
        {
            assert_eq!(read_topic(&topic_bytes(topic)), Some(topic));
        }
        assert_eq!(read_topic(b"x123456789"), None);
    }

    #[test]
    fn a_topic_that_was_let_go_answers_its_next_waiter() {
        let mut topics = Topics::default();
        let topic = |stream| Topic::Shard(Shard { stream: StreamId(stream), partition: Partition(0) });
        drop(topics.subscribe(topic(1)));
        topics.hear(topic(1));
        for stream in 2..=u32::try_from(TOPICS_MAX).unwrap() + 1 {
            drop(topics.subscribe(topic(stream)));
        }
        assert!(topics.kept.len() <= TOPICS_MAX);
        assert!(*topics.subscribe(topic(1)).borrow() > 0);
    }
}
