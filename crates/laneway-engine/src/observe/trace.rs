//! Traces: where an event was sent from travels with it in its headers, as W3C trace context, and the spans of sends and
//! runs carry it. Names and fields of the spans follow the messaging conventions of OpenTelemetry, which are still being
//! developed: they are here and nowhere else.
//!
//! A draft gets the context of the first of these that there is: its own headers; the span that its producer is in, if a
//! [`Tracer`] is installed; the context that its producer works [`within`](TraceContext::within). An emit gets that of
//! its run, or else of the event it was emitted for. What is no valid context is as none: never an error.

use std::future::Future;
use std::sync::OnceLock;

use laneway_core::event::TRACE_HEADERS;
use laneway_core::{Draft, Event, Headers};
use tracing::Span;
use tracing::field::Empty;

use crate::handler::{LaneAnswer, Run};

const TRACEPARENT: &str = TRACE_HEADERS[0];
const TRACESTATE: &str = TRACE_HEADERS[1];
/// Where the spans are from, for filters.
const TARGET: &str = "laneway::span";
/// Length of a traceparent of version 00.
const PARENT_LEN: usize = 55;
/// Longest tracestate that is carried on.
const STATE_LEN_MAX: usize = 512;

tokio::task_local! {
    static CONTEXT: TraceContext;
}

static TRACER: OnceLock<Box<dyn Tracer>> = OnceLock::new();

/// A place in a trace, as W3C trace context writes it.
///
/// ```
/// use laneway_engine::observe::TraceContext;
///
/// let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// let context = TraceContext::parse(text, Some("vendor=1")).unwrap();
/// assert_eq!(context.trace_id(), "0af7651916cd43dd8448eb211c80319c");
/// assert_eq!(context.traceparent(), text);
/// assert!(TraceContext::parse("00-no-trace-01", None).is_none());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    parent: String,
    state: Option<String>,
}

/// Connects the engine's spans to a system of traces. Without one, contexts travel as they came.
pub trait Tracer: Send + Sync + 'static {
    /// The place of the span that the caller is in.
    fn current(&self) -> Option<TraceContext>;

    /// A span was made for what was caused at this place of a trace.
    fn continues(&self, span: &Span, from: &TraceContext);
}

/// Installs the tracer of this process. Answers whether there was none before.
pub fn install_tracer(tracer: impl Tracer) -> bool {
    TRACER.set(Box::new(tracer)).is_ok()
}

/// Tells the tracer of this process, if there is one, that a span was made for what was caused at this place of a trace.
pub fn continue_trace(span: &Span, from: &TraceContext) {
    if let Some(tracer) = TRACER.get() {
        tracer.continues(span, from);
    }
}

impl TraceContext {
    /// Reads the two headers; `None` if the first is not valid. A second one that is too long or not ASCII is left out.
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let rest = traceparent.get(PARENT_LEN..)?;
        let mut parts = traceparent.get(..PARENT_LEN)?.split('-');
        let mut part = |len| parts.next().filter(|part| is_hex(part, len));
        let (version, trace, span, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
        let ends = if version == "00" { rest.is_empty() } else { rest.is_empty() || rest.starts_with('-') };
        let is_zero = |part: &str| part.bytes().all(|byte| byte == b'0');
        if version == "ff" || !ends || is_zero(trace) || is_zero(span) {
            return None;
        }
        let carried = |state: &&str| {
            !state.is_empty()
                && state.len() <= STATE_LEN_MAX
                && state.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        };
        // Of a newer version, what this one knows is carried on.
        let parent = format!("00-{trace}-{span}-{flags}");
        Some(Self { parent, state: tracestate.filter(carried).map(str::to_owned) })
    }

    /// The context that an event carries.
    pub fn of(headers: &Headers) -> Option<Self> {
        if headers.is_empty() {
            return None;
        }
        let text = |name| headers.get(name).and_then(|value| std::str::from_utf8(value).ok());
        Self::parse(text(TRACEPARENT)?, text(TRACESTATE))
    }

    /// That of the span the caller is in, if a [`Tracer`] is installed, or else what the caller works within.
    pub fn current() -> Option<Self> {
        let traced = TRACER.get().and_then(|tracer| tracer.current());
        traced.or_else(|| CONTEXT.try_with(Clone::clone).ok())
    }

    /// Does something at this place of a trace: what is sent meanwhile carries it.
    ///
    /// ```
    /// # use laneway_engine::observe::TraceContext;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    /// let context = TraceContext::parse(text, None).unwrap();
    /// let seen = context.clone().within(async { TraceContext::current() }).await;
    /// assert_eq!(seen, Some(context));
    /// # }
    /// ```
    pub async fn within<A>(self, work: impl Future<Output = A>) -> A {
        CONTEXT.scope(self, work).await
    }

    /// The first header.
    pub fn traceparent(&self) -> &str {
        &self.parent
    }

    /// The second header.
    pub fn tracestate(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Which trace: 32 hexadecimal digits.
    pub fn trace_id(&self) -> &str {
        &self.parent[3..35]
    }

    /// The headers with this context, unless they have one, or no room for it.
    fn onto(&self, headers: &Headers) -> Headers {
        if headers.get(TRACEPARENT).is_some() {
            return headers.clone();
        }
        let state = self.state.as_deref().map(|state| (TRACESTATE, state.as_bytes()));
        let all = headers.iter().chain([(TRACEPARENT, self.parent.as_bytes())]).chain(state);
        Headers::new(all).unwrap_or_else(|_| headers.clone())
    }
}

fn is_hex(part: &str, len: usize) -> bool {
    part.len() == len && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Drafts get the context that their producer is in.
pub(crate) fn stamp(drafts: &mut [Draft]) {
    if let Some(context) = TraceContext::current() {
        drafts.iter_mut().for_each(|draft| draft.headers = context.onto(&draft.headers));
    }
}

/// The context that emits of a run get: the run's, or that of the event they were emitted for.
pub(crate) fn caused_by(event: &Event) -> Option<TraceContext> {
    TRACER.get().and_then(|tracer| tracer.current()).or_else(|| TraceContext::of(&event.headers))
}

/// An emit's headers with the context of what caused it.
pub(crate) fn carried_on(context: Option<&TraceContext>, headers: Headers) -> Headers {
    context.map_or_else(|| headers.clone(), |context| context.onto(&headers))
}

/// The span of a send. Outside of any other it goes on from what its producer works within: as the first of a trace of its own
/// it would take its events out of the producer's.
pub(crate) fn sending(stream: &str, events: usize) -> Span {
    if !tracing::enabled!(target: TARGET, tracing::Level::INFO) {
        return Span::none();
    }
    let within = TraceContext::current();
    let span = tracing::info_span!(
        target: TARGET,
        "send",
        otel.name = format!("send {stream}"),
        otel.kind = "producer",
        messaging.system = "laneway",
        messaging.operation.type = "send",
        messaging.destination.name = stream,
        messaging.batch.message_count = events,
    );
    if let Some(within) = within {
        continue_trace(&span, &within);
    }
    span
}

/// The span of a run, at the place of the trace that its first event came from.
pub(crate) fn processing(run: &Run) -> Span {
    let first = run.lanes.first().and_then(|lane| Some((lane, lane.events.first()?)));
    let enabled = tracing::enabled!(target: TARGET, tracing::Level::INFO);
    let Some((lane, event)) = first.filter(|_| enabled) else { return Span::none() };
    let context = TraceContext::of(&event.headers);
    let span = tracing::info_span!(
        target: TARGET,
        parent: None,
        "process",
        otel.name = format!("process {}", run.stream),
        otel.kind = "consumer",
        otel.status_code = Empty,
        messaging.system = "laneway",
        messaging.operation.type = "process",
        messaging.destination.name = %run.stream,
        messaging.destination.partition.id = %run.partition,
        messaging.consumer.group.name = %run.processor,
        messaging.message.id = %event.id,
        messaging.batch.message_count = events_of(run),
        laneway.attempt = lane.attempt,
        error.type = Empty,
        traceparent = context.as_ref().map(TraceContext::traceparent),
    );
    if let Some(context) = &context {
        continue_trace(&span, context);
    }
    span
}

/// The context that a handler works within: that of the one event it was called for.
pub(crate) fn of_run(run: &Run) -> Option<TraceContext> {
    match &run.lanes[..] {
        [lane] if lane.events.len() == 1 => TraceContext::of(&lane.events[0].headers),
        _ => None,
    }
}

fn events_of(run: &Run) -> usize {
    run.lanes.iter().map(|lane| lane.events.len()).sum()
}

/// Notes in the span of a run that something of it failed. What was said goes nowhere: it may quote the event.
pub(crate) fn note_failures(answers: &[LaneAnswer]) {
    if let Some(failure) = answers.iter().find_map(|answer| answer.failure.as_ref()) {
        Span::current().record("otel.status_code", "ERROR").record("error.type", failure.kind());
    }
}
