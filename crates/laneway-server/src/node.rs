//! This process as the HTTP side sees it: the app, its desks, and whether it is about to end.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use laneway::engine::handler::Desk;
use laneway::engine::{DefineError, Engine, Registration};
use laneway::files::FileStore;
use laneway::{Laneway, Steady, Timestamp};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::duties::{Duties, Runner};
use crate::handlers::{Rules, Target, Web};
use crate::http::FOLLOWERS_MAX;
use crate::seam;

/// What the store keeps of the handler of a processor whose events remote workers claim.
pub(crate) const PULL: &str = "pull";

/// What the store keeps of the handler of a processor whose endpoint was named over the API, before its URL.
const ENDPOINT: &str = "http:";

/// What the store knows of a handler.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Remote workers claim.
    Pull,
    /// An endpoint that was named over the API.
    Endpoint(String),
    /// The file or a program says what it is.
    Other,
}

impl Kind {
    /// What is kept of a handler.
    pub(crate) fn of(stored: &[u8]) -> Self {
        if stored == PULL.as_bytes() {
            return Self::Pull;
        }
        let text = std::str::from_utf8(stored).ok();
        text.and_then(|text| text.strip_prefix(ENDPOINT))
            .map_or(Self::Other, |url| Self::Endpoint(url.to_owned()))
    }

    /// What is kept of an endpoint.
    pub(crate) fn endpoint(url: &str) -> Vec<u8> {
        format!("{ENDPOINT}{url}").into_bytes()
    }
}

/// What every call works on. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    app: Laneway,
    desks: Arc<Mutex<HashMap<String, Arc<Desk>>>>,
    ending: watch::Receiver<Ending>,
    followers: Arc<Semaphore>,
    birth: Arc<Birth>,
    duties: Arc<Duties>,
    /// Whoever has it changes a processor.
    changing: Arc<Semaphore>,
    /// Where endpoints that are named over the API may be; nothing if there can be none.
    webhooks: Option<Arc<Rules>>,
    /// Folder for backups that are asked for over the API.
    backup_dir: Option<Arc<Path>>,
    /// Its permit belongs to the backup that is being made.
    backing_up: Arc<Semaphore>,
}

/// Who this process is, from its start to its end.
#[derive(Debug)]
pub(crate) struct Birth {
    /// Made anew at every start.
    pub(crate) token: String,
    /// When that was.
    pub(crate) at: Timestamp,
    /// The same by the clock that never goes back.
    pub(crate) steady: Steady,
}

/// How far the process is with its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ending {
    /// It is not to end.
    Not,
    /// Nothing new is begun.
    Stopping,
    /// Nothing is run or decided here any more.
    Drained,
}

impl Node {
    /// A node; the sender says how far its end is.
    pub(crate) fn new(
        app: Laneway,
        duties: Duties,
        webhooks: Option<Arc<Rules>>,
        backup_dir: Option<PathBuf>,
    ) -> (Self, watch::Sender<Ending>) {
        let (end, ending) = watch::channel(Ending::Not);
        let token = format!("{:032x}", app.engine().env().token().0);
        let birth = Arc::new(Birth { token, at: seam::now(), steady: seam::steady() });
        let (followers, changing) = (Arc::new(Semaphore::new(FOLLOWERS_MAX)), Arc::new(Semaphore::new(1)));
        (
            Self {
                app,
                desks: Arc::default(),
                ending,
                followers,
                birth,
                duties: Arc::new(duties),
                changing,
                webhooks,
                backup_dir: backup_dir.map(Arc::from),
                backing_up: Arc::new(Semaphore::new(1)),
            },
            end,
        )
    }

    /// The engine, which handles bytes.
    pub(crate) fn engine(&self) -> &Engine {
        self.app.engine()
    }

    /// Where endpoints that are named over the API may be; nothing if there can be none.
    pub(crate) fn webhooks(&self) -> Option<&Arc<Rules>> {
        self.webhooks.as_ref()
    }

    /// The store, if it is a folder on this machine.
    pub(crate) fn files(&self) -> Option<&FileStore> {
        self.app.files()
    }

    /// Folder for backups that are asked for over the API.
    pub(crate) fn backup_dir(&self) -> Option<&Arc<Path>> {
        self.backup_dir.as_ref()
    }

    /// The permit to make a backup; none while one is being made.
    pub(crate) fn backing_up(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.backing_up).try_acquire_owned().ok()
    }

    /// What it does.
    pub(crate) fn duties(&self) -> &Duties {
        &self.duties
    }

    /// The desk of a processor that remote workers claim from.
    ///
    /// A processor that is drained is no longer the engine's, and its workers must still be able to settle what they
    /// have: so the desk that was last seen is good until the process ends.
    pub(crate) fn desk(&self, processor: &str) -> Option<Arc<Desk>> {
        let mut desks = self.desks.lock();
        match self.engine().desk(processor) {
            Some(desk) => {
                desks.insert(processor.to_owned(), Arc::clone(&desk));
                Some(desk)
            }
            None if self.is_stopping() => desks.get(processor).cloned(),
            None => {
                desks.remove(processor);
                None
            }
        }
    }

    /// A place among those who follow events; nothing when all are taken.
    pub(crate) fn follower(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.followers).try_acquire_owned().ok()
    }

    /// Who this process is.
    pub(crate) fn birth(&self) -> &Birth {
        &self.birth
    }

    /// The right to look at a processor and to change it, in one step for everybody else.
    pub(crate) async fn changing(&self) -> OwnedSemaphorePermit {
        let permit = Arc::clone(&self.changing).acquire_owned().await;
        permit.expect("it is never closed")
    }

    /// Runs here too what other nodes were told a moment ago.
    pub(crate) async fn follow_now(&self) -> Result<(), DefineError> {
        if !self.engine().is_in_cluster() {
            return Ok(());
        }
        match resume(self.engine(), &self.duties, self.webhooks.as_ref()).await {
            // It is being looked at already.
            Err(DefineError::AlreadyRuns(_)) => Ok(()),
            resumed => resumed,
        }
    }

    /// Whether the process is about to end.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.ending.borrow() >= Ending::Stopping
    }

    /// Resolves when the process is about to end: whoever waits answers what there is.
    pub(crate) async fn stopping(&self) {
        self.ends(Ending::Stopping).await;
    }

    /// Resolves when this process decides nothing any more.
    pub(crate) async fn drained(&self) {
        self.ends(Ending::Drained).await;
    }

    async fn ends(&self, so_far: Ending) {
        let mut ending = self.ending.clone();
        // A sender that is gone can only mean the same.
        drop(ending.wait_for(|ending| *ending >= so_far).await);
    }
}

/// Runs all processors that were registered over the API and are run here, as they were registered.
pub(crate) async fn resume(
    engine: &Engine,
    duties: &Duties,
    webhooks: Option<&Arc<Rules>>,
) -> Result<(), DefineError> {
    for view in engine.processors().await?.into_iter().filter(|view| !view.runs_here) {
        let processor = view.name.clone();
        let stored = match view.stored {
            Ok(stored) => stored,
            Err(error) => {
                tracing::error!(processor, %error, "this processor is not run");
                continue;
            }
        };
        let kind = Kind::of(&stored.handler);
        let registration = Registration {
            settings: stored.settings,
            handler: stored.handler,
            ..Registration::new(view.name, view.stream)
        };
        match kind {
            Kind::Pull if duties.runs(&processor, Runner::Workers) => {
                engine.process_at_desk_as(registration).await?;
            }
            Kind::Endpoint(url) if duties.runs(&processor, Runner::Handler) => match endpoint(&url, webhooks)
            {
                Ok(web) => engine.process_as(registration, Arc::new(web)).await?,
                Err(error) => tracing::error!(processor, error, "this processor is not run"),
            },
            Kind::Pull | Kind::Endpoint(_) | Kind::Other => {}
        }
    }
    Ok(())
}

/// How often it is looked at what other nodes were told.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long runs may go on when another node was told to change their processor.
const CHANGE_WITHIN: Duration = Duration::from_secs(10);

/// Runs here too what was registered or changed over the API of another node. Ends at once where there are no others.
pub(crate) async fn follow(engine: &Engine, duties: &Duties, webhooks: Option<&Arc<Rules>>) {
    while engine.is_in_cluster() {
        seam::pass(LOOK_EVERY).await;
        let followed = async {
            engine.follow_changes(CHANGE_WITHIN).await?;
            resume(engine, duties, webhooks).await
        };
        match followed.await {
            // Somebody asks the same of this node at this moment.
            Ok(()) | Err(DefineError::AlreadyRuns(_)) => {}
            Err(error) => tracing::warn!(%error, "what other nodes were told is looked at again"),
        }
    }
}

fn endpoint(url: &str, webhooks: Option<&Arc<Rules>>) -> Result<Web, String> {
    let rules = webhooks.ok_or("webhook.secret is not set, so its endpoint cannot be called")?;
    let target = Target::parse(url, rules).map_err(|wrong| format!("its endpoint {wrong}"))?;
    Ok(Web::guarded(target, Arc::clone(rules)))
}
