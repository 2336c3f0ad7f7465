//! The client: how it sends; one method per call of the API, in the file of its noun.

mod claims;
mod cluster;
mod dead_letters;
mod events;
mod follow;
mod jobs;
mod lanes;
mod processors;
mod schedules;
mod store;
mod streams;

use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use http::uri::{Authority, Scheme};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::connect::{self, Connections};
use crate::error::ClientError;
use crate::seam;

pub use self::follow::{Follow, Followed, Following};
pub use self::jobs::Submission;

/// How long an answer may take, unless it is said: longer than the longest wait that a call can ask the server for.
const TIMEOUT: Duration = Duration::from_secs(90);
/// How often an append or a submission is sent when its answer is lost.
const TRIES: usize = 2;

/// A server of Laneway, as seen from elsewhere. Cheap to clone; connections are shared and kept.
///
/// Every event and job that has no `dedup_id` gets one, so that an append whose answer is lost is repeated here without
/// becoming two events. Somebody who repeats a call later, after an error or a restart, names the events himself.
///
/// ```no_run
/// use std::time::Duration;
/// use laneway_client::Client;
///
/// # async fn example() -> Result<(), laneway_client::ClientError> {
/// let client = Client::new("http://127.0.0.1:7070")?.with_timeout(Duration::from_secs(70));
/// for stream in client.streams().await? {
///     println!("{} has {} partitions", stream.name, stream.partitions);
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Client {
    scheme: Scheme,
    authority: Authority,
    /// Marked as secret, so that nothing that prints the client or a request shows it.
    authorization: Option<HeaderValue>,
    timeout: Duration,
    http: Connections,
}

/// An answer of the server, whatever it is: for calls that the client has no method for.
///
/// ```no_run
/// # use laneway_client::{Client, ClientError, wire};
/// # async fn example(client: Client) -> Result<(), ClientError> {
/// let answer = client.send(http::Method::GET, "/v1/streams/orders", &[], None).await?;
/// println!("{}", answer.status);
/// let stream: wire::Stream = answer.read()?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: http::HeaderMap,
    /// Its body.
    pub body: Bytes,
}

impl Client {
    /// A client of the server at this address, such as `http://127.0.0.1:7070`. Nothing is sent yet.
    ///
    /// # Errors
    /// When the address has no host, has a path, or has a scheme that this client does not speak: `https` needs the
    /// feature `tls`.
    pub fn new(url: &str) -> Result<Self, ClientError> {
        let wrong = |wrong| ClientError::Url { url: url.to_owned(), wrong };
        let uri: Uri = url.parse().map_err(|_| wrong("is no URL"))?;
        let scheme = uri.scheme().filter(|scheme| connect::speaks(scheme)).cloned();
        let scheme = scheme.ok_or_else(|| wrong(connect::SCHEMES))?;
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(wrong("must end with its port, without a path"));
        }
        let authority = uri.authority().ok_or_else(|| wrong("names no host"))?.clone();
        let http = connect::connections(&scheme)?;
        Ok(Self { scheme, authority, authorization: None, timeout: TIMEOUT, http })
    }

    /// The same client, which shows this token with every call.
    ///
    /// # Errors
    /// When the token has bytes that no header can have.
    pub fn with_token(mut self, token: &str) -> Result<Self, ClientError> {
        let value = HeaderValue::from_str(&format!("Bearer {token}"));
        let mut value = value.map_err(|source| ClientError::Header { name: AUTHORIZATION, source })?;
        value.set_sensitive(true);
        self.authorization = Some(value);
        Ok(self)
    }

    /// The same client, which trusts a server over `https` only if one of these certificates (PEM) vouches for it;
    /// otherwise those of the system do.
    ///
    /// # Errors
    /// When there is no certificate in it, or one that cannot be read.
    #[cfg(feature = "tls")]
    pub fn with_ca(mut self, pem: &[u8]) -> Result<Self, ClientError> {
        self.http = connect::connections_trusting(pem)?;
        Ok(self)
    }

    /// The same client, whose answers may take so long; 90 seconds otherwise. A call that asks the server to wait, such
    /// as a claim, takes up to 60 seconds by itself.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The address of the server.
    pub fn address(&self) -> String {
        format!("{}://{}", self.scheme, self.authority)
    }

    /// Sends a request and answers whatever came, errors of the server included.
    ///
    /// # Errors
    /// When nobody answers in time, or when path or headers cannot be sent.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, &str)],
        body: Option<Vec<u8>>,
    ) -> Result<Answer, ClientError> {
        let answer = async {
            let (parts, body) = self.begin(method, path, headers, body).await?.into_parts();
            let body = body.collect().await.map_err(|error| self.unreachable(path, error))?.to_bytes();
            Ok(Answer { status: parts.status, headers: parts.headers, body })
        };
        self.in_time(path, answer).await
    }

    /// Sends a request and answers the head of what came, with the body still to be read.
    async fn begin(
        &self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, &str)],
        body: Option<Vec<u8>>,
    ) -> Result<Response<Incoming>, ClientError> {
        let mut request = Request::builder().method(method).uri(self.url(path));
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        for (name, value) in headers {
            let value = HeaderValue::from_str(value)
                .map_err(|source| ClientError::Header { name: name.clone(), source })?;
            request = request.header(name, value);
        }
        let body = Full::new(Bytes::from(body.unwrap_or_default()));
        let request =
            request.body(body).map_err(|source| ClientError::Path { path: path.to_owned(), source })?;
        self.http.request(request).await.map_err(|error| self.unreachable(path, error))
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address())
    }

    fn unreachable(
        &self,
        path: &str,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> ClientError {
        ClientError::Unreachable { url: self.url(path), source: error.into() }
    }

    async fn in_time<A>(
        &self,
        path: &str,
        answer: impl Future<Output = Result<A, ClientError>>,
    ) -> Result<A, ClientError> {
        let in_time = seam::within(self.timeout, answer).await;
        in_time.unwrap_or_else(|| Err(ClientError::TimedOut { url: self.url(path), after: self.timeout }))
    }

    /// Sends what the server does once however often it gets it, and again if the answer is lost.
    async fn send_once_done(
        &self,
        path: &str,
        headers: &[(HeaderName, &str)],
        body: &[u8],
    ) -> Result<Answer, ClientError> {
        let mut tried = 0;
        loop {
            tried += 1;
            match self.send(Method::POST, path, headers, Some(body.to_vec())).await {
                Err(ClientError::Unreachable { .. }) if tried < TRIES => {}
                answer => return answer,
            }
        }
    }

    async fn call<A: DeserializeOwned>(&self, method: Method, path: &str) -> Result<A, ClientError> {
        self.send(method, path, &[], None).await?.read()
    }

    async fn call_with<A: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &(impl Serialize + Sync + ?Sized),
    ) -> Result<A, ClientError> {
        self.send(method, path, &[], Some(serde_json::to_vec(body)?)).await?.read()
    }
}

impl Answer {
    /// This answer, unless it is an error of the server.
    ///
    /// # Errors
    /// What the server says is wrong.
    pub fn succeeded(self) -> Result<Self, ClientError> {
        if self.status.is_success() {
            return Ok(self);
        }
        Err(self.refusal())
    }

    /// What the server says is wrong.
    fn refusal(&self) -> ClientError {
        match serde_json::from_slice(&self.body) {
            Ok(problem) => ClientError::Problem(problem),
            Err(source) => ClientError::Foreign { status: self.status, source },
        }
    }

    /// The body as a type, unless the answer is an error of the server.
    ///
    /// # Errors
    /// What the server says is wrong, or that the body is not of this type.
    pub fn read<A: DeserializeOwned>(self) -> Result<A, ClientError> {
        let answer = self.succeeded()?;
        serde_json::from_slice(&answer.body)
            .map_err(|source| ClientError::Foreign { status: answer.status, source })
    }

    /// Where to look for what was made.
    pub fn location(&self) -> Option<&str> {
        self.headers.get(LOCATION)?.to_str().ok()
    }
}

/// A name for an event that nobody else gives.
fn dedup_id() -> String {
    format!("client-{:032x}", seam::unique())
}

/// Text for a piece of a path or query: everything but letters, digits, `-`, `.`, `_` and `~` is escaped.
fn escaped(text: impl AsRef<[u8]>) -> String {
    let mut escaped = String::new();
    for &byte in text.as_ref() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

/// A path with the parts of a query that are set.
fn with_query<const N: usize>(path: &str, parts: [(&str, Option<&[u8]>); N]) -> String {
    let parts = parts.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", escaped(value?))));
    let query: Vec<String> = parts.collect();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{EventDraft, JobDraft};

    #[test]
    fn odd_names_and_keys_are_escaped() {
        assert_eq!(escaped("ns/name?&"), "ns%2Fname%3F%26");
        assert_eq!(escaped([b'a', 0xff, b'\n']), "a%FF%0A");
    }

    #[test]
    fn addresses_that_cannot_work_are_refused() {
        for (url, wrong) in [
            ("ftp://127.0.0.1:7070", "must begin with http://"),
            ("127.0.0.1:7070", "must begin with http://"),
            ("http://127.0.0.1:7070/v1", "without a path"),
        ] {
            let refused = Client::new(url).unwrap_err().to_string();
            assert!(refused.contains(wrong), "{url}: {refused}");
        }
    }

    #[cfg(feature = "tls")]
    #[test]
    fn certificates_that_vouch_for_nobody_are_refused() {
        let client = Client::new("https://127.0.0.1:7070").unwrap();
        let refused = client.clone().with_ca(b"no certificate").unwrap_err().to_string();
        assert!(refused.contains("there is none in PEM form"), "{refused}");
        let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(client.with_ca(broken).is_err());
    }

    #[test]
    fn a_token_is_not_shown() {
        let client = Client::new("http://127.0.0.1:7070").unwrap().with_token("canary").unwrap();
        assert!(!format!("{client:?}").contains("canary"));
        let refused = client.with_token("two\nlines").unwrap_err();
        assert!(matches!(refused, ClientError::Header { name, .. } if name == AUTHORIZATION));
    }

    #[tokio::test]
    async fn a_value_that_no_header_can_have_is_named_and_nothing_is_sent() {
        // Nobody listens there: a client that sent anything would say so.
        let client = Client::new("http://127.0.0.1:1").unwrap();
        let refused =
            client.submit("orders", &JobDraft::default(), None, Some("two\nlines")).await.unwrap_err();
        assert!(
            matches!(&refused, ClientError::Header { name, .. } if name == "idempotency-key"),
            "{refused:?}"
        );
        let refused = client.send(Method::GET, "/a b", &[], None).await.unwrap_err();
        assert!(matches!(refused, ClientError::Path { .. }), "{refused:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_says_nothing_is_given_up() {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());
        let client = Client::new(&url).unwrap().with_timeout(Duration::from_secs(3));
        let waited = client.streams().await.unwrap_err();
        let after = Duration::from_secs(3);
        assert!(matches!(waited, ClientError::TimedOut { after: told, .. } if told == after), "{waited:?}");
    }

    /// A server that takes one call and closes the connection, then answers the next one.
    #[tokio::test]
    async fn an_append_whose_answer_is_lost_is_sent_again_under_the_same_id() {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = Client::new(&format!("http://{}", server.local_addr().unwrap())).unwrap();
        let read = async || {
            let (mut connection, _) = server.accept().await.unwrap();
            let mut said = Vec::new();
            while !said.ends_with(b"]") {
                let mut piece = [0; 1024];
                let read = connection.read(&mut piece).await.unwrap();
                assert!(read > 0, "the call ends with its array");
                said.extend_from_slice(&piece[..read]);
            }
            let said = String::from_utf8(said).unwrap();
            let body = said.split_once("\r\n\r\n").unwrap().1.to_owned();
            (connection, body)
        };
        let serve = async {
            let (lost, first) = read().await;
            drop(lost);
            let (mut connection, second) = read().await;
            let answer = r#"{"events":[],"durability":"synced"}"#;
            let answer = format!("HTTP/1.1 201 Created\r\nContent-Length: {}\r\n\r\n{answer}", answer.len());
            connection.write_all(answer.as_bytes()).await.unwrap();
            (first, second)
        };
        let own = EventDraft { dedup_id: Some("mine".to_owned()), ..EventDraft::default() };
        let events = [EventDraft::default(), EventDraft::default(), own];
        // A client that gives up ends the wait of the server.
        let serve = async { Ok(serve.await) };
        let (_, (first, second)) = tokio::try_join!(client.append("orders", &events), serve).unwrap();
        assert_eq!(first, second);
        let sent: Vec<EventDraft> = serde_json::from_str(&first).unwrap();
        let ids: Vec<&str> = sent.iter().map(|event| event.dedup_id.as_deref().unwrap()).collect();
        assert!(ids[0] != ids[1] && ids[0].starts_with("client-") && ids[2] == "mine", "{ids:?}");
    }
}
