//! This process as the HTTP side sees it: the app, its desks, and whether it is about to end.

use std::collections::HashMap;
use std::sync::Arc;

use laneway::engine::handler::Desk;
use laneway::engine::{DefineError, Engine, Registration};
use laneway::{Laneway, Steady, Timestamp};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::duties::{Duties, Runner};
use crate::http::FOLLOWERS_MAX;
use crate::seam;

/// What the store keeps of the handler of a processor whose events remote workers claim.
pub(crate) const PULL: &str = "pull";

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
    pub(crate) fn new(app: Laneway, duties: Duties) -> (Self, watch::Sender<Ending>) {
        let (end, ending) = watch::channel(Ending::Not);
        let token = format!("{:032x}", app.engine().env().token().0);
        let birth = Arc::new(Birth { token, at: seam::now(), steady: seam::steady() });
        let (followers, changing) = (Arc::new(Semaphore::new(FOLLOWERS_MAX)), Arc::new(Semaphore::new(1)));
        (
            Self { app, desks: Arc::default(), ending, followers, birth, duties: Arc::new(duties), changing },
            end,
        )
    }

    /// The engine, which handles bytes.
    pub(crate) fn engine(&self) -> &Engine {
        self.app.engine()
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

/// Offers the events of all processors that were registered for remote workers and are run here, as they were registered.
pub(crate) async fn resume_pull(engine: &Engine, duties: &Duties) -> Result<(), DefineError> {
    for view in engine.processors().await? {
        match view.stored {
            Ok(stored)
                if stored.handler == PULL && !view.runs_here && duties.runs(&view.name, Runner::Workers) =>
            {
                let registration = Registration {
                    settings: stored.settings,
                    handler: stored.handler,
                    ..Registration::new(view.name, view.stream)
                };
                engine.process_at_desk_as(registration).await?;
            }
            Ok(_) => {}
            Err(error) => tracing::error!(processor = view.name, %error, "this processor is not run"),
        }
    }
    Ok(())
}
