//! One run of one event: what it was given, and what it has done so far.
//!
//! A run's effects gather here and leave together when it succeeds; a failed run leaves nothing behind.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::{Event, Partition, RunFence, Steady};
use laneway_engine::Engine;
use laneway_engine::handler::{CancelToken, Done, Emission, LastDone, Progress, StateChange};
use parking_lot::Mutex;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::format::{self, FormatError};
use crate::record::Record;

/// What all runs of a processor share.
pub(crate) struct Ground {
    pub(crate) engine: Engine,
    pub(crate) stream: Arc<str>,
    pub(crate) processor: Arc<str>,
    /// Values handed to `Laneway::state`, by type.
    pub(crate) states: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    /// Where records of a type are emitted to.
    pub(crate) emit_to: HashMap<TypeId, Arc<str>>,
}

/// One run of one event, as [`Extract`](super::Extract) sees it.
///
/// ```
/// use laneway::extract::Scope;
///
/// fn describe(scope: &Scope) -> String {
///     format!("attempt {} at event {}", scope.attempt(), scope.event().id)
/// }
/// ```
pub struct Scope {
    parts: ScopeParts,
    /// The state of the lane before this run.
    state: Option<Bytes>,
    kept: Mutex<Kept>,
    emits: Mutex<Vec<Emission>>,
}

/// What the engine says of a run.
#[derive(Clone)]
pub(crate) struct ScopeParts {
    pub(crate) ground: Arc<Ground>,
    pub(crate) partition: Partition,
    pub(crate) event: Event,
    pub(crate) attempt: u32,
    pub(crate) fence: RunFence,
    pub(crate) last_done: Option<LastDone>,
    pub(crate) progress: Progress,
    pub(crate) cancel: CancelToken,
    pub(crate) deadline: Option<Steady>,
}

/// Where the lane's state is.
pub(crate) enum Kept {
    /// Nobody asked for it.
    Here,
    /// The handler has it.
    Lent,
    /// It came back as it was.
    Same,
    /// It came back changed.
    Changed(Result<Bytes, FormatError>),
    /// It came back to be removed.
    Removed,
}

/// What a successful run leaves behind.
pub(crate) struct Finished {
    pub(crate) done: Done,
    pub(crate) state: StateChange,
}

impl Scope {
    pub(crate) fn new(parts: ScopeParts, state: Option<Bytes>) -> Self {
        Self { parts, state, kept: Mutex::new(Kept::Here), emits: Mutex::default() }
    }

    /// The event.
    pub fn event(&self) -> &Event {
        &self.parts.event
    }

    /// Which attempt at it, from 1.
    pub fn attempt(&self) -> u32 {
        self.parts.attempt
    }

    /// A value that was handed to [`Laneway::state`](crate::Laneway::state).
    pub fn shared<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let value = self.parts.ground.states.get(&TypeId::of::<T>())?;
        Arc::clone(value).downcast().ok()
    }

    pub(crate) fn parts(&self) -> &ScopeParts {
        &self.parts
    }

    /// The record that the event carries. Bytes that are none will never be one.
    pub(crate) fn record<T: Record>(&self) -> Result<T> {
        format::decode("the event's data", &self.parts.event.data).map_err(Error::permanent)
    }

    /// The result as bytes, if somebody wants it.
    pub(crate) fn result<R: Serialize>(&self, result: &R) -> Result<Option<Bytes>> {
        self.parts.event.job.map_or(Ok(None), |_| self.result_of_any(result))
    }

    /// The result as bytes, though perhaps nobody wants it.
    pub(crate) fn result_of_any<R: Serialize>(&self, result: &R) -> Result<Option<Bytes>> {
        format::encode("the result", result).map(Some).map_err(Error::permanent)
    }

    /// Whether the run has left nothing that could not be split among the events of a batch.
    pub(crate) fn is_untouched(&self) -> bool {
        matches!(*self.kept.lock(), Kept::Here | Kept::Same) && self.emits.lock().is_empty()
    }

    /// Lends the lane's state to the handler, once.
    pub(crate) fn lend_state(&self) -> Result<Option<Bytes>> {
        let mut kept = self.kept.lock();
        if !matches!(*kept, Kept::Here) {
            return Err(Error::permanent("a handler takes LaneState once, and gives it back when it ends"));
        }
        *kept = Kept::Lent;
        Ok(self.state.clone())
    }

    pub(crate) fn give_back(&self, kept: Kept) {
        *self.kept.lock() = kept;
    }

    pub(crate) fn emit(&self, emission: Emission) {
        self.emits.lock().push(emission);
    }

    /// The effects of a run that succeeded.
    pub(crate) fn finish(&self, result: Option<Bytes>) -> Result<Finished> {
        let state = match std::mem::replace(&mut *self.kept.lock(), Kept::Here) {
            Kept::Here | Kept::Same => StateChange::Keep,
            Kept::Changed(bytes) => {
                let bytes = bytes.map_err(Error::permanent)?;
                if self.state.as_ref() == Some(&bytes) { StateChange::Keep } else { StateChange::Set(bytes) }
            }
            Kept::Removed if self.state.is_none() => StateChange::Keep,
            Kept::Removed => StateChange::Remove,
            Kept::Lent => {
                return Err(Error::permanent("the handler kept its LaneState past the end of its run"));
            }
        };
        let emits = std::mem::take(&mut *self.emits.lock());
        Ok(Finished { done: Done { result, emits }, state })
    }

    /// How long the run may still take.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        let now = self.parts.ground.engine.env().clock().steady();
        self.parts.deadline.map(|deadline| deadline.since(now))
    }
}
