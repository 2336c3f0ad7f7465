//! Calls to an endpoint that was named over the API.
//!
//! For every delivery its name is looked up once, every address it has is checked, and the connection goes to one of exactly
//! those: a name that means another address a moment later changes nothing. TLS still asks for the name. Nothing is followed,
//! and a connection is used once.

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

/// Finds the addresses of a name.
type Resolve = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// The way to an endpoint.
pub(in crate::handlers) struct Guarded {
    target: Target,
    rules: Arc<Rules>,
    resolve: Resolve,
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
        Self { target, rules, resolve }
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
        let stream = connected(&addresses).await?;
        let authority = self.target.uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
        let host = HeaderValue::from_str(authority).map_err(|error| error.to_string())?;
        request.headers_mut().insert(HOST, host);
        let path = self.target.uri.path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() = path.parse().map_err(|error| format!("cannot be posted: {error}"))?;
        if !self.target.is_https {
            return sent(stream, request).await;
        }
        let name = match &self.target.host {
            Host::Name(name) => ServerName::try_from(name.clone()).map_err(|error| error.to_string())?,
            Host::Address(address) => ServerName::from(*address),
        };
        let connector = TlsConnector::from(Arc::clone(&self.rules.tls));
        let stream = connector.connect(name, stream).await.map_err(|error| lost(&error))?;
        sent(stream, request).await
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
async fn connected(addresses: &[SocketAddr]) -> Result<TcpStream, String> {
    let mut last = format!("no answer: no connection within {} s", CONNECT.as_secs());
    for address in addresses {
        match seam::within(CONNECT, TcpStream::connect(address)).await {
            Some(Ok(stream)) => return Ok(stream),
            Some(Err(error)) => last = lost(&error),
            None => {}
        }
    }
    Err(last)
}

async fn sent(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, String> {
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| lost(&error))?;
    // It ends with its one answer; what goes wrong with it is told to whoever waits for that.
    drop(seam::spawn(connection));
    sender.send_request(request).await.map_err(|error| lost(&error))
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
        Ok(Guarded { target: Target::parse(url, rules)?, rules: Arc::clone(rules), resolve })
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
}
