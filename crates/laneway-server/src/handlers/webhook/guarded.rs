//! Calls to an endpoint that was named over the API.
//!
//! For every delivery its name is looked up once, every address it has is checked, and the connection goes to one of exactly
//! those: a name that means another address a moment later changes nothing. TLS still asks for the name. Nothing is followed.
//!
//! A few connections stay open for the next deliveries. Such a delivery looks its name up and checks the addresses all the
//! same, and uses a connection only if it goes to one of them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, Uri, header::HOST};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use laneway::Steady;
use parking_lot::Mutex;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::rules::Rules;
use super::target::{Host, Target};
use crate::seam;

/// Longest time for one of several addresses.
const CONNECT: Duration = Duration::from_secs(5);
/// Most addresses that are tried.
const ADDRESSES_MAX: usize = 4;
/// Most connections to an endpoint that are kept.
const KEPT_MAX: usize = 16;
/// How long an idle connection may be reused. Shorter than the keep-alive timeout of common servers: if the server closes
/// the connection while a request is in flight, that attempt fails.
const KEPT_FOR: Duration = Duration::from_secs(1);

/// Finds the addresses of a name.
type Resolve = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// The way to an endpoint.
pub(in crate::handlers) struct Guarded {
    target: Target,
    rules: Arc<Rules>,
    resolve: Resolve,
    kept: Mutex<Vec<Kept>>,
}

/// A connection that was used. It may be used again once its last answer was read to the end.
struct Kept {
    address: SocketAddr,
    sender: http1::SendRequest<Full<Bytes>>,
    used_at: Steady,
}

impl Guarded {
    /// Longest time from looking up the name to the end of the answer.
    pub(in crate::handlers) const TOTAL: Duration = Duration::from_secs(30);
    /// Most bytes of an answer.
    pub(in crate::handlers) const ANSWER_BYTES_MAX: usize = 64 << 10;

    pub(in crate::handlers) fn new(target: Target, rules: Arc<Rules>) -> Self {
        let resolve: Resolve = Arc::new(|name: String| {
            Box::pin(async move {
                let found = tokio::net::lookup_host((name, 0)).await?;
                Ok(found.map(|address| address.ip()).collect())
            })
        });
        Self { target, rules, resolve, kept: Mutex::default() }
    }

    /// Where it is.
    pub(in crate::handlers) fn uri(&self) -> &Uri {
        &self.target.uri
    }

    /// Posts once.
    pub(in crate::handlers) async fn request(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, String> {
        let addresses = self.checked().await.map_err(|wrong| format!("not called: {wrong}"))?;
        let authority = self.target.uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
        let host = HeaderValue::from_str(authority).map_err(|error| error.to_string())?;
        request.headers_mut().insert(HOST, host);
        let path = self.target.uri.path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() = path.parse().map_err(|error| format!("cannot be posted: {error}"))?;
        while let Some(mut kept) = self.take_kept(&addresses) {
            match kept.sender.try_send_request(request).await {
                Ok(answer) => {
                    self.keep(kept.address, kept.sender);
                    return Ok(answer);
                }
                // It was closed before anything was sent.
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(lost(&failed.into_error())),
                },
            }
        }
        let (address, mut sender) = self.connected(&addresses).await?;
        let answer = sender.send_request(request).await.map_err(|error| lost(&error))?;
        self.keep(address, sender);
        Ok(answer)
    }

    /// A new connection to one of these.
    async fn connected(
        &self,
        addresses: &[SocketAddr],
    ) -> Result<(SocketAddr, http1::SendRequest<Full<Bytes>>), String> {
        let (address, stream) = connected(addresses).await?;
        if !self.target.is_https {
            return Ok((address, sender(stream).await?));
        }
        let name = match &self.target.host {
            Host::Name(name) => ServerName::try_from(name.clone()).map_err(|error| error.to_string())?,
            Host::Address(address) => ServerName::from(*address),
        };
        let connector = TlsConnector::from(Arc::clone(&self.rules.tls));
        let stream = connector.connect(name, stream).await.map_err(|error| lost(&error))?;
        Ok((address, sender(stream).await?))
    }

    /// A connection to one of these that was used lately and is free.
    fn take_kept(&self, addresses: &[SocketAddr]) -> Option<Kept> {
        let now = seam::steady();
        let mut kept = self.kept.lock();
        kept.retain(|kept| !kept.sender.is_closed() && now.since(kept.used_at) < KEPT_FOR);
        let is_usable = |kept: &Kept| kept.sender.is_ready() && addresses.contains(&kept.address);
        let free = kept.iter().rposition(is_usable)?;
        Some(kept.swap_remove(free))
    }

    fn keep(&self, address: SocketAddr, sender: http1::SendRequest<Full<Bytes>>) {
        let mut kept = self.kept.lock();
        // A connection that is not kept ends with its answer.
        if kept.len() < KEPT_MAX {
            kept.push(Kept { address, sender, used_at: seam::steady() });
        }
    }

    /// The addresses that may be connected to. All are checked: one that is refused tells of a name that is no good.
    async fn checked(&self) -> Result<Vec<SocketAddr>, String> {
        let found = match &self.target.host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => {
                let found = (self.resolve)(name.clone()).await;
                found.map_err(|error| format!("its name has no address: {error}"))?
            }
        };
        if found.is_empty() {
            return Err("its name has no address".to_owned());
        }
        found.iter().try_for_each(|address| self.rules.check(*address))?;
        Ok(found
            .into_iter()
            .take(ADDRESSES_MAX)
            .map(|address| SocketAddr::new(address, self.target.port))
            .collect())
    }
}

impl std::fmt::Debug for Guarded {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Guarded").field("host", &self.target.host).finish_non_exhaustive()
    }
}

fn lost(error: &(dyn std::error::Error + 'static)) -> String {
    format!("no answer: {}", crate::http::chain(error))
}

/// The first of these that takes a connection.
async fn connected(addresses: &[SocketAddr]) -> Result<(SocketAddr, TcpStream), String> {
    let mut last = format!("no answer: no connection within {} s", CONNECT.as_secs());
    for address in addresses {
        match seam::within(CONNECT, TcpStream::connect(address)).await {
            Some(Ok(stream)) => {
                // What is sent is small: it must not wait for an answer to what was sent before.
                stream.set_nodelay(true).map_err(|error| lost(&error))?;
                return Ok((*address, stream));
            }
            Some(Err(error)) => last = lost(&error),
            None => {}
        }
    }
    Err(last)
}

/// Sends requests over a connection, one after the other.
async fn sender(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Result<http1::SendRequest<Full<Bytes>>, String> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| lost(&error))?;
    // It ends with its sender. Callers that wait for an answer get its errors.
    drop(seam::spawn(connection));
    Ok(sender)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::handlers::Secret;

    fn rules(ports: Vec<u16>, plaintext: bool) -> Arc<Rules> {
        Arc::new(Rules::new(Secret::new("s"), ports, Vec::new(), plaintext, None).unwrap())
    }

    /// What a name means at the first look, at the second, and so on; the last goes on.
    fn meaning(answers: Vec<Vec<IpAddr>>) -> (Resolve, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        let resolve: Resolve = Arc::new(move |_| {
            let turn = counter.fetch_add(1, Ordering::Relaxed).min(answers.len() - 1);
            let answer = answers[turn].clone();
            Box::pin(async move { Ok(answer) })
        });
        (resolve, asked)
    }

    fn guarded(url: &str, rules: &Arc<Rules>, resolve: Resolve) -> Result<Guarded, String> {
        let kept = Mutex::default();
        Ok(Guarded { target: Target::parse(url, rules)?, rules: Arc::clone(rules), resolve, kept })
    }

    /// Each line is a URL, or a URL and what its name means.
    #[tokio::test]
    async fn two_hundred_hostile_urls_are_refused() {
        let rules = rules(vec![443], false);
        let lines: Vec<&str> =
            include_str!("hostile_urls.txt").lines().filter(|line| !line.starts_with("%%")).collect();
        let mut refused = 0;
        for line in &lines {
            let (url, meant) = line.split_once(" => ").unwrap_or((line, "8.8.8.8"));
            let meant = meant.split(' ').map(|address| address.parse().unwrap()).collect();
            let checked = match guarded(url, &rules, meaning(vec![meant]).0) {
                Ok(guarded) => guarded.checked().await.map(|_| ()),
                Err(wrong) => Err(wrong),
            };
            assert!(checked.is_err(), "{url} is called");
            refused += 1;
        }
        println!("hostile URLs refused: {refused} of {}", lines.len());
        assert_eq!((refused, lines.len()), (200, 200));
    }

    #[tokio::test]
    async fn endpoints_of_the_public_network_are_called() {
        let rules = rules(vec![443, 8443], false);
        for url in [
            "https://example.org",
            "https://hooks.example.org/a/b?token=1",
            "https://EXAMPLE.org:8443/x",
            "https://8.8.8.8/",
            "https://[2606:4700::1111]/",
        ] {
            let (resolve, _) = meaning(vec![vec!["93.184.215.14".parse().unwrap()]]);
            let checked = guarded(url, &rules, resolve).unwrap().checked().await.unwrap();
            assert_eq!(checked.len(), 1, "{url}");
        }
        let (resolve, _) = meaning(vec![vec!["8.8.8.8".parse().unwrap()]]);
        assert!(guarded("http://example.org:8443/", &rules, resolve).is_err());
    }

    /// A name that is looked up twice may mean something else the second time: it is looked up once for a delivery, and
    /// again for the next.
    #[tokio::test]
    async fn a_name_is_looked_up_once_for_each_delivery() {
        let public: IpAddr = "93.184.215.14".parse().unwrap();
        let inside: IpAddr = "169.254.169.254".parse().unwrap();
        let rules = rules(vec![443], false);
        let (resolve, asked) = meaning(vec![vec![public], vec![inside]]);
        let guarded = guarded("https://rebind.example.org/", &rules, resolve).unwrap();
        assert_eq!(guarded.checked().await.unwrap(), [SocketAddr::new(public, 443)]);
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        let wrong = guarded.checked().await.unwrap_err();
        assert!(wrong.contains("169.254.169.254 is link-local"), "{wrong}");
    }

    #[tokio::test]
    async fn one_bad_address_among_good_ones_is_enough() {
        let meant = vec!["93.184.215.14".parse().unwrap(), "10.0.0.1".parse().unwrap()];
        let rules = rules(vec![443], false);
        let guarded = guarded("https://both.example.org/", &rules, meaning(vec![meant]).0).unwrap();
        assert!(guarded.checked().await.unwrap_err().contains("10.0.0.1 is private"));
    }

    /// An endpoint on this machine that takes so many connections and answers every request. Answers its port, and how many
    /// requests came over each connection.
    async fn endpoint(connections: usize) -> (u16, tokio::task::JoinHandle<Vec<usize>>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = seam::spawn(async move {
            let mut served = Vec::new();
            for _ in 0..connections {
                let (mut stream, _) = listener.accept().await.unwrap();
                served.push(seam::spawn(async move { answered(&mut stream).await }));
            }
            futures::future::join_all(served).await.into_iter().map(Result::unwrap).collect()
        });
        (port, serving)
    }

    /// Answers requests without a body until the connection ends; counts them.
    async fn answered(stream: &mut TcpStream) -> usize {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let (mut requests, mut received) = (0, Vec::new());
        while stream.read_buf(&mut received).await.unwrap_or(0) > 0 {
            if received.ends_with(b"\r\n\r\n") {
                received.clear();
                requests += 1;
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
            }
        }
        requests
    }

    async fn post(guarded: &Guarded) {
        use http_body_util::BodyExt as _;
        let request = Request::post(guarded.uri().clone()).body(Full::default()).unwrap();
        let answer = guarded.request(request).await.unwrap();
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "ok");
    }

    fn local_rules(port: u16) -> Arc<Rules> {
        let private = vec!["127.0.0.0/8".parse().unwrap()];
        Arc::new(Rules::new(Secret::new("s"), vec![port], private, true, None).unwrap())
    }

    #[tokio::test]
    async fn deliveries_share_a_connection_and_each_one_looks_the_name_up() {
        let (port, serving) = endpoint(1).await;
        let rules = local_rules(port);
        let (resolve, asked) = meaning(vec![vec!["127.0.0.1".parse().unwrap()]]);
        let guarded = guarded(&format!("http://hooks.example.org:{port}/"), &rules, resolve).unwrap();
        for _ in 0..3 {
            post(&guarded).await;
        }
        assert_eq!(asked.load(Ordering::Relaxed), 3);
        drop(guarded);
        assert_eq!(serving.await.unwrap(), [3]);
    }

    #[tokio::test]
    async fn kept_connection_is_not_used_when_the_name_means_another_address() {
        let (port, serving) = endpoint(1).await;
        let rules = local_rules(port);
        let (here, inside) = ("127.0.0.1".parse().unwrap(), "169.254.169.254".parse().unwrap());
        let (resolve, _) = meaning(vec![vec![here], vec![inside]]);
        let guarded = guarded(&format!("http://rebind.example.org:{port}/"), &rules, resolve).unwrap();
        post(&guarded).await;
        let request = Request::post(guarded.uri().clone()).body(Full::default()).unwrap();
        let wrong = guarded.request(request).await.unwrap_err();
        assert!(wrong.contains("169.254.169.254 is link-local"), "{wrong}");
        drop(guarded);
        assert_eq!(serving.await.unwrap(), [1]);
    }
}
