//! Where a caller is in its trace: what is sent or submitted for it goes on from there. Each request has a span, and a line in
//! the log of what is debugged: neither has more of it than its method and which call it is.

use axum::extract::{MatchedPath, Request};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::Response;
use laneway::TraceContext;
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use crate::seam;

/// Where the spans are from, for filters: the same as those of the engine.
const TARGET: &str = "laneway::span";

/// Answers a request at the place of its trace. A header that is not valid counts as none.
pub(super) async fn follow(request: Request, next: Next) -> Response {
    let context = context(request.headers());
    let span = span(&request, context.as_ref());
    let (method, since) = (request.method().clone(), seam::steady());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let answering = async {
        let answer = next.run(request).await;
        let status = answer.status().as_u16();
        Span::current().record("http.response.status_code", status);
        let route = route.as_ref().map_or("none", MatchedPath::as_str);
        let micros = seam::steady().since(since).as_micros();
        tracing::debug!(%method, route, status, micros, "answered");
        answer
    };
    let answering = answering.instrument(span);
    match context {
        Some(context) => context.within(answering).await,
        None => answering.await,
    }
}

/// The span of a request, as OpenTelemetry names it.
fn span(request: &Request, context: Option<&TraceContext>) -> Span {
    if !tracing::enabled!(target: TARGET, tracing::Level::INFO) {
        return Span::none();
    }
    let (method, route) =
        (request.method(), request.extensions().get::<MatchedPath>().map(MatchedPath::as_str));
    let span = tracing::info_span!(
        target: TARGET,
        parent: None,
        "request",
        otel.name = format!("{method} {}", route.unwrap_or_default()).trim_end(),
        otel.kind = "server",
        http.request.method = %method,
        http.route = route,
        http.response.status_code = Empty,
        traceparent = context.map(TraceContext::traceparent),
    );
    if let Some(context) = context {
        laneway::continue_trace(&span, context);
    }
    span
}

fn context(headers: &HeaderMap) -> Option<TraceContext> {
    let mut parents = headers.get_all("traceparent").iter();
    let parent = parents.next()?.to_str().ok()?;
    // Two of them say nothing.
    if parents.next().is_some() {
        return None;
    }
    // Several headers of this name are one list.
    let states: Option<Vec<&str>> =
        headers.get_all("tracestate").iter().map(|state| state.to_str().ok()).collect();
    let states = states.map(|states| states.join(","));
    TraceContext::parse(parent, states.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn check(headers: &[(&'static str, &'static str)], expected: Option<(&str, Option<&str>)>) {
        let headers: HeaderMap =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        let found = context(&headers);
        let found = found.as_ref().map(|found| (found.traceparent(), found.tracestate()));
        assert_eq!(found, expected);
    }

    #[test]
    fn valid_headers_are_followed_and_others_count_as_none() {
        check(&[], None);
        check(&[("traceparent", PARENT)], Some((PARENT, None)));
        let states = [("traceparent", PARENT), ("tracestate", "a=1"), ("tracestate", "b=2")];
        check(&states, Some((PARENT, Some("a=1,b=2"))));
        check(&[("traceparent", PARENT), ("traceparent", PARENT)], None);
        check(&[("traceparent", "what"), ("tracestate", "a=1")], None);
        check(&[("tracestate", "a=1")], None);
    }
}
