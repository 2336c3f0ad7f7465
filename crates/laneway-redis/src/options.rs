//! Where the server is and what a store on it is asked for.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::{CLOCK_SETTLE, Clock, Incarnation, Refusal, check_name};
use redis::{Client, ClientTlsConfig, TlsCertificates};

/// How to open a store on Redis.
///
/// ```
/// use laneway_redis::RedisOptions;
/// let options = RedisOptions { namespace: "shop".to_owned(), ..RedisOptions::new("redis://127.0.0.1:6379") };
/// assert_eq!(options.wait_replicas, 0);
/// ```
#[derive(Clone)]
pub struct RedisOptions {
    /// Where: `redis://HOST:PORT/DB`, `rediss://` for TLS, or `unix:PATH`, with user and password if the server wants them.
    pub url: String,
    /// Keeps several stores on one server apart; letters, digits, `.`, `_` and `-`. Default `laneway`.
    pub namespace: String,
    /// How many replicas must have a write before it is answered (`WAIT`). Default 0: none is waited for.
    pub wait_replicas: u8,
    /// How long to wait for an answer before a call counts as unanswered. Default 10 seconds.
    pub answer_within: Duration,
    /// How long a connection may take until the server has said who it is. Default 5 seconds.
    pub connect_within: Duration,
    /// For `rediss://`: whom to trust and who we are. Default: the machine's authorities, and nobody.
    pub tls: RedisTls,
    /// How long the server's clock must agree with the steady clock of this machine, after a jump of more than a minute,
    /// before the store believes it and deletes data by its age. Default 10 minutes.
    pub clock_settle: Duration,
    /// For tests: goes by this clock instead of the server's. Default none.
    pub clock: Option<Arc<dyn Clock>>,
    /// For tests: takes this for the life of the server. Default none: the server's own run.
    pub incarnation: Option<Incarnation>,
}

/// Certificates for a connection over TLS, each as PEM.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RedisTls {
    /// The authorities that may vouch for the server. Default none: those that the machine trusts.
    pub ca: Option<Vec<u8>>,
    /// Our certificate and its key, for servers that ask for one. Default none.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl RedisOptions {
    /// A store on this server, with everything else as usual.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            namespace: "laneway".to_owned(),
            wait_replicas: 0,
            answer_within: Duration::from_secs(10),
            connect_within: Duration::from_secs(5),
            tls: RedisTls::default(),
            clock_settle: CLOCK_SETTLE,
            clock: None,
            incarnation: None,
        }
    }

    /// Refuses what no server can be asked for.
    pub fn check(&self) -> Result<(), Refusal> {
        self.client().map(drop)
    }

    /// Whoever connects as these options say.
    pub(crate) fn client(&self) -> Result<Client, Refusal> {
        check_name("namespace", &self.namespace)?;
        for (field, length) in
            [("answer_within", self.answer_within), ("connect_within", self.connect_within)]
        {
            if length.is_zero() {
                return Err(Refusal::new(field, "0", "more than nothing"));
            }
        }
        // The URL may carry a password, so it is not repeated.
        let wrong = |error: redis::RedisError| {
            let limit = format!("redis://HOST:PORT/DB, rediss://HOST:PORT/DB or unix:PATH ({error})");
            Refusal::new("url of the store", "no such URL", limit)
        };
        if self.url.contains('#') {
            let limit =
                "without #: a server over TLS is always checked (percent-encode a # in a password as %23)";
            return Err(Refusal::new("url of the store", "one with #", limit));
        }
        if !self.url.starts_with("rediss:") {
            if self.tls != RedisTls::default() {
                return Err(Refusal::new("certificates of the store", "given", "none without rediss://"));
            }
            return Client::open(&self.url[..]).map_err(wrong);
        }
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Somebody else in this process may have been faster, and then theirs counts.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let RedisTls { ca, identity } = self.tls.clone();
        let identity = identity.map(|(client_cert, client_key)| ClientTlsConfig { client_cert, client_key });
        let certificates = TlsCertificates { client_tls: identity, root_cert: ca };
        Client::build_with_tls(&self.url[..], certificates).map_err(wrong)
    }
}

impl fmt::Debug for RedisOptions {
    /// Without the URL, which may carry a password, and without keys.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RedisOptions")
            .field("namespace", &self.namespace)
            .field("wait_replicas", &self.wait_replicas)
            .field("answer_within", &self.answer_within)
            .field("connect_within", &self.connect_within)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RedisTls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RedisTls").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut RedisOptions)) -> String {
        let mut options = RedisOptions::new("redis://ann:canary@127.0.0.1:6379");
        change(&mut options);
        options.check().unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_named_and_passwords_are_not() {
        let told = [
            refused(|options| options.url = "redis://ann:canary@:port".to_owned()),
            refused(|options| options.url = "rediss://ann:canary@db:6379/#insecure".to_owned()),
            refused(|options| options.namespace = "a b".to_owned()),
            refused(|options| options.answer_within = Duration::ZERO),
            refused(|options| options.connect_within = Duration::ZERO),
            refused(|options| options.tls.ca = Some(b"canary".to_vec())),
            refused(|options| {
                options.url = "rediss://ann:canary@db".to_owned();
                options.tls.identity = Some((b"canary".to_vec(), b"canary".to_vec()));
            }),
            format!("{:?}", RedisOptions::new("redis://ann:canary@127.0.0.1:6379")),
        ];
        let fields = [
            "url of",
            "url of",
            "namespace",
            "answer_within",
            "connect_within",
            "certificates",
            "url of",
            "Redis",
        ];
        for (told, field) in told.iter().zip(fields) {
            assert!(told.starts_with(field) && !told.contains("canary"), "{told}");
        }
    }
}
