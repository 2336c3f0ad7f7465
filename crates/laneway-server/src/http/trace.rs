//! Where a caller is in its trace: what is sent or submitted for it goes on from there.

use axum::extract::Request;
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::Response;
use laneway::TraceContext;

/// Answers a request at the place of its trace. A header that is not valid counts as none.
pub(super) async fn follow(request: Request, next: Next) -> Response {
    match context(request.headers()) {
        Some(context) => context.within(next.run(request)).await,
        None => next.run(request).await,
    }
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
