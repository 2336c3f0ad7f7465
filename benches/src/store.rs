//! The file store as the rows use it: on a counted disk, with one stream, and how to append to it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::store::{Append, Appended, Define};
use laneway_core::{
    Draft, Incarnation, Partition, ProcessorId, Shard, StartAt, Store, StreamInfo, StreamSettings,
    SystemClock,
};
use laneway_embedded::{FileOptions, FileStore};

use crate::Failure;
use crate::counted_disk::CountedDisk;
use crate::measured::Counts;
use crate::workload::SHARDS;

/// How long a store may take to become quiet before it is measured anyway.
const QUIET_WAIT: Duration = Duration::from_secs(5);
/// Name of the stream of all rows.
pub(crate) const STREAM: &str = "bench";
const PROCESSOR: &str = "worker";

/// A store with a stream.
#[derive(Clone)]
pub(crate) struct BenchStore {
    pub(crate) store: FileStore,
    pub(crate) stream: StreamInfo,
    incarnation: Incarnation,
    disk: Arc<CountedDisk>,
    /// How often one checkpoint syncs the index: measured, so that checkpoints can be counted from outside.
    syncs_per_checkpoint: u64,
}

impl BenchStore {
    /// Creates a store in a new folder.
    pub(crate) async fn create(dir: &Path, options: FileOptions) -> Result<Self, Failure> {
        let disk = Arc::new(CountedDisk::default());
        let on: Arc<CountedDisk> = Arc::clone(&disk);
        let store = FileStore::open_on(on, dir, options, Arc::new(SystemClock))?;
        let stream = define_stream(&store).await?;
        let mut created =
            Self { incarnation: store.about().incarnation, store, stream, disk, syncs_per_checkpoint: 1 };
        created.disk.wait_until_quiet(QUIET_WAIT);
        let before = created.disk.counts().index_syncs;
        created.store.checkpoint()?;
        created.syncs_per_checkpoint = (created.disk.counts().index_syncs - before).max(1);
        Ok(created)
    }

    pub(crate) fn shard(&self, partition: u32) -> Shard {
        self.stream.shard(Partition(partition))
    }

    pub(crate) async fn append_to(&self, partition: u32, drafts: Vec<Draft>) -> Result<Appended, Failure> {
        let append = append_of(&self.stream, self.incarnation, partition, drafts);
        Ok(self.store.append(append).await?)
    }

    /// Registers the one processor; it begins with the next event.
    pub(crate) async fn register(&mut self) -> Result<ProcessorId, Failure> {
        self.register_as(PROCESSOR, StartAt::End).await
    }

    /// Registers a processor.
    pub(crate) async fn register_as(&mut self, name: &str, start: StartAt) -> Result<ProcessorId, Failure> {
        let settings = bytes::Bytes::new();
        let define = Define::Processor { stream: self.stream.id, name: name.to_owned(), start, settings };
        self.stream = self.store.define(define).await?.stream.ok_or("the stream is gone")?;
        let found = self.stream.processors.iter().find(|processor| processor.name == name);
        Ok(found.ok_or("the processor is not registered")?.id)
    }

    /// What was written so far, beside so many events.
    pub(crate) fn counts_with(&self, events: u64) -> Counts {
        let disk = self.disk.counts();
        Counts { events, syncs: disk.log_syncs, bytes: disk.log_bytes, index_syncs: disk.index_syncs }
    }

    /// How many checkpoints so many syncs of the index were.
    pub(crate) fn checkpoints(&self, index_syncs: u64) -> u64 {
        index_syncs / self.syncs_per_checkpoint
    }

    /// Writes what is left to write, so that nothing of this store runs into the next measurement.
    pub(crate) fn settle(&self) -> Result<(), Failure> {
        self.store.checkpoint()?;
        self.disk.wait_until_quiet(QUIET_WAIT);
        Ok(())
    }
}

/// Creates the stream of all rows. What is passed may go at once, so that segments come back.
pub(crate) async fn define_stream(store: &FileStore) -> Result<StreamInfo, Failure> {
    let settings = StreamSettings { partitions: SHARDS, keep: Duration::ZERO, ..StreamSettings::default() };
    let define = Define::Stream { name: STREAM.to_owned(), expect: None, settings };
    store.define(define).await?.stream.ok_or_else(|| "the stream was not created".into())
}

/// One call to one shard.
pub(crate) fn append_of(
    stream: &StreamInfo,
    incarnation: Incarnation,
    partition: u32,
    drafts: Vec<Draft>,
) -> Append {
    let shard = stream.shard(Partition(partition));
    Append { shard, incarnation, layout: stream.layout, origin: None, drafts, object: None }
}
