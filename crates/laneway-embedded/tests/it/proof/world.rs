//! Where the proofs take place: which streams there are and who may touch which.
//!
//! Every actor has shards of its own and makes one call at a time, so what its shards must hold is known exactly
//! however the calls of different actors mix. One more stream is shared by producers that only append.

use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{Define, Query, Rows};
use laneway_core::{
    Documents, Mode, Partition, ProcessorId, Result, Seat, Shard, StartAt, Store, StreamId, StreamInfo,
    StreamSettings,
};

/// Everything the proofs ask of a store.
pub(crate) trait Whole: Store + Documents {}

impl<T: Store + Documents> Whole for T {}

/// One shard with the processors on it.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    pub(crate) shard: Shard,
    pub(crate) layout: u32,
    pub(crate) processors: Vec<ProcessorId>,
}

impl Ground {
    pub(crate) fn seats(&self) -> impl Iterator<Item = Seat> {
        self.processors.iter().map(|processor| Seat { shard: self.shard, processor: *processor })
    }
}

/// What belongs to one actor.
#[derive(Clone, Debug)]
pub(crate) struct Territory {
    pub(crate) actor: usize,
    pub(crate) work: Ground,
    pub(crate) latest: Ground,
}

impl Territory {
    pub(crate) fn grounds(&self) -> [&Ground; 2] {
        [&self.work, &self.latest]
    }
}

/// All of it.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) territories: Vec<Territory>,
    pub(crate) shared: Ground,
}

fn settings(mode: Mode, keep: Duration) -> StreamSettings {
    StreamSettings {
        partitions: 1,
        mode,
        keep,
        dead_keep: Duration::from_secs(400),
        ..StreamSettings::default()
    }
}

async fn stream(
    store: &dyn Whole,
    name: &str,
    mode: Mode,
    keep: Duration,
    processors: &[&str],
) -> Result<()> {
    let define = Define::Stream { name: name.to_owned(), expect: None, settings: settings(mode, keep) };
    let defined = store.define(define).await?;
    let stream = defined.stream.map_or(StreamId(0), |stream| stream.id);
    for processor in processors {
        let name = format!("{name}.{processor}");
        let define =
            Define::Processor { stream, name, start: StartAt::Beginning, settings: Bytes::from_static(b"x") };
        store.define(define).await?;
    }
    Ok(())
}

impl World {
    /// Defines everything in an empty store.
    pub(crate) async fn found(store: &dyn Whole, actors: usize) -> Result<Self> {
        for actor in 0..actors {
            stream(store, &format!("work-{actor}"), Mode::Queue, Duration::ZERO, &["main", "audit"]).await?;
            stream(store, &format!("latest-{actor}"), Mode::Latest, Duration::from_secs(90), &["main"])
                .await?;
        }
        stream(store, "shared", Mode::Queue, Duration::from_secs(100), &[]).await?;
        Self::look(store).await
    }

    /// Finds everything in a store that was founded before.
    pub(crate) async fn look(store: &dyn Whole) -> Result<Self> {
        let Rows::Streams(streams) = store.query(Query::Streams).await? else {
            panic!("streams were asked for")
        };
        let ground = |name: &str| {
            let found = streams.iter().find(|stream| stream.name == name);
            found.map(|stream: &StreamInfo| Ground {
                shard: stream.shard(Partition(0)),
                layout: stream.layout,
                processors: stream.processors.iter().map(|processor| processor.id).collect(),
            })
        };
        let territory = |actor| {
            let (work, latest) = (ground(&format!("work-{actor}"))?, ground(&format!("latest-{actor}"))?);
            Some(Territory { actor, work, latest })
        };
        let territories = (0..).map_while(territory).collect();
        Ok(Self { territories, shared: ground("shared").expect("the world was founded whole") })
    }
}
