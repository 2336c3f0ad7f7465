//! How much is under way at once: calls, calls that wait, and bytes of bodies in memory.
//!
//! What does not fit is refused at once with `overloaded`: callers who come again later get further than a queue that grows.
//! A call has its place from the moment its body is whole, so that slow senders take no place away from others. Long polls and
//! streams are counted apart: they wait most of their time, and must not stand in the way of calls that do not.

use std::sync::Arc;

use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::code::Code;
use super::error::{Failure, Result};
use super::gate::Limits;
use super::scopes::Need;
use crate::access::Scope;

/// Memory is counted in pieces of so many bytes.
const PIECE_BYTES: usize = 1 << 10;

/// What kind of place a call takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It is answered as soon as possible.
    Call,
    /// It waits for something to happen, or streams.
    Waiting,
}

/// What kind of place a request takes.
pub(super) fn kind(need: Need, path: Option<&str>, headers: &HeaderMap) -> Kind {
    let says = |name, word: &str| {
        headers.get_all(name).iter().any(|value| String::from_utf8_lossy(value.as_bytes()).contains(word))
    };
    let claims = need == Need::Scope(Scope::Work) && path.is_some_and(|path| path.ends_with("/claim"));
    let waits = claims
        || says(HeaderName::from_static("prefer"), "wait")
        || says(ACCEPT, "text/event-stream")
        || says(CONTENT_TYPE, "ndjson");
    if waits { Kind::Waiting } else { Kind::Call }
}

/// All places there are.
#[derive(Debug)]
pub(super) struct Load {
    calls: Arc<Semaphore>,
    calls_max: usize,
    waiting: Arc<Semaphore>,
    waiting_max: usize,
    memory: Arc<Semaphore>,
    memory_max: usize,
}

impl Load {
    pub(super) fn new(limits: &Limits) -> Self {
        let semaphore = |count: usize| Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        Self {
            calls: semaphore(limits.calls),
            calls_max: limits.calls,
            waiting: semaphore(limits.waiting),
            waiting_max: limits.waiting,
            memory: semaphore(limits.body_memory_bytes / PIECE_BYTES),
            memory_max: limits.body_memory_bytes,
        }
    }

    /// A place for one more call.
    pub(super) fn place(&self, kind: Kind) -> Result<OwnedSemaphorePermit> {
        let (places, max, what) = match kind {
            Kind::Call => (&self.calls, self.calls_max, "http.calls_max: calls under way"),
            Kind::Waiting => (&self.waiting, self.waiting_max, "http.waiting_max: calls that wait or stream"),
        };
        Arc::clone(places).try_acquire_owned().map_err(|_| {
            Failure::new(
                Code::Overloaded,
                format!("there are {max} ({what}) already, at most {max} are taken"),
            )
        })
    }

    /// Whether no call is under way.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.calls.available_permits() == self.calls_max
            && self.waiting.available_permits() == self.waiting_max
    }

    /// Memory for a body; nothing of it is taken yet.
    pub(super) fn memory(&self) -> Memory {
        Memory { pool: Arc::clone(&self.memory), max: self.memory_max, taken: None, used: 0 }
    }
}

/// Memory that one body takes.
#[derive(Debug)]
pub(super) struct Memory {
    pool: Arc<Semaphore>,
    max: usize,
    taken: Option<OwnedSemaphorePermit>,
    used: usize,
}

impl Memory {
    /// Takes so many bytes more.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<()> {
        self.used += bytes;
        let taken = self.taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = self.used.div_ceil(PIECE_BYTES).saturating_sub(taken);
        if more == 0 {
            return Ok(());
        }
        let max = self.max;
        let full = || {
            let detail = format!(
                "bodies of calls under way take {max} bytes (http.body_memory_bytes_max), and this one finds no room"
            );
            Failure::new(Code::Overloaded, detail)
        };
        let count = u32::try_from(more).map_err(|_| full())?;
        let permit = Arc::clone(&self.pool).try_acquire_many_owned(count).map_err(|_| full())?;
        match &mut self.taken {
            Some(taken) => taken.merge(permit),
            None => self.taken = Some(permit),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_over_all_bodies_and_given_back() {
        let load = Load::new(&Limits { body_memory_bytes: 10 * PIECE_BYTES, ..Limits::default() });
        let (mut one, mut other) = (load.memory(), load.memory());
        one.grow(6 * PIECE_BYTES).unwrap();
        one.grow(1).unwrap();
        other.grow(3 * PIECE_BYTES).unwrap();
        let refused = other.grow(1).unwrap_err();
        assert!(refused.code == Code::Overloaded && refused.detail.contains("10240"), "{refused:?}");
        drop(one);
        other.grow(7 * PIECE_BYTES).unwrap_err();
        load.memory().grow(7 * PIECE_BYTES).unwrap();
    }

    #[test]
    fn calls_that_wait_are_counted_apart() {
        let load = Load::new(&Limits { calls: 1, waiting: 1, ..Limits::default() });
        let call = load.place(Kind::Call).unwrap();
        let waiting = load.place(Kind::Waiting).unwrap();
        for (kind, says) in [(Kind::Call, "http.calls_max"), (Kind::Waiting, "http.waiting_max")] {
            let refused = load.place(kind).unwrap_err();
            assert!(refused.code == Code::Overloaded && refused.detail.contains(says), "{refused:?}");
        }
        drop((call, waiting));
        assert!(load.place(Kind::Call).is_ok());
    }
}
