//! Appends lines of events: reads as many as have come, appends them together, answers each, and reads on when the answers
//! are taken. So memory is bounded by one load of lines in each direction, and whoever is slow slows the other side down.
//!
//! A line that is wrong has its own answer and stops nobody. A failure that is not the line's own, such as a full stream,
//! ends the stream at that line: later ones must not overtake it.

use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use laneway::Mode;
use laneway::core::store::ObjectWrite;
use laneway::core::{Draft, FullReason, StoreError, StreamInfo};
use laneway::engine::log::{AppendError, Appending, Sent};
use laneway_client::wire::{self, LineReceipt};

use super::code::Code;
use super::error::{Failure, Result};
use super::lines::{Line, Lines, MEDIA_TYPE};
use super::receipt::{receipt, refused};
use super::{answer, body, events, wire as convert};
use crate::node::Node;
use crate::seam;

/// Most lines, and most bytes of them, that are appended together.
const LOAD_LINES_MAX: usize = 500;
const LOAD_BYTES_MAX: usize = 1 << 20;
/// How long a line waits for room in its stream before it is refused, and how often it looks.
const ROOM_WITHIN: Duration = Duration::from_secs(10);
const ROOM_LOOK_AFTER: Duration = Duration::from_millis(50);

/// The answers, made as they are taken.
pub(super) fn answer(
    node: Node,
    info: &StreamInfo,
    origin: Option<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let (stream, mode) = (info.name.clone(), info.settings.mode);
    let lines = Some(Lines::new(body));
    let reader = Reader { appender: Appender { node, stream, mode, origin }, headers, lines, is_over: false };
    let answers = futures::stream::unfold(reader, |mut reader| async {
        let answers = Box::pin(reader.next()).await?;
        Some((Ok::<_, std::convert::Infallible>(answers), reader))
    });
    ([(CONTENT_TYPE, MEDIA_TYPE)], Body::from_stream(answers)).into_response()
}

struct Reader {
    appender: Appender,
    headers: HeaderMap,
    /// Nothing when the rest was passed over.
    lines: Option<Lines>,
    /// The last answer is given.
    is_over: bool,
}

struct Appender {
    node: Node,
    stream: String,
    mode: Mode,
    /// Where the lines have positions.
    origin: Option<String>,
}

/// An event with its line, ready to be appended.
struct Ready {
    line: u64,
    draft: Draft,
    object: Option<ObjectWrite>,
}

/// What became of lines that were appended together.
#[derive(Default)]
struct Told {
    receipts: Vec<LineReceipt>,
    /// Nothing behind these lines is appended.
    is_last: bool,
}

impl Reader {
    /// The answers to the next lines; nothing at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            // Only now: whoever waits for that answer before it sends on or ends has it.
            self.discard_rest().await;
            return None;
        }
        let load = self.load().await?;
        let mut told = Told::default();
        let mut run = Vec::new();
        for line in load {
            match self.appender.ready(&line) {
                // An object changes with the events of its own call.
                Ok(ready) if ready.object.is_some() => {
                    self.appender.append(std::mem::take(&mut run), &mut told).await;
                    self.appender.append(vec![ready], &mut told).await;
                }
                Ok(ready) => run.push(ready),
                Err(failure) => told.refuse(line.number, &failure),
            }
        }
        self.appender.append(run, &mut told).await;
        if self.appender.node.is_stopping() && !told.is_last {
            let next = self.lines.as_ref().map_or(0, Lines::next_number);
            let detail = format!("the server is about to end: send on from line {next} when it is back");
            told.refuse(next, &Failure::new(Code::ShuttingDown, detail));
            told.is_last = true;
        }
        self.is_over = told.is_last;
        told.receipts.sort_by_key(|receipt| receipt.line);
        Some(Bytes::from(told.receipts.iter().flat_map(answer::line).collect::<Vec<u8>>()))
    }

    /// The lines that have come, at least one unless the server is about to end.
    async fn load(&mut self) -> Option<Vec<Line>> {
        let lines = self.lines.as_mut()?;
        let first = tokio::select! {
            line = lines.next() => line?,
            () = self.appender.node.stopping() => return Some(Vec::new()),
        };
        let (mut bytes, mut load) = (size(&first), vec![first]);
        while load.len() < LOAD_LINES_MAX
            && bytes < LOAD_BYTES_MAX
            && let Some(line) = lines.next_now()
        {
            bytes += size(&line);
            load.push(line);
        }
        Some(load)
    }

    /// A connection that is closed while its caller sends would take the answers with it.
    async fn discard_rest(&mut self) {
        if let Some(lines) = self.lines.take() {
            body::discard(&self.headers, lines.into_body()).await;
        }
    }
}

impl Appender {
    fn ready(&self, line: &Line) -> Result<Ready> {
        let text = line.text.clone()?;
        body::check_depth(&text)?;
        let event: wire::EventDraft = body::parse(&text, "")?;
        let Appending { mut drafts, object } = convert::appending(vec![event], self.mode)?;
        let draft = drafts.pop().expect("one event is one draft");
        Ok(Ready { line: line.number, draft, object })
    }

    /// Appends events together; those of a partition that refuses them one by one.
    async fn append(&self, mut run: Vec<Ready>, told: &mut Told) {
        while !run.is_empty() && !told.is_last {
            let object = run.iter_mut().find_map(|ready| ready.object.clone());
            let drafts = run.iter().map(|ready| ready.draft.clone()).collect();
            match self.append_drafts(Appending { drafts, object }).await {
                Ok(sent) => {
                    let is_alone = run.len() == 1;
                    for (ready, sent) in run.drain(..).zip(sent) {
                        match &sent.receipt {
                            Err(error) if !is_alone || is_no_room(error) => {
                                self.append_one(ready, told).await
                            }
                            _ => told.sent(&self.stream, ready.line, sent),
                        }
                    }
                }
                Err(AppendError::Refused { index, refusal }) => {
                    told.refuse(run.remove(index).line, &refusal.into());
                }
                // The stream is gone, or the store: nobody's line can be appended.
                Err(error) => {
                    told.refuse(run[0].line, &error.into());
                    told.is_last = true;
                }
            }
        }
    }

    async fn append_drafts(&self, appending: Appending) -> Result<Vec<Sent>, AppendError> {
        events::append_drafts(&self.node, &self.stream, appending, self.origin.as_deref()).await
    }

    /// Appends an event on its own; waits for room if there is none.
    async fn append_one(&self, ready: Ready, told: &mut Told) {
        if told.is_last {
            return;
        }
        let until = seam::steady().after(ROOM_WITHIN);
        loop {
            let appending = Appending { drafts: vec![ready.draft.clone()], object: ready.object.clone() };
            let sent = match self.append_drafts(appending).await {
                Ok(mut sent) => sent.pop().expect("one draft has one answer"),
                Err(error) => {
                    told.refuse(ready.line, &error.into());
                    return;
                }
            };
            let has_time = seam::steady() < until && !self.node.is_stopping();
            if has_time && sent.receipt.as_ref().is_err_and(|error| is_no_room(error)) {
                seam::pass(ROOM_LOOK_AFTER).await;
                continue;
            }
            return told.sent(&self.stream, ready.line, sent);
        }
    }
}

impl Told {
    fn refuse(&mut self, line: u64, failure: &Failure) {
        let receipt = refused(failure);
        self.receipts.push(LineReceipt { line, receipt, durability: None, object_version: None });
    }

    fn sent(&mut self, stream: &str, line: u64, sent: Sent) {
        if let Err(error) = &sent.receipt {
            self.is_last |= !matches!(**error, StoreError::Conflict(_) | StoreError::Refused(_));
        }
        let durability = sent.durability.map(|durability| durability.to_string());
        let object_version = sent.object_version;
        let receipt = receipt(stream, sent);
        self.receipts.push(LineReceipt { line, receipt, durability, object_version });
    }
}

fn size(line: &Line) -> usize {
    line.text.as_ref().map_or(0, Bytes::len)
}

fn is_no_room(error: &StoreError) -> bool {
    matches!(error, StoreError::Full(FullReason::Pending { .. }))
}
