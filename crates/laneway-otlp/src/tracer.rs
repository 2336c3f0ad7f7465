//! Contexts of the engine and of OpenTelemetry, one for the other.

use laneway::{TraceContext, Tracer};
use opentelemetry::Context;
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::TraceContextExt as _;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use std::collections::HashMap;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// The tracer of this process.
pub(crate) struct OpenTelemetry;

impl Tracer for OpenTelemetry {
    fn current(&self) -> Option<TraceContext> {
        let context = Span::current().context();
        if !context.span().span_context().is_valid() {
            return None;
        }
        let mut headers = HashMap::new();
        TraceContextPropagator::new().inject_context(&context, &mut headers);
        let state = headers.get("tracestate").map(String::as_str);
        TraceContext::parse(headers.get("traceparent")?, state)
    }

    fn continues(&self, span: &Span, from: &TraceContext) {
        let mut headers = HashMap::from([("traceparent".to_owned(), from.traceparent().to_owned())]);
        headers.extend(from.tracestate().map(|state| ("tracestate".to_owned(), state.to_owned())));
        let parent = TraceContextPropagator::new().extract_with_context(&Context::new(), &headers);
        // A span that nobody exports has no place in a trace.
        drop(span.set_parent(parent));
    }
}
