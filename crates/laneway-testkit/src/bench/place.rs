//! Streams and processors for tests.

use bytes::Bytes;
use laneway_core::store::{Define, Defined};
use laneway_core::{Partition, ProcessorId, Seat, Shard, StartAt, StreamId, StreamInfo, StreamSettings};

use super::Bench;

/// A stream with one partition and one processor that begins at its beginning.
#[derive(Clone, Debug)]
pub struct Place {
    /// The stream as it was after the processor joined.
    pub stream: StreamInfo,
    /// Its only shard.
    pub shard: Shard,
    /// The processor's seat on it.
    pub seat: Seat,
}

impl Bench {
    /// Settings of a stream with one partition and nothing else special.
    pub fn settings() -> StreamSettings {
        StreamSettings { partitions: 1, ..StreamSettings::default() }
    }

    /// A stream with one partition and one processor.
    pub async fn place(&self) -> Place {
        self.place_with(Self::settings()).await
    }

    /// The same with these settings; the place is on partition 0.
    pub async fn place_with(&self, settings: StreamSettings) -> Place {
        let stream = self.stream(settings).await;
        let processor = self.processor(stream.id, StartAt::Beginning).await;
        let stream = self.stream_info(stream.id).await.expect("the stream was just made");
        let shard = Shard { stream: stream.id, partition: Partition(0) };
        Place { stream, shard, seat: Seat { shard, processor } }
    }

    /// A new stream under a name of its own.
    pub async fn stream(&self, settings: StreamSettings) -> StreamInfo {
        let name = format!("stream-{}", self.number());
        let define = Define::Stream { name, expect: None, settings };
        self.define(define).await.stream.expect("a created stream is answered")
    }

    /// A new processor under a name of its own.
    pub async fn processor(&self, stream: StreamId, start: StartAt) -> ProcessorId {
        let name = format!("processor-{}", self.number());
        let define = Define::Processor { stream, name: name.clone(), start, settings: Bytes::new() };
        let info = self.define(define).await.stream.expect("a processor's stream is answered");
        let found = info.processors.iter().find(|processor| processor.name == name);
        found.expect("a registered processor is listed").id
    }

    /// A definition that must be accepted.
    pub async fn define(&self, define: Define) -> Defined {
        self.store().define(define.clone()).await.unwrap_or_else(|error| panic!("{define:?}: {error}"))
    }
}
