//! One stream of any store, to append to and to ask about. Decides nothing about what is sent.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{Append, Appended, Define, Receipt, Seize};
use laneway_core::{
    Draft, EventId, Fence, Key, Kind, Nonce, Partition, ProcessorId, Seat, Shard, StartAt, Store, StreamInfo,
    StreamSettings,
};

use crate::Failure;

pub(crate) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A stream and the store that it is in.
#[derive(Clone)]
pub(crate) struct Stream {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) info: StreamInfo,
}

/// Settings of a stream with so many partitions whose events are kept for so long.
pub(crate) fn keeping(partitions: u32, keep: Duration) -> StreamSettings {
    StreamSettings { partitions, keep, ..StreamSettings::default() }
}

/// The key with this name and number.
pub(crate) fn numbered_key(name: &str, number: u64) -> Result<Key, Failure> {
    Ok(Key::new(format!("{name}-{number:09}"))?)
}

/// An event of this key with so many bytes.
pub(crate) fn draft(key: &str, bytes: usize) -> Result<Draft, Failure> {
    Ok(Draft::new(Some(Key::new(key.to_owned())?), Kind::default(), vec![7; bytes]))
}

impl Stream {
    /// Creates a stream.
    pub(crate) async fn create(
        store: Arc<dyn Store>,
        name: &str,
        settings: StreamSettings,
    ) -> Result<Self, Failure> {
        let define = Define::Stream { name: name.to_owned(), expect: None, settings };
        let info = store.define(define).await?.stream.ok_or("the stream was not created")?;
        Ok(Self { store, info })
    }

    /// Changes its settings.
    pub(crate) async fn change(&mut self, settings: StreamSettings) -> Result<(), Failure> {
        let (name, expect) = (self.info.name.clone(), Some(self.info.version));
        let defined = self.store.define(Define::Stream { name, expect, settings }).await?;
        self.info = defined.stream.ok_or("the stream is gone")?;
        Ok(())
    }

    /// Registers a processor that begins with the first event.
    pub(crate) async fn register(&mut self, name: &str) -> Result<ProcessorId, Failure> {
        let define = Define::Processor {
            stream: self.info.id,
            name: name.to_owned(),
            start: StartAt::Beginning,
            settings: Bytes::new(),
        };
        self.info = self.store.define(define).await?.stream.ok_or("the stream is gone")?;
        let found = self.info.processors.iter().find(|processor| processor.name == name);
        Ok(found.ok_or("the processor is not registered")?.id)
    }

    pub(crate) fn name(&self) -> &str {
        &self.info.name
    }

    pub(crate) fn partitions(&self) -> u32 {
        self.info.settings.partitions
    }

    pub(crate) fn shard(&self, partition: u32) -> Shard {
        self.info.shard(Partition(partition))
    }

    pub(crate) fn seat(&self, partition: u32, processor: ProcessorId) -> Seat {
        Seat { shard: self.shard(partition), processor }
    }

    /// Appends to one partition.
    pub(crate) async fn append(&self, partition: u32, drafts: Vec<Draft>) -> Result<Appended, Failure> {
        let append = Append {
            shard: self.shard(partition),
            incarnation: self.store.about().incarnation,
            layout: self.info.layout,
            origin: None,
            drafts,
            object: None,
        };
        Ok(self.store.append(append).await?)
    }

    /// Appends one event to the partition of its key and answers its id.
    pub(crate) async fn append_one(&self, draft: Draft) -> Result<EventId, Failure> {
        let partition = draft.key.as_ref().map_or(Partition(0), |key| key.partition(self.partitions()));
        let appended = self.append(partition.0, vec![draft]).await?;
        match appended.receipts.first() {
            Some(Receipt::New { id, .. }) => Ok(*id),
            other => Err(format!("an append was answered with {other:?}").into()),
        }
    }

    /// Appends so many events to one partition, a thousand per call.
    pub(crate) async fn append_many(
        &self,
        partition: u32,
        count: u64,
        draft: impl Fn(u64) -> Result<Draft, Failure>,
    ) -> Result<(), Failure> {
        for first in (0..count).step_by(1_000) {
            let drafts = (first..count.min(first + 1_000)).map(&draft).collect::<Result<Vec<_>, _>>()?;
            self.append(partition, drafts).await?;
        }
        Ok(())
    }

    /// Takes a seat and answers its fence.
    pub(crate) async fn seize(&self, seat: Seat) -> Result<Fence, Failure> {
        let incarnation = self.store.about().incarnation;
        let seize = Seize { seat, incarnation, expect: None, nonce: Nonce(1), node: Bytes::new() };
        Ok(self.store.seize(seize).await?.progress.fence)
    }
}
