//! A folder store of its own, with an engine where one is needed. All situations open their stores here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use laneway_core::store::{Query, Rows};
use laneway_core::{Store, StreamSettings, SystemClock};
use laneway_embedded::{FileOptions, FileStore};
use laneway_engine::{Engine, Env, Stores};

use super::{Stream, folder_mib};
use crate::Failure;

/// A folder store.
#[derive(Clone)]
pub(crate) struct Folder {
    pub(crate) store: FileStore,
    path: PathBuf,
}

impl Folder {
    pub(crate) fn open(path: &Path, options: FileOptions) -> Result<Self, Failure> {
        let store = FileStore::open_with(path, options, Arc::new(SystemClock))?;
        Ok(Self { store, path: path.to_owned() })
    }

    /// Creates a stream in it.
    pub(crate) async fn stream(&self, name: &str, settings: StreamSettings) -> Result<Stream, Failure> {
        Stream::create(Arc::new(self.store.clone()), name, settings).await
    }

    /// A stream that it has already.
    pub(crate) async fn existing(&self, name: &str) -> Result<Stream, Failure> {
        let Rows::Streams(streams) = self.store.query(Query::Streams).await? else {
            return Err("the store answered another list than streams".into());
        };
        let info = streams.into_iter().find(|stream| stream.name == name);
        let info = info.ok_or_else(|| format!("the store has no stream {name}"))?;
        Ok(Stream { store: Arc::new(self.store.clone()), info })
    }

    /// An engine that runs nothing yet.
    pub(crate) fn engine(&self) -> Engine {
        let shared = Arc::new(self.store.clone());
        let stores = Stores { store: shared.clone(), documents: shared.clone(), wakeups: shared };
        Engine::new(stores, Env::system())
    }

    /// What its files take on the disk, in MiB.
    pub(crate) fn disk_mib(&self) -> Result<f64, Failure> {
        folder_mib(&self.path)
    }

    pub(crate) fn close(self) -> Result<(), Failure> {
        Ok(self.store.close()?)
    }
}
