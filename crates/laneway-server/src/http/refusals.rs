//! Which errors each call answers: what follows from what it takes, and one table of the rest, next to the router.
//!
//! The description of the API is made from it. A debug build holds every answer against it, so that the whole suite of tests
//! is the proof that nothing is missing.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use utoipa::openapi::path::{Operation, ParameterIn};
use utoipa::openapi::{OpenApi, PathItem, RefOr};

use super::code::Code::{self, *};
use super::scopes::{Need, need};

/// What the gate answers, whatever the call is.
const GATE: &[Code] = &[
    UnsupportedEncoding,
    TokenRequired,
    ScopeRequired,
    HostNotAllowed,
    OriginNotAllowed,
    UrlTooLong,
    HeadersTooLarge,
    RateLimited,
    Overloaded,
];
/// What whoever asks the store may be answered.
const STORE: &[Code] = &[StoreUnavailable, StoreDown, Internal];
/// What a call with a body answers about it.
const BODY: &[Code] = &[
    InvalidJson,
    JsonTooDeep,
    UnknownField,
    InvalidValue,
    InvalidEncoding,
    BodyTimeout,
    BodyTooLarge,
    UnsupportedMediaType,
];
const QUERY: &[Code] = &[UnknownField, InvalidValue];
const PLACE: &[Code] = &[ProcessorRequired, ProcessorNotFound];
const WISH: &[Code] = &[ProcessorRequired, ProcessorNotFound, EventNotFound, EventTrimmed];
const DECIDED: &[Code] = &[NothingWaits, EventRunning, ProcessorStopped];
const APPEND: &[Code] = &[StreamNotFound, DedupConflict, StreamFull, StoreFull];
const JOB: &[Code] = &[JobNotFound, JobGone];
const RETRIED: &[Code] = &[DedupConflict, IdempotencyConflict, StaleGeneration, StreamFull];
const DEAD: &[Code] =
    &[StreamNotFound, ProcessorRequired, ProcessorNotFound, DeadLetterNotFound, EventRunning, StoreFull];
const RETURNED: &[Code] =
    &[SuccessorsDone, EarlierDead, WholeLane, HeadersFull, StaleGeneration, EventTrimmed];
const DESK: &[Code] = &[ProcessorNotFound, NotPull];

/// What does not follow from what a call takes.
#[rustfmt::skip]
const CALLS: &[(&str, &str, &[&[Code]])] = &[
    ("PUT", "/v1/streams/{stream}", &[&[StreamConflict, PreconditionFailed, StoreFull]]),
    ("GET", "/v1/streams/{stream}", &[&[StreamNotFound]]),
    ("DELETE", "/v1/streams/{stream}", &[&[InvalidValue, StreamNotFound, StreamConflict, ProcessorConflict, PreconditionFailed, StoreFull]]),
    ("POST", "/v1/streams/{stream}/events", &[APPEND, &[PrevConflict, ObjectConflict, TooManyEvents]]),
    ("GET", "/v1/streams/{stream}/events", &[&[StreamNotFound, EventTrimmed, TooManyFollowers, ShuttingDown]]),
    ("GET", "/v1/streams/{stream}/events/{partition}/{id}", &[&[InvalidValue, StreamNotFound, EventNotFound, EventTrimmed]]),
    ("GET", "/v1/streams/{stream}/lane", &[&[StreamNotFound]]),
    ("GET", "/v1/streams/{stream}/lanes", &[&[StreamNotFound], PLACE]),
    ("POST", "/v1/streams/{stream}/lanes/pause", &[&[StreamNotFound], WISH, &[StoreFull]]),
    ("POST", "/v1/streams/{stream}/lanes/resume", &[&[StreamNotFound], WISH, DECIDED, &[StoreFull]]),
    ("POST", "/v1/streams/{stream}/lanes/retry", &[&[StreamNotFound], WISH, DECIDED, &[StoreFull]]),
    ("POST", "/v1/streams/{stream}/lanes/skip", &[&[StreamNotFound], WISH, DECIDED, &[StoreFull]]),
    ("POST", "/v1/streams/{stream}/jobs", &[APPEND, PLACE, JOB, RETRIED, &[PrevConflict, TooManyEvents]]),
    ("GET", "/v1/jobs", &[&[StreamNotFound]]),
    ("POST", "/v1/jobs/query", &[&[StreamNotFound]]),
    ("POST", "/v1/jobs/cancel", &[&[StreamNotFound, StoreFull]]),
    ("GET", "/v1/jobs/{id}", &[JOB]),
    ("DELETE", "/v1/jobs/{id}", &[JOB, &[JobUnfinished, StoreFull]]),
    ("POST", "/v1/jobs/{id}/cancel", &[JOB, &[AlreadyFinished, StoreFull]]),
    ("POST", "/v1/jobs/{id}/retry", &[JOB, PLACE, RETRIED, &[JobUnfinished, EventRunning, StreamNotFound, StoreFull]]),
    ("POST", "/v1/jobs/{id}/take", &[JOB, &[JobUnfinished, StoreFull]]),
    ("PUT", "/v1/processors/{processor}", &[&[StreamNotFound, ProcessorNotFound, ProcessorConflict, StreamConflict, PreconditionFailed, StoreFull]]),
    ("GET", "/v1/processors/{processor}", &[&[ProcessorNotFound]]),
    ("DELETE", "/v1/processors/{processor}", &[&[ProcessorNotFound, ProcessorConflict, StreamConflict, PreconditionFailed, StoreFull]]),
    ("POST", "/v1/processors/{processor}/pause", &[&[ProcessorNotFound, StoreFull]]),
    ("POST", "/v1/processors/{processor}/resume", &[&[ProcessorNotFound, StoreFull]]),
    ("POST", "/v1/processors/{processor}/reset", &[&[ProcessorNotFound, EventRunning, StoreFull]]),
    ("POST", "/v1/processors/{processor}/claim", &[DESK]),
    ("POST", "/v1/processors/{processor}/settle", &[DESK, &[TooManyEvents]]),
    ("POST", "/v1/processors/{processor}/extend", &[DESK, &[TooManyEvents]]),
    ("GET", "/v1/dead-letters", &[&[StreamNotFound, ProcessorNotFound]]),
    ("POST", "/v1/dead-letters/redrive", &[DEAD, RETURNED]),
    ("POST", "/v1/dead-letters/discard", &[DEAD]),
    ("PUT", "/v1/schedules/{schedule}", &[PLACE, &[StreamNotFound, PreconditionFailed, StoreFull]]),
    ("GET", "/v1/schedules/{schedule}", &[&[ScheduleNotFound]]),
    ("DELETE", "/v1/schedules/{schedule}", &[&[ScheduleNotFound, PreconditionFailed, StoreFull]]),
    ("POST", "/v1/nodes/{node}/drain", &[&[NodeNotFound, NodeConflict, StoreFull]]),
    ("DELETE", "/v1/nodes/{node}/drain", &[&[NodeNotFound, NodeConflict, StoreFull]]),
    ("POST", "/v1/leases/break", &[&[NodeNotFound, LeaseNotFound, NodeConflict, StoreFull]]),
    ("POST", "/v1/schedules/{schedule}/run", &[APPEND, PLACE, &[ScheduleNotFound, StaleGeneration]]),
    ("POST", "/v1/store/backup", &[&[BackupUnavailable, BackupExists, BackupRunning, BackupFailed, ShuttingDown]]),
    ("GET", "/readyz", &[&[ShuttingDown]]),
];

/// Calls that ask no store.
const WITHOUT_STORE: &[&str] = &["/livez", "/startupz", "/metrics", "/v1/tasks"];

/// What one call answers besides success, by status; every code once, in the order of the reference.
pub(super) fn of(method: &Method, path: &str, call: &Operation) -> BTreeMap<u16, Vec<Code>> {
    let mut answers: Vec<Code> = GATE.to_vec();
    if !WITHOUT_STORE.contains(&path) {
        answers.extend(STORE);
    }
    if call.request_body.is_some() {
        answers.extend(BODY);
    }
    if takes(call, ParameterIn::Query) {
        answers.extend(QUERY);
    }
    // A header that is not what it must be.
    if takes(call, ParameterIn::Header) {
        answers.push(InvalidValue);
    }
    let need = need(method, Some(path));
    if need != Need::Health && need.changes(method) {
        answers.push(ReadOnly);
    }
    let listed = CALLS.iter().filter(|(name, call, _)| method.as_str() == *name && path == *call);
    answers.extend(listed.flat_map(|(_, _, codes)| codes.iter().copied().flatten()));
    let mut by_status = BTreeMap::new();
    for code in Code::ALL.iter().filter(|code| answers.contains(code)) {
        by_status.entry(code.status().as_u16()).or_insert_with(Vec::new).push(*code);
    }
    by_status
}

fn takes(call: &Operation, place: ParameterIn) -> bool {
    let mut parameters = call.parameters.iter().flatten();
    parameters.any(|parameter| matches!(parameter, RefOr::T(parameter) if parameter.parameter_in == place))
}

/// The calls of a path, each with its method.
pub(super) fn calls(item: &mut PathItem) -> impl Iterator<Item = (Method, &mut Operation)> {
    let calls = [
        (Method::GET, &mut item.get),
        (Method::PUT, &mut item.put),
        (Method::POST, &mut item.post),
        (Method::DELETE, &mut item.delete),
    ];
    calls.into_iter().filter_map(|(method, call)| Some((method, call.as_mut()?)))
}

/// Everything that every call answers.
pub(super) type Described = HashMap<(Method, String), Vec<Code>>;

/// What the description says of all calls.
pub(super) fn described(api: &mut OpenApi) -> Described {
    let mut described = Described::new();
    for (path, item) in &mut api.paths.paths {
        for (method, call) in calls(item) {
            let codes = of(&method, path, call).into_values().flatten().collect();
            described.insert((method, path.clone()), codes);
        }
    }
    described
}

/// Holds an answer against the description.
pub(super) async fn compare(
    State(described): State<Arc<Described>>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let method = if request.method() == Method::HEAD { Method::GET } else { request.method().clone() };
    let answer = next.run(request).await;
    let call = path.map(|path| (method, path));
    if let Some(code) = answer.extensions().get::<Code>()
        && let Some(call) = call
        && let Some(known) = described.get(&call)
    {
        assert!(known.contains(code), "{call:?} answers {code:?}: list it in http/refusals.rs");
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_listed_is_a_call_and_every_code_is_answered_by_one() {
        let (_, mut api) = super::super::router::calls().split_for_parts();
        let described = described(&mut api);
        for (method, path, _) in CALLS {
            let call = (method.parse().unwrap(), (*path).to_owned());
            assert!(described.contains_key(&call), "{method} {path} is no call");
        }
        // Two are for what is no call, and two are told about one of several things that a call names.
        let elsewhere = [NoRoute, MethodNotAllowed, ClaimLost, ClaimUndecided];
        for code in Code::ALL {
            let found = described.values().any(|codes| codes.contains(code));
            assert_eq!(found, !elsewhere.contains(code), "{code:?}");
        }
    }
}
