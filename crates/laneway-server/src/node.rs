//! This process as the HTTP side sees it: the app, the claims it handed out, and whether it is about to end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use laneway::engine::handler::{Claim, Desk};
use laneway::engine::{DefineError, Engine, Registration};
use laneway::{EventId, Laneway, Steady};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::seam;

/// What the store keeps of the handler of a processor whose events remote workers claim.
pub(crate) const PULL: &str = "pull";
/// How long a claim is remembered after its lease, so that whoever is late is told so and not that it never was.
const REMEMBER: Duration = Duration::from_secs(60);

/// What every call works on. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    app: Laneway,
    claims: Arc<Claims>,
    desks: Arc<Mutex<HashMap<String, Arc<Desk>>>>,
    stopping: watch::Receiver<bool>,
}

impl Node {
    /// A node; the sender says when it is about to end.
    pub(crate) fn new(app: Laneway) -> (Self, watch::Sender<bool>) {
        let (stop, stopping) = watch::channel(false);
        (Self { app, claims: Arc::default(), desks: Arc::default(), stopping }, stop)
    }

    /// The engine, which handles bytes.
    pub(crate) fn engine(&self) -> &Engine {
        self.app.engine()
    }

    /// The claims that were handed out.
    pub(crate) fn claims(&self) -> &Claims {
        &self.claims
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

    /// Whether the process is about to end.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Resolves when the process is about to end: whoever waits answers what there is.
    pub(crate) async fn stopping(&self) {
        let mut stopping = self.stopping.clone();
        // A sender that is gone can only mean the same.
        drop(stopping.wait_for(|stopping| *stopping).await);
    }
}

/// Offers the events of all processors that were registered for remote workers, as they were registered.
pub(crate) async fn resume_pull(engine: &Engine) -> Result<(), DefineError> {
    for view in engine.processors().await? {
        match view.stored {
            Ok(stored) if stored.handler == PULL => {
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

/// Which events each claim has: a worker says how far it came by naming one.
#[derive(Debug, Default)]
pub(crate) struct Claims(Mutex<HashMap<String, Held>>);

#[derive(Debug)]
struct Held {
    events: Vec<EventId>,
    worker: String,
    expires: Steady,
}

impl Claims {
    /// Remembers new claims, and forgets those whose lease ended long ago.
    pub(crate) fn remember(&self, claims: &[Claim], worker: &str) {
        let now = seam::steady();
        let mut held = self.0.lock();
        held.retain(|_, claim| claim.expires.after(REMEMBER) > now);
        for claim in claims {
            let events = claim.run.events.iter().map(|event| event.id).collect();
            let worker = worker.to_owned();
            held.insert(claim.token.clone(), Held { events, worker, expires: claim.expires });
        }
    }

    /// The events of a claim.
    pub(crate) fn events(&self, token: &str) -> Option<Vec<EventId>> {
        self.0.lock().get(token).map(|claim| claim.events.clone())
    }

    /// Who has a claim, by its own name.
    pub(crate) fn worker(&self, token: &str) -> String {
        self.0.lock().get(token).map(|claim| claim.worker.clone()).unwrap_or_default()
    }

    /// A claim has more time.
    pub(crate) fn extend(&self, token: &str, expires: Steady) {
        if let Some(claim) = self.0.lock().get_mut(token) {
            claim.expires = expires;
        }
    }

    /// A claim is settled.
    pub(crate) fn forget(&self, token: &str) {
        self.0.lock().remove(token);
    }
}
