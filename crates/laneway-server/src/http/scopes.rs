//! Which scope a call needs: one table of all calls, next to the router.
//!
//! A call that is missing here is refused to all but administrators, and a test fails.

use axum::http::Method;

use super::gate::is_safe;
use crate::access::Scope;

/// What a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing: it says only whether the process is up.
    Health,
    /// A valid token, whatever it is good for: there is no such call.
    Token,
    /// A token with this scope.
    Scope(Scope),
}

impl Need {
    /// Whether a call with this need may change something.
    pub(super) fn changes(self, method: &Method) -> bool {
        match self {
            Self::Health | Self::Token => false,
            Self::Scope(Scope::Read) => false,
            Self::Scope(_) => !is_safe(method),
        }
    }
}

/// The scope of every call, by its path. What only looks at something needs `read`, so only the others are listed.
pub(super) const CHANGES: &[(&str, &str, Scope)] = &[
    ("PUT", "/v1/streams/{stream}", Scope::Admin),
    ("DELETE", "/v1/streams/{stream}", Scope::Admin),
    ("POST", "/v1/streams/{stream}/events", Scope::Write),
    ("POST", "/v1/streams/{stream}/lanes/pause", Scope::Admin),
    ("POST", "/v1/streams/{stream}/lanes/resume", Scope::Admin),
    ("POST", "/v1/streams/{stream}/lanes/retry", Scope::Admin),
    ("POST", "/v1/streams/{stream}/lanes/skip", Scope::Admin),
    ("POST", "/v1/streams/{stream}/jobs", Scope::Write),
    ("POST", "/v1/jobs/query", Scope::Read),
    ("POST", "/v1/jobs/cancel", Scope::Write),
    ("POST", "/v1/jobs/{id}/cancel", Scope::Write),
    ("POST", "/v1/jobs/{id}/retry", Scope::Write),
    ("POST", "/v1/jobs/{id}/take", Scope::Write),
    ("DELETE", "/v1/jobs/{id}", Scope::Write),
    ("PUT", "/v1/processors/{processor}", Scope::Admin),
    ("DELETE", "/v1/processors/{processor}", Scope::Admin),
    ("POST", "/v1/processors/{processor}/pause", Scope::Admin),
    ("POST", "/v1/processors/{processor}/resume", Scope::Admin),
    ("POST", "/v1/processors/{processor}/reset", Scope::Admin),
    ("POST", "/v1/processors/{processor}/claim", Scope::Work),
    ("POST", "/v1/processors/{processor}/settle", Scope::Work),
    ("POST", "/v1/processors/{processor}/extend", Scope::Work),
    ("PUT", "/v1/schedules/{schedule}", Scope::Admin),
    ("DELETE", "/v1/schedules/{schedule}", Scope::Admin),
    ("POST", "/v1/schedules/{schedule}/run", Scope::Admin),
    ("POST", "/v1/nodes/{node}/drain", Scope::Admin),
    ("DELETE", "/v1/nodes/{node}/drain", Scope::Admin),
    ("POST", "/v1/leases/break", Scope::Admin),
    ("POST", "/v1/store/backup", Scope::Admin),
    ("POST", "/v1/dead-letters/redrive", Scope::Admin),
    ("POST", "/v1/dead-letters/discard", Scope::Admin),
];

/// What a request needs: by its method, and by the path of the call it meets, if there is one.
pub(super) fn need(method: &Method, path: Option<&str>) -> Need {
    match path {
        None => Need::Token,
        Some("/livez" | "/readyz" | "/startupz") => Need::Health,
        Some(_) if is_safe(method) => Need::Scope(Scope::Read),
        Some(path) => {
            let listed = CHANGES.iter().find(|(name, call, _)| method.as_str() == *name && path == *call);
            Need::Scope(listed.map_or(Scope::Admin, |(_, _, scope)| *scope))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever adds a call says here what it needs.
    #[test]
    fn every_call_that_may_change_something_is_listed_with_its_scope() {
        let (_, described) = super::super::router::calls().split_for_parts();
        for (path, item) in &described.paths.paths {
            for (method, call) in [("PUT", &item.put), ("POST", &item.post), ("DELETE", &item.delete)] {
                let listed = CHANGES.iter().filter(|(name, call, _)| method == *name && path == call).count();
                assert!(call.is_none() || listed == 1, "{method} {path}: list it once in http/scopes.rs");
            }
            assert!(item.patch.is_none(), "PATCH {path}: let this test look for it");
        }
    }

    #[test]
    fn a_call_that_is_not_listed_is_for_administrators() {
        assert_eq!(need(&Method::POST, Some("/v1/new")), Need::Scope(Scope::Admin));
        assert_eq!(need(&Method::GET, Some("/metrics")), Need::Scope(Scope::Read));
        assert_eq!(need(&Method::HEAD, Some("/livez")), Need::Health);
        assert_eq!(need(&Method::POST, None), Need::Token);
    }
}
