//! Bodies on their way in and out, which tell their line what happens.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::future::BoxFuture;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};

use super::line::{Line, Phase};
use crate::seam;

/// Why a body cannot be read to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyFault {
    /// The caller sends nothing any more.
    #[error("nothing came for {} s", .0.as_secs_f64())]
    Stalled(Duration),
}

/// A body on its way in.
pub(super) struct Arriving {
    body: Incoming,
    line: Arc<Line>,
    patience: Duration,
    late: Option<BoxFuture<'static, ()>>,
}

impl Arriving {
    pub(super) fn new(body: Incoming, line: Arc<Line>, patience: Duration) -> Self {
        Self { body, line, patience, late: None }
    }
}

impl HttpBody for Arriving {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            this.late = None;
            this.line.enter_with_body(Phase::Working);
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let patience = this.patience;
        let late = this.late.get_or_insert_with(|| {
            this.line.enter_with_body(Phase::Body);
            Box::pin(seam::pass(patience))
        });
        ready!(late.as_mut().poll(context));
        this.line.enter_with_body(Phase::Working);
        Poll::Ready(Some(Err(BodyFault::Stalled(patience).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A body on its way out. Once it is gone, the next request is awaited.
pub(super) struct Leaving {
    body: Body,
    line: Arc<Line>,
}

impl Leaving {
    pub(super) fn new(body: Body, line: Arc<Line>) -> Self {
        line.enter(Phase::Answering);
        Self { body, line }
    }
}

impl HttpBody for Leaving {
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

impl Drop for Leaving {
    fn drop(&mut self) {
        self.line.enter(Phase::Idle);
    }
}
