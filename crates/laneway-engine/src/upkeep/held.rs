//! What keeps files of the store from being given back: shown to whoever asks, and reported where somebody has to do
//! something about it.

use std::collections::HashSet;
use std::time::Duration;

use laneway_core::event::Dedup;
use laneway_core::store::Held;
use laneway_core::{Draft, EventId, Partition, Store, StoreError, StreamInfo};

use crate::log::{Catalogue, CatalogueError};
use crate::observe::{Report, SYSTEM_STREAM, report, send_report, show_held_bytes};

/// So much must be held by a processor before it is reported: less is the work of a while.
const REPORTED_BYTES: u64 = 1 << 30;
/// The same holder is not reported again for so long.
const REPORTED_EVERY: Duration = Duration::from_secs(24 * 3_600);

/// Files of the store that must stay, with the names of who needs them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldView {
    /// The stream of which something old is needed.
    pub stream: String,
    /// The partition of it.
    pub partition: Partition,
    /// The first event that must stay.
    pub event: EventId,
    /// Bytes of files from there on.
    pub bytes: u64,
    /// Why: `processor`, `lane`, `keep` or `results`.
    pub by: &'static str,
    /// The processor that has to do something first.
    pub processor: Option<String>,
}

impl std::fmt::Display for HeldView {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { stream, partition, event, bytes, .. } = self;
        write!(out, "{} MiB of the log since event {event} of {stream}/{partition}: ", bytes >> 20)?;
        match (self.by, &self.processor) {
            ("lane", Some(processor)) => {
                write!(out, "it waits in a lane that processor {processor} has stopped")
            }
            (_, Some(processor)) => write!(out, "processor {processor} has not passed it"),
            ("keep", None) => write!(out, "the stream keeps its events for a while"),
            _ => write!(out, "results of jobs before it can still be read"),
        }
    }
}

/// What keeps files of the store, oldest first.
pub(crate) async fn held(store: &dyn Store, catalogue: &Catalogue) -> Result<Vec<HeldView>, StoreError> {
    let mut views = Vec::new();
    for held in store.held().await? {
        match catalogue.stream_of(held.shard.stream).await {
            Ok(stream) => views.push(view(held, &stream)),
            // Removed meanwhile: it holds nothing any more.
            Err(CatalogueError::NoStream(_) | CatalogueError::NoProcessor(_)) => {}
            Err(CatalogueError::Store(error)) => return Err(error),
        }
    }
    Ok(views)
}

fn view(held: Held, stream: &StreamInfo) -> HeldView {
    let name = |id| stream.processors.iter().find(|processor| processor.id == id);
    let processor = held.by.processor().and_then(name).map(|processor| processor.name.clone());
    HeldView {
        stream: stream.name.clone(),
        partition: held.shard.partition,
        event: held.event,
        bytes: held.bytes,
        by: held.by.word(),
        processor,
    }
}

/// Shows and reports what is held, again and again.
#[derive(Debug, Default)]
pub(super) struct HeldWatch {
    /// What was shown: it is shown as nothing when it is over.
    shown: HashSet<(String, &'static str)>,
}

impl HeldWatch {
    /// Looks once.
    pub(super) async fn look(&mut self, store: &dyn Store, catalogue: &Catalogue) {
        let views = match held(store, catalogue).await {
            Ok(views) => views,
            Err(error) => return tracing::warn!(%error, "the store did not say what holds its files"),
        };
        self.show(&views);
        for view in views.iter().filter(|view| view.processor.is_some() && view.bytes >= REPORTED_BYTES) {
            if let Err(error) = tell(store, catalogue, view).await {
                tracing::warn!(error, held = %view, "what holds files of the store could not be reported");
            }
        }
    }

    fn show(&mut self, views: &[HeldView]) {
        let now: HashSet<_> = views.iter().map(|view| (view.stream.clone(), view.by)).collect();
        for (stream, by) in self.shown.difference(&now) {
            show_held_bytes(stream, by, 0);
        }
        views.iter().for_each(|view| show_held_bytes(&view.stream, view.by, view.bytes));
        self.shown = now;
    }
}

async fn tell(store: &dyn Store, catalogue: &Catalogue, view: &HeldView) -> Result<(), String> {
    let system = match catalogue.stream(SYSTEM_STREAM).await {
        Ok(system) => system,
        // Nobody wants reports.
        Err(CatalogueError::NoStream(_)) => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    let about = catalogue.stream(&view.stream).await.map_err(|error| error.to_string())?;
    let shard = about.shard(view.partition);
    let processor = view.processor.as_deref().unwrap_or_default();
    let what = Report::StoreHeld { event: view.event, bytes: view.bytes, by: view.by };
    let dedup = Dedup { id: format!("held/{shard}/{}", view.event).into(), body: 0, window: REPORTED_EVERY };
    let draft = Draft { dedup: Some(dedup), ..report(what, processor, &view.stream, shard) };
    send_report(store, catalogue, system.id, draft).await
}
