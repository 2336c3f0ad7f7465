//! Watches what keeps the store from deleting old files. Sets the metric, and reports processors that block deletion of a
//! lot of data on the system stream.

use std::collections::HashSet;
use std::time::Duration;

use laneway_core::event::Dedup;
use laneway_core::store::Held;
use laneway_core::{Draft, EventId, Partition, Store, StoreError, StreamInfo};

use crate::log::{Catalogue, CatalogueError};
use crate::observe::{Report, SYSTEM_STREAM, report, send_report, show_held_bytes};

/// Processors that block less than this are not reported.
const REPORTED_BYTES: u64 = 1 << 30;
/// Minimum time between two reports about the same event.
const REPORTED_EVERY: Duration = Duration::from_secs(24 * 3_600);

/// Files that the store cannot delete, with the names of stream and processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldView {
    /// The stream that still needs old data.
    pub stream: String,
    /// The partition of that stream.
    pub partition: Partition,
    /// The first event that must stay.
    pub event: EventId,
    /// Bytes of files from that event on.
    pub bytes: u64,
    /// The reason: `processor`, `lane`, `keep` or `results`.
    pub by: &'static str,
    /// The processor that blocks deletion, if one does.
    pub processor: Option<String>,
}

impl std::fmt::Display for HeldView {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { stream, partition, event, bytes, .. } = self;
        write!(out, "{} MiB of the log since event {event} of {stream}/{partition}: ", bytes >> 20)?;
        match (self.by, &self.processor) {
            ("lane", Some(processor)) => {
                write!(out, "it waits in a stopped lane of processor {processor}")
            }
            (_, Some(processor)) => write!(out, "processor {processor} has not processed it"),
            ("keep", None) => write!(out, "the stream keeps its events (keep)"),
            _ => write!(out, "job results before it have not expired"),
        }
    }
}

/// Returns what keeps the store from deleting its oldest files.
pub(crate) async fn held(store: &dyn Store, catalogue: &Catalogue) -> Result<Vec<HeldView>, StoreError> {
    let mut views = Vec::new();
    for held in store.held().await? {
        match catalogue.stream_of(held.shard.stream).await {
            Ok(stream) => views.push(view(held, &stream)),
            // The stream was removed meanwhile, so it blocks nothing.
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

/// Publishes what keeps old files: sets the gauges and sends reports.
#[derive(Debug, Default)]
pub(super) struct HeldWatch {
    /// Gauges set in the last round, to reset those that no longer apply.
    shown: HashSet<(String, &'static str)>,
}

impl HeldWatch {
    /// Runs one round.
    pub(super) async fn look(&mut self, store: &dyn Store, catalogue: &Catalogue) {
        let views = match held(store, catalogue).await {
            Ok(views) => views,
            Err(error) => return tracing::warn!(%error, "could not read what keeps the store's files"),
        };
        self.show(&views);
        for view in views.iter().filter(|view| view.processor.is_some() && view.bytes >= REPORTED_BYTES) {
            if let Err(error) = tell(store, catalogue, view).await {
                tracing::warn!(error, held = %view, "could not report what keeps the store's files");
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
        // Reports are turned off.
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
