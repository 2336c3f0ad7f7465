//! What every request passes before its call: size of its head, Host and Origin, token and scope, read-only mode, rate,
//! room. Nothing of a body is read before all of that.
//!
//! Invariant: a call that may change something is carried to its end, also when its caller hangs up. This is the one place
//! that all of them pass, so no call can forget it. What such a call only waits for ends with its caller: see
//! `under_way::caller_gone` and `under_way::patience`.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{AUTHORIZATION, HeaderMap};
use axum::http::{Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::future::BoxFuture;
use hyper::body::Body as _;
use laneway::engine::service::Finishing;
use tokio::sync::OwnedSemaphorePermit;

use super::body::BODY_BYTES_MAX;
use super::code::Code;
use super::error::{Failure, Result};
use super::guard::{self, Hosts};
use super::load::{self, Kind, Load, Memory};
use super::rate::Rates;
use super::scopes::{Need, need};
use super::under_way::{self, UnderWay};
use super::unpack;
use crate::access::{Book, Caller, Scope};
use crate::seam;

/// What may not be exceeded by a request. Every refusal names the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Longest body in bytes, after it is unpacked.
    pub(crate) body_bytes: usize,
    /// Longest path with its query in bytes.
    pub(crate) url_bytes: usize,
    /// Most headers.
    pub(crate) headers: usize,
    /// Longest head in bytes: all names and values of headers together.
    pub(crate) header_bytes: usize,
    /// Most calls under way.
    pub(crate) calls: usize,
    /// Most calls that wait for something to happen, or stream.
    pub(crate) waiting: usize,
    /// Most bytes of bodies in memory, of all calls under way.
    pub(crate) body_memory_bytes: usize,
    /// Calls per second of one token, and as many at once. Default: as many as there is room for.
    pub(crate) rate: Option<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: BODY_BYTES_MAX,
            url_bytes: 8 << 10,
            headers: 64,
            header_bytes: 16 << 10,
            calls: 1_024,
            waiting: 4_096,
            body_memory_bytes: 256 << 20,
            rate: None,
        }
    }
}

/// Whether anything may be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It may.
    ReadWrite,
    /// It may not, and nothing is run.
    ReadOnly,
}

/// Everything that decides whether a request may come in.
#[derive(Debug)]
pub(crate) struct Gate {
    hosts: Hosts,
    book: Book,
    mode: Mode,
    limits: Limits,
    load: Load,
    rates: Rates,
}

impl Gate {
    pub(crate) fn new(hosts: Hosts, book: Book, mode: Mode, limits: Limits) -> Arc<Self> {
        let load = Load::new(&limits);
        Arc::new(Self { hosts, book, mode, limits, load, rates: Rates::new(limits.rate) })
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// A place for a call whose body is whole.
    pub(super) fn place(&self, kind: Kind) -> Result<OwnedSemaphorePermit> {
        self.load.place(kind)
    }

    /// Whether no call is under way.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.load.is_idle()
    }

    pub(super) fn memory(&self) -> Memory {
        self.load.memory()
    }
}

/// Lets a request pass if it may be here.
pub(super) async fn check(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    match pass(&gate, request) {
        Ok(Passed { request, under_way, changes }) => {
            let (room, caller_gone) = (under_way.room(), under_way.caller_gone());
            let answering = under_way::REQUEST.scope(under_way, next.run(request));
            let answer = if changes {
                // A caller that hangs up must not leave a change half done: the rest of it goes on without the caller.
                let outlive = move |rest: BoxFuture<'static, ()>| {
                    caller_gone.send_replace(true);
                    seam::spawn_rest(rest);
                };
                Finishing::new(answering, outlive).await
            } else {
                answering.await
            };
            under_way::keeping(room, answer)
        }
        Err(failure) => failure.into_response(),
    }
}

/// A request that may come in.
struct Passed {
    request: Request,
    under_way: UnderWay,
    /// Whether it may change something.
    changes: bool,
}

fn pass(gate: &Arc<Gate>, request: Request) -> Result<Passed> {
    check_head(&gate.limits, request.uri(), request.headers())?;
    guard::check(&gate.hosts, request.headers())?;
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let need = match need(request.method(), path) {
        // Whether it is well is for everybody; what stands behind that is for those who may look.
        Need::Health if request.uri().query().is_some() => Need::Scope(Scope::Read),
        need => need,
    };
    let caller = admitted(gate, need, request.headers())?;
    let changes = need.changes(request.method());
    if gate.mode == Mode::ReadOnly && changes {
        let detail =
            format!("the server was started with --read-only: {} changes something", request.method());
        return Err(Failure::new(Code::ReadOnly, detail));
    }
    let kind = load::kind(need, path, request.headers());
    let under_way = UnderWay::new(Arc::clone(gate), caller);
    if need != Need::Health {
        gate.rates.take(under_way.caller())?;
        // A call whose body is still to come has its place when that is whole.
        if kind == Kind::Waiting || request.body().is_end_stream() {
            under_way.take_place(kind)?;
        }
    }
    Ok(Passed { request: unpack::unpacked(request)?, under_way, changes })
}

/// Who calls, if he may.
fn admitted(gate: &Gate, need: Need, headers: &HeaderMap) -> Result<Option<Caller>> {
    if need == Need::Health || !gate.book.is_needed() {
        return Ok(None);
    }
    let caller = bearer(headers).and_then(|token| gate.book.caller(token));
    let caller = caller.ok_or_else(|| {
        // Never more than that: whoever tries tokens learns nothing from the answer.
        let detail =
            "the call needs a valid token: Authorization: Bearer TOKEN (with curl: --oauth2-bearer TOKEN)";
        Failure::new(Code::TokenRequired, detail)
    })?;
    if let Need::Scope(scope) = need
        && !caller.scopes.has(scope)
    {
        let (name, has, needs) = (&caller.name, caller.scopes, scope.name());
        let detail = format!("token {name:?} has scope {has}, the call needs {needs}");
        return Err(Failure::new(Code::ScopeRequired, detail));
    }
    Ok(Some(caller))
}

/// The one token of a request.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let (one, None) = (given.next()?, given.next()) else { return None };
    let (scheme, token) = one.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn check_head(limits: &Limits, uri: &Uri, headers: &HeaderMap) -> Result<()> {
    let url = uri.path_and_query().map_or(0, |url| url.as_str().len());
    if url > limits.url_bytes {
        let detail = format!("path and query have {url} bytes, at most {} are taken", limits.url_bytes);
        return Err(Failure::new(Code::UrlTooLong, detail));
    }
    if headers.len() > limits.headers {
        let detail =
            format!("the request has {} headers, at most {} are taken", headers.len(), limits.headers);
        return Err(Failure::new(Code::HeadersTooLarge, detail));
    }
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if bytes > limits.header_bytes {
        let detail = format!("the headers have {bytes} bytes, at most {} are taken", limits.header_bytes);
        return Err(Failure::new(Code::HeadersTooLarge, detail));
    }
    Ok(())
}

/// Whether a method changes something by its nature.
pub(super) fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}
