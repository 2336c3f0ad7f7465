//! The baseline of the rows over HTTP: an axum handler that reads the JSON and answers, in a process of its own. Nothing is
//! stored.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt as _;
use bytes::{Buf as _, BytesMut};
use futures::StreamExt as _;
use futures::future::{Either, select};
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::net::TcpListener;

use crate::arguments::Child;
use crate::children::Answered;
use crate::{Failure, cpu, seam};

/// The baseline as its parent sees it.
pub(crate) struct Bare {
    child: Answered,
    pub(crate) address: SocketAddr,
}

impl Bare {
    pub(crate) fn start() -> Result<Self, Failure> {
        let child = Answered::start(&Child::BareHttp)?;
        let address = child.answer["address"].as_str().ok_or("the bare handler told no address")?.parse()?;
        Ok(Self { child, address })
    }

    pub(crate) fn cpu_seconds(&self) -> Result<f64, Failure> {
        cpu::seconds_of(self.child.pid())
    }

    pub(crate) fn end(self) -> Result<(), Failure> {
        self.child.kill().map(drop)
    }
}

/// The child: serves, tells its address, and goes on until `wait` returns.
pub(crate) fn child(
    tell: impl FnOnce(&str) -> Result<(), Failure>,
    wait: fn() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let runtime = seam::runtime()?;
    let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
    tell(&format!("{}\n", json!({ "address": listener.local_addr()? })))?;
    let listener = listener.tap_io(|stream| {
        // One that is gone already has no answer to wait for.
        drop(stream.set_nodelay(true));
    });
    let router = Router::new().route("/{bytes}", post(answer)).route("/lines/{bytes}", post(answer_lines));
    let outcome = runtime.block_on(async {
        let served = pin!(axum::serve(listener, router).into_future());
        match select(served, seam::blocking(wait)).await {
            Either::Left((served, _)) => Ok(served?),
            Either::Right((ended, _)) => ended?,
        }
    });
    // A thread that waits for the parent's end must not keep this process.
    runtime.shutdown_background();
    outcome
}

/// Reads the JSON and answers so many bytes of it.
async fn answer(Path(bytes): Path<usize>, body: Bytes) -> Response {
    match serde_json::from_slice::<IgnoredAny>(&body) {
        Ok(_) => (StatusCode::CREATED, [(CONTENT_TYPE, "application/json")], text(bytes)).into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

/// Reads lines of JSON as they come and answers each with so many bytes.
async fn answer_lines(Path(bytes): Path<usize>, body: Body) -> Response {
    let answer = [text(bytes), "\n".to_owned()].concat();
    let mut rest = BytesMut::new();
    let answers = body.into_data_stream().map(move |piece| {
        let Ok(piece) = piece else { return Ok::<_, Infallible>(Bytes::new()) };
        rest.extend_from_slice(&piece);
        let mut answers = String::new();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            match serde_json::from_slice::<IgnoredAny>(&rest[..end]) {
                Ok(_) => answers.push_str(&answer),
                Err(error) => answers.push_str(&format!("{error}\n")),
            }
            rest.advance(end + 1);
        }
        Ok(Bytes::from(answers))
    });
    Body::from_stream(answers).into_response()
}

/// JSON of this length.
fn text(bytes: usize) -> String {
    format!("\"{}\"", "b".repeat(bytes.saturating_sub(2)))
}
