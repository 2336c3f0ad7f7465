//! The settings of `laneway serve` after they were read and checked.

use std::path::PathBuf;

use laneway::StoreOptions;
use tracing_subscriber::filter::LevelFilter;

use super::http::Http;
use super::member::Member;
use super::sections::{Processor, Schedule, Stream};
use super::webhook::Webhook;
use crate::duties::Duties;
use crate::logs::Format;

/// All settings.
#[derive(Debug, PartialEq)]
pub(crate) struct Settings {
    /// `[store]`.
    pub(crate) store: Store,
    /// `[http]`.
    pub(crate) http: Http,
    /// `[node]`.
    pub(crate) node: Duties,
    /// The rest of it, for others on the store.
    pub(crate) member: Member,
    /// `[webhook]`.
    pub(crate) webhook: Webhook,
    /// `[otlp]`: where spans go, if they go anywhere.
    pub(crate) otlp: Option<String>,
    /// `[log]`.
    pub(crate) log: Log,
    /// `[[stream]]`.
    pub(crate) streams: Vec<Stream>,
    /// `[[processor]]`.
    pub(crate) processors: Vec<Processor>,
    /// `[[schedule]]`.
    pub(crate) schedules: Vec<Schedule>,
}

/// Where everything is kept.
#[derive(Debug, PartialEq)]
pub(crate) struct Store {
    /// URL of the store.
    pub(crate) url: String,
    /// Separates applications on one store.
    pub(crate) namespace: String,
    /// What a server is asked for; nothing but `clock_settle` for `file:` and `memory:`.
    pub(crate) shared: StoreOptions,
    /// Folder for backups that are asked for over the API; without it there are none.
    pub(crate) backup_dir: Option<PathBuf>,
}

impl Store {
    /// What to open it with: a store for one process takes no more than how its clock settles.
    pub(crate) fn options(&self) -> StoreOptions {
        if self.is_single() {
            return StoreOptions { clock_settle: self.shared.clock_settle, ..StoreOptions::default() };
        }
        StoreOptions { namespace: Some(self.namespace.clone()), ..self.shared.clone() }
    }

    /// Whether it is for one process only.
    pub(crate) fn is_single(&self) -> bool {
        is_single(&self.url)
    }
}

/// Whether a store is for one process only.
pub(crate) fn is_single(url: &str) -> bool {
    !["redis:", "rediss:", "unix:"].iter().any(|scheme| url.starts_with(scheme))
}

/// What goes to stderr.
#[derive(Debug, PartialEq)]
pub(crate) struct Log {
    /// How important a line must be.
    pub(crate) level: LevelFilter,
    /// What a line looks like.
    pub(crate) format: Format,
}

impl Settings {
    /// Nothing yet: the defaults are in the table, and are read like everything else.
    pub(super) fn unread() -> Self {
        Self {
            store: Store {
                url: String::new(),
                namespace: String::new(),
                shared: StoreOptions::default(),
                backup_dir: None,
            },
            http: Http::on(String::new()),
            node: Duties::all(),
            member: Member::default(),
            webhook: Webhook::default(),
            otlp: None,
            log: Log { level: LevelFilter::OFF, format: Format::Text },
            streams: Vec::new(),
            processors: Vec::new(),
            schedules: Vec::new(),
        }
    }
}
