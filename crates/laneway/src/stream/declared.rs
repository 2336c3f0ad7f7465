//! What a program says of a stream. Settings it does not mention stay as they are in the store.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::{ConflictReason, Mode, Refusal, StoreError, StreamInfo, StreamSettings};
use laneway_engine::log::CatalogueError;
use laneway_engine::{DefineError, Engine};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

/// Times a definition is tried when another process defines the same stream at the same moment.
const TRIES_MAX: u32 = 3;

/// A stream that a program named.
#[derive(Debug)]
pub(crate) struct Declared {
    pub(crate) name: Arc<str>,
    wanted: Mutex<Wanted>,
    defined: OnceCell<()>,
}

/// The settings that were mentioned.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) partitions: Option<u32>,
    pub(crate) mode: Option<Mode>,
    pub(crate) keep: Option<Duration>,
    pub(crate) dead_keep: Option<Duration>,
    pub(crate) keep_done: Option<Duration>,
    pub(crate) max_pending: Option<u64>,
    pub(crate) dedup_window: Option<Duration>,
    pub(crate) dedup_max: Option<u64>,
    pub(crate) responder: Option<String>,
    pub(crate) forget_lanes_after: Option<Duration>,
}

impl Declared {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: Arc::from(name), wanted: Mutex::default(), defined: OnceCell::new() }
    }

    /// Changes what is wanted, and answers so; after the first use it is too late.
    pub(crate) fn want(&self, change: impl FnOnce(&mut Wanted)) -> bool {
        let in_time = !self.defined.initialized();
        if in_time {
            change(&mut self.wanted.lock());
        }
        in_time
    }

    /// Refuses what is wanted if it could not be made of what is there.
    pub(crate) fn check_over(&self, before: Option<&Arc<StreamInfo>>) -> Result<(), Refusal> {
        let wanted = self.wanted.lock().clone();
        match before {
            Some(before) => wanted.over(before.settings.clone()).check_change(&before.settings),
            None => wanted.over(StreamSettings::default()).check(),
        }
    }

    /// Makes sure that the stream is there as wanted.
    pub(crate) async fn define(&self, engine: &Engine) -> Result<(), DefineError> {
        self.defined.get_or_try_init(|| self.define_now(engine)).await.copied()
    }

    async fn define_now(&self, engine: &Engine) -> Result<(), DefineError> {
        let wanted = self.wanted.lock().clone();
        for tried in 1.. {
            let stored: Option<Arc<StreamInfo>> = match engine.catalogue().stream(&self.name).await {
                Ok(info) => Some(info),
                Err(CatalogueError::NoStream(_)) => None,
                Err(error) => return Err(error.into()),
            };
            let settings = wanted.clone().over(stored.map(|info| info.settings.clone()).unwrap_or_default());
            match engine.define_stream(&self.name, settings).await {
                Ok(_) => break,
                Err(DefineError::Store(StoreError::Conflict(conflict)))
                    if matches!(conflict.reason, ConflictReason::Version { .. }) && tried < TRIES_MAX =>
                {
                    engine.catalogue().refresh().await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Wanted {
    fn over(self, settings: StreamSettings) -> StreamSettings {
        StreamSettings {
            partitions: self.partitions.unwrap_or(settings.partitions),
            mode: self.mode.unwrap_or(settings.mode),
            keep: self.keep.unwrap_or(settings.keep),
            max_pending: self.max_pending.or(settings.max_pending),
            dedup_window: self.dedup_window.unwrap_or(settings.dedup_window),
            dedup_max: self.dedup_max.unwrap_or(settings.dedup_max),
            dead_keep: self.dead_keep.unwrap_or(settings.dead_keep),
            keep_done: self.keep_done.unwrap_or(settings.keep_done),
            responder: self.responder.or(settings.responder),
            forget_lanes_after: self.forget_lanes_after.or(settings.forget_lanes_after),
        }
    }
}
