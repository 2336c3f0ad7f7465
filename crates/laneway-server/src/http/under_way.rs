//! The request that this task answers: its limits, who sent it, and the room it takes.
//!
//! It is known to the task, so that reading a body finds its limits without every call handing them on. What goes on after
//! the call, such as an answer that streams, knows it no more; only its room is kept as long as the answer lasts.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::error::Result;
use super::gate::{Gate, Limits};
use super::load::{Kind, Memory};
use crate::access::Caller;

tokio::task_local! {
    pub(super) static REQUEST: UnderWay;
}

/// One request.
pub(super) struct UnderWay {
    gate: Arc<Gate>,
    caller: Option<Caller>,
    room: Arc<Mutex<Room>>,
    /// Whether its caller hung up. A call that changes something goes on then, but need not wait for anything.
    caller_gone: Arc<watch::Sender<bool>>,
}

/// What a request takes until it is answered.
pub(super) struct Room {
    place: Option<OwnedSemaphorePermit>,
    memory: Memory,
}

impl UnderWay {
    pub(super) fn new(gate: Arc<Gate>, caller: Option<Caller>) -> Self {
        let room = Room { place: None, memory: gate.memory() };
        Self {
            gate,
            caller,
            room: Arc::new(Mutex::new(room)),
            caller_gone: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Where the call learns that its caller hung up.
    pub(super) fn caller_gone(&self) -> Arc<watch::Sender<bool>> {
        Arc::clone(&self.caller_gone)
    }

    /// Who sent it, if it had a token.
    pub(super) fn caller(&self) -> Option<&Caller> {
        self.caller.as_ref()
    }

    /// What it takes.
    pub(super) fn room(&self) -> Arc<Mutex<Room>> {
        Arc::clone(&self.room)
    }

    /// Takes a place until its end, unless it has one.
    pub(super) fn take_place(&self, kind: Kind) -> Result<()> {
        let mut room = self.room.lock();
        if room.place.is_none() {
            room.place = Some(self.gate.place(kind)?);
        }
        Ok(())
    }
}

/// The limits of the request that this task answers.
pub(super) fn limits() -> Limits {
    REQUEST.with(|request| *request.gate.limits())
}

/// The name of the token of the request that this task answers.
pub(super) fn caller() -> Option<String> {
    REQUEST.with(|request| request.caller().map(|caller| caller.name.to_string()))
}

/// Who sent the request that this task answers, for whoever asks who did that.
pub(super) fn by() -> String {
    caller().unwrap_or_else(|| "a call without a token".to_owned())
}

/// Waits until the caller has hung up. Only calls that change something outlive their caller.
pub(super) async fn caller_gone() {
    let mut gone = REQUEST.with(|request| request.caller_gone.subscribe());
    // The request itself holds the sender.
    drop(gone.wait_for(|gone| *gone).await);
}

/// How long to wait on behalf of the caller: not at all once it has hung up.
pub(super) fn patience(within: Duration) -> Duration {
    if REQUEST.with(|request| *request.caller_gone.borrow()) { Duration::ZERO } else { within }
}

/// Counts bytes of its body, which stay in memory until its end.
pub(super) fn keep_bytes(count: usize) -> Result<()> {
    REQUEST.with(|request| request.room.lock().memory.grow(count))
}

/// Its body is whole: from here on it is a call under way.
pub(super) fn body_is_whole() -> Result<()> {
    REQUEST.with(|request| request.take_place(Kind::Call))
}

/// An answer that keeps the room of its request until it is sent.
pub(super) fn keeping(room: Arc<Mutex<Room>>, answer: Response) -> Response {
    answer.map(|body| Body::new(Keeping { body, _room: room }))
}

struct Keeping {
    body: Body,
    _room: Arc<Mutex<Room>>,
}

impl HttpBody for Keeping {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        HttpBody::size_hint(&self.body)
    }
}
