//! The streams of the store and their processors, as last read.

use std::sync::Arc;

use hashbrown::HashMap;
use laneway_core::store::{Define, Query, Rows};
use laneway_core::{Incarnation, ProcessorId, Shard, Store, StoreError, StreamId, StreamInfo};
use parking_lot::RwLock;

use crate::observe::count_adoption;

/// What the engine knows of the streams. Reads the store when a name is new to it, or when told that something changed.
pub struct Catalogue {
    store: Arc<dyn Store>,
    known: RwLock<HashMap<String, Arc<StreamInfo>>>,
}

/// Why a stream is not to be had.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// There is none of this name.
    #[error("stream {0:?} does not exist")]
    NoStream(String),
    /// There is none of this name on any stream.
    #[error("processor {0:?} does not exist")]
    NoProcessor(String),
    /// The store could not say.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Catalogue {
    /// A catalogue that has not looked yet.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, known: RwLock::default() }
    }

    /// Reads all streams anew.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        let Rows::Streams(streams) = self.store.query(Query::Streams).await? else {
            return Err(StoreError::Corrupt {
                what: "the store answered another list than streams".to_owned(),
            });
        };
        *self.known.write() = streams.into_iter().map(|info| (info.name.clone(), Arc::new(info))).collect();
        Ok(())
    }

    /// A stream by its name.
    pub async fn stream(&self, name: &str) -> Result<Arc<StreamInfo>, CatalogueError> {
        if let Some(info) = self.known.read().get(name) {
            return Ok(Arc::clone(info));
        }
        self.refresh().await?;
        let found = self.known.read().get(name).map(Arc::clone);
        found.ok_or_else(|| CatalogueError::NoStream(name.to_owned()))
    }

    /// A stream by its number.
    pub async fn stream_of(&self, id: StreamId) -> Result<Arc<StreamInfo>, CatalogueError> {
        let find = || self.known.read().values().find(|info| info.id == id).map(Arc::clone);
        if let Some(info) = find() {
            return Ok(info);
        }
        self.refresh().await?;
        find().ok_or_else(|| CatalogueError::NoStream(format!("number {id}")))
    }

    /// The stream and number of a processor.
    pub async fn processor(&self, name: &str) -> Result<(Arc<StreamInfo>, ProcessorId), CatalogueError> {
        let find = || {
            let known = self.known.read();
            known.values().find_map(|info| {
                let found = info.processors.iter().find(|processor| processor.name == name)?;
                Some((Arc::clone(info), found.id))
            })
        };
        if let Some(found) = find() {
            return Ok(found);
        }
        self.refresh().await?;
        find().ok_or_else(|| CatalogueError::NoProcessor(name.to_owned()))
    }

    /// All streams, by name, as the store has them now.
    pub async fn streams(&self) -> Result<Vec<Arc<StreamInfo>>, StoreError> {
        self.refresh().await?;
        let mut streams: Vec<_> = self.known.read().values().map(Arc::clone).collect();
        streams.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(streams)
    }

    /// Changes the catalogue in the store, and here.
    pub async fn define(&self, define: Define) -> Result<Option<Arc<StreamInfo>>, StoreError> {
        let defined = self.store.define(define).await?;
        match defined.stream {
            Some(info) => {
                let info = Arc::new(info);
                self.known.write().insert(info.name.clone(), Arc::clone(&info));
                Ok(Some(info))
            }
            None => {
                self.refresh().await?;
                Ok(None)
            }
        }
    }

    /// The life of the store, as it was last heard of.
    pub(crate) fn life(&self) -> Incarnation {
        self.store.about().incarnation
    }

    /// Makes a call that names the life of the store. A shard that an earlier life wrote is taken over first, and the call
    /// made again in the life that is by then: one that named the old life would be refused for ever.
    pub(crate) async fn in_this_life<A, F>(&self, call: impl Fn(Incarnation) -> F) -> Result<A, StoreError>
    where
        F: Future<Output = Result<A, StoreError>>,
    {
        let mut life = self.life();
        loop {
            match call(life).await {
                Err(StoreError::Adopt { shard, stored, current }) => {
                    self.adopt(shard, stored, current).await?;
                    life = current;
                }
                answer => return answer,
            }
        }
    }

    /// The same for a call that rests on what was read in this life of the store: it is made in no other.
    pub(crate) async fn while_life_lasts<A, F>(
        &self,
        life: Incarnation,
        call: impl Fn() -> F,
    ) -> Result<A, StoreError>
    where
        F: Future<Output = Result<A, StoreError>>,
    {
        loop {
            match call().await {
                Err(StoreError::Adopt { shard, stored, current }) if current == life => {
                    self.adopt(shard, stored, current).await?;
                }
                answer => return answer,
            }
        }
    }

    /// Takes over a shard that an earlier life of the store wrote, as the store asked for. It also asks who comes with
    /// the name of an earlier life to a shard that somebody took over since: that one has only to learn the new name.
    async fn adopt(&self, shard: Shard, stored: u128, current: Incarnation) -> Result<(), StoreError> {
        if stored == current.0 {
            return Ok(());
        }
        tracing::error!(%shard, "the store may have lost the end of this shard: it is taken over, ids jump");
        match self.store.define(Define::Adopt { shard, stored: Incarnation(stored) }).await {
            Ok(_) => {
                count_adoption();
                Ok(())
            }
            // Yet another life: the next call learns which.
            Err(StoreError::Adopt { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl std::fmt::Debug for Catalogue {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Catalogue").field("streams", &self.known.read().len()).finish()
    }
}
