//! A web endpoint as a handler: a POST per event, in the binary form of CloudEvents.
//!
//! 2xx is done and the body is the result; 408, 429 and 5xx are tried again, after `Retry-After` if it is there; every
//! other answer has failed for good, redirects too: nothing is followed. A call that takes too long is cut, which ends our
//! waiting and not what the endpoint does; `Laneway-Fence` lets it refuse what comes late. Variables that name a proxy are
//! not read.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use laneway::engine::handler::{Handler, LaneAnswer, LaneRun, Retry, Run, Running};

use super::facts::Facts;
use super::webhook::{Guarded, Rules, Target};
use crate::http::wire as convert;
use crate::seam;

/// Most bytes of an answer: what a result may have.
const ANSWER_BYTES_MAX: usize = laneway::core::limits::RESULT_BYTES_MAX;
/// Most bytes of an error's body that are kept with the failure.
const ERROR_BYTES_KEPT: usize = 2 << 10;
/// The media type of an answer that says more than a result.
const SETTLEMENT: &str = "application/vnd.laneway.settlement+json";
/// Longest `Retry-After` that is heeded.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3_600);

/// What an endpoint is signed with. It is never shown.
#[derive(Clone)]
pub(crate) struct Secret(Arc<ring::hmac::Key>);

impl Secret {
    /// A secret as it is handed out: `whsec_` and base64, or any text.
    pub(crate) fn new(text: &str) -> Self {
        let bytes = text.strip_prefix("whsec_").and_then(|coded| STANDARD.decode(coded).ok());
        let bytes = bytes.unwrap_or_else(|| text.as_bytes().to_vec());
        Self(Arc::new(ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &bytes)))
    }

    /// The signature of Standard Webhooks.
    fn sign(&self, id: &str, timestamp: u64, body: &[u8]) -> String {
        let mut signed = format!("{id}.{timestamp}.").into_bytes();
        signed.extend_from_slice(body);
        format!("v1,{}", STANDARD.encode(ring::hmac::sign(&self.0, &signed)))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

/// Where to post, and how.
#[derive(Debug, Clone)]
pub(crate) struct WebTarget {
    /// The address.
    pub(crate) url: http::Uri,
    /// What calls are signed with, if they are.
    pub(crate) secret: Option<Secret>,
}

/// A web endpoint as a handler.
#[derive(Debug)]
pub(crate) struct Web(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    target: WebTarget,
    way: Way,
}

/// How an endpoint is reached.
#[derive(Debug)]
enum Way {
    /// It is trusted.
    Anywhere(Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
    /// It was named over the API.
    Guarded(Guarded),
}

impl Way {
    async fn request(&self, request: http::Request<Full<Bytes>>) -> Result<http::Response<Incoming>, String> {
        match self {
            Self::Anywhere(client) => client.request(request).await.map_err(|error| lost(&error)),
            Self::Guarded(guarded) => guarded.request(request).await,
        }
    }

    /// Most bytes of an answer.
    fn answer_bytes_max(&self) -> usize {
        match self {
            Self::Anywhere(_) => ANSWER_BYTES_MAX,
            Self::Guarded(_) => Guarded::ANSWER_BYTES_MAX,
        }
    }
}

fn lost(error: &(dyn std::error::Error + 'static)) -> String {
    format!("no answer: {}", crate::http::chain(error))
}

impl Web {
    /// An endpoint that was named over the API: it may only be where the rules allow it, and every call is signed.
    pub(crate) fn guarded(target: Target, rules: Arc<Rules>) -> Self {
        let secret = Some(rules.secret.clone());
        let guarded = Guarded::new(target, rules);
        let target = WebTarget { url: guarded.uri().clone(), secret };
        Self(Arc::new(Inner { target, way: Way::Guarded(guarded) }))
    }

    /// An endpoint that is trusted: it may be anywhere.
    pub(crate) fn new(target: WebTarget) -> Result<Self, rustls::Error> {
        let mut roots = rustls::RootCertStore::empty();
        if target.url.scheme_str() == Some("https") {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut plain = HttpConnector::new();
        plain.enforce_http(false);
        plain.set_nodelay(true);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(plain);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self(Arc::new(Inner { target, way: Way::Anywhere(client) })))
    }
}

impl Handler for Web {
    fn call(&self, run: Run) -> Running {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            let lanes = run.lanes.iter().map(|lane| inner.run(&run, lane));
            futures::future::join_all(lanes).await
        })
    }
}

/// How a call ended.
struct Answered {
    status: http::StatusCode,
    retry_after: Option<Duration>,
    is_settlement: bool,
    body: Bytes,
}

impl Inner {
    async fn run(&self, run: &Run, lane: &LaneRun) -> LaneAnswer {
        let request = match self.request(run, lane) {
            Ok(request) => request,
            Err(error) => return LaneAnswer::failed(format!("cannot be posted: {error}"), Retry::Never),
        };
        let answered = tokio::select! {
            biased;
            answered = self.answer(request) => answered,
            () = run.cancel.cancelled() => Err("stopped on request".to_owned()),
        };
        match answered {
            Ok(answered) => {
                meaning(answered, &convert::reference(&run.stream, run.partition, lane.events[0].id), lane)
            }
            Err(words) => LaneAnswer::failed(words, Retry::ByPolicy),
        }
    }

    fn request(&self, run: &Run, lane: &LaneRun) -> Result<http::Request<Full<Bytes>>, http::Error> {
        let (facts, event) = (Facts::of(run, lane), &lane.events[0]);
        let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(&event.data).is_ok();
        let kind = if facts.kind.is_empty() { "laneway.event" } else { facts.kind.as_str() };
        let mut request = http::Request::post(self.target.url.clone())
            .header("content-type", if is_json { "application/json" } else { "application/octet-stream" })
            .header("ce-specversion", "1.0")
            .header("ce-id", &facts.reference)
            .header("ce-source", format!("/laneway/{}", run.stream))
            .header("ce-type", kind)
            .header("ce-time", convert::date_of(event.time))
            .header("laneway-ref", &facts.reference)
            .header("laneway-id", facts.id)
            .header("laneway-attempt", facts.attempt)
            .header("laneway-fence", &facts.fence);
        for (_, name, number) in facts.numbers() {
            request = request.header(name, number);
        }
        if let Some(key) = &facts.key {
            // A header cannot carry every byte, and one that only looks the same would be another key.
            let is_plain = key.bytes().iter().all(u8::is_ascii_graphic);
            request = if is_plain {
                request.header("laneway-key", key.bytes())
            } else {
                request.header("laneway-key-b64", STANDARD.encode(key.bytes()))
            };
        }
        for (name, value) in
            event.headers.iter().filter(|(name, _)| matches!(*name, "traceparent" | "tracestate"))
        {
            request = request.header(name, value);
        }
        if let Some(secret) = &self.target.secret {
            let timestamp = seam::now().0 / 1_000_000;
            request = request
                .header("webhook-id", &facts.reference)
                .header("webhook-timestamp", timestamp)
                .header("webhook-signature", secret.sign(&facts.reference, timestamp, &event.data));
        }
        request.body(Full::new(event.data.clone()))
    }

    /// The answer. Whoever was named over the API has only so long for it; for others the processor's timeout counts.
    async fn answer(&self, request: http::Request<Full<Bytes>>) -> Result<Answered, String> {
        match &self.way {
            Way::Anywhere(_) => self.send(request).await,
            Way::Guarded(_) => seam::within(Guarded::TOTAL, self.send(request))
                .await
                .unwrap_or_else(|| Err(format!("no answer within {} s", Guarded::TOTAL.as_secs()))),
        }
    }

    async fn send(&self, request: http::Request<Full<Bytes>>) -> Result<Answered, String> {
        let answer = self.way.request(request).await?;
        let max = self.way.answer_bytes_max();
        let (parts, body) = answer.into_parts();
        let text = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let body = match Limited::new(body, max).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                return Err(format!("its answer has more than {max} bytes"));
            }
            Err(error) => return Err(lost(&*error)),
        };
        Ok(Answered {
            status: parts.status,
            retry_after: text("retry-after").and_then(retry_after),
            is_settlement: text("content-type")
                .is_some_and(|media| media.split(';').next() == Some(SETTLEMENT)),
            body,
        })
    }
}

fn meaning(answered: Answered, reference: &str, lane: &LaneRun) -> LaneAnswer {
    let Answered { status, retry_after, is_settlement, body } = answered;
    if status.is_success() {
        return if is_settlement {
            settlement(&body, reference, lane)
        } else {
            LaneAnswer::done(super::exec::result_of(&body))
        };
    }
    let said = String::from_utf8_lossy(&body[..body.len().min(ERROR_BYTES_KEPT)]).trim().to_owned();
    let words = if said.is_empty() { status.to_string() } else { format!("{status}: {said}") };
    let may_help = status.is_server_error() || matches!(status.as_u16(), 408 | 429);
    let retry = match retry_after {
        Some(after) if may_help => Retry::After(after),
        None if may_help => Retry::ByPolicy,
        _ => Retry::Never,
    };
    LaneAnswer::failed(words, retry)
}

/// An answer that says more than a result, such as emits.
fn settlement(body: &[u8], reference: &str, lane: &LaneRun) -> LaneAnswer {
    let ids = [lane.events[0].id];
    let answer = super::pipe::settlement(body, reference).and_then(|settlement| {
        let answer = convert::answer(&settlement, &ids).and_then(convert::own_streams);
        answer.map_err(|failure| failure.detail)
    });
    answer.unwrap_or_else(|wrong| {
        LaneAnswer::failed(format!("its answer is no settlement: {wrong}"), Retry::ByPolicy)
    })
}

/// Seconds from now, or a date.
fn retry_after(text: &str) -> Option<Duration> {
    let after = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let at = jiff::fmt::rfc2822::parse(text).ok()?.timestamp().as_microsecond();
            Duration::from_micros(u64::try_from(at).ok()?.saturating_sub(seam::now().0))
        }
    };
    Some(after.min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Standard Webhooks specification.
    #[test]
    fn a_signature_is_that_of_standard_webhooks() {
        let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let signature =
            secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(format!("{secret:?}"), "***");
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(retry_after("7"), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        assert_eq!(retry_after("999999999"), Some(RETRY_AFTER_MAX));
        assert_eq!(retry_after("soon"), None);
    }
}
