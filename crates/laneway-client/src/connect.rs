//! How connections are made: plain, or with TLS where the feature `tls` is on.
//!
//! Without certificates of one's own, those of the system are trusted; they are read only for an address that needs them.

use bytes::Bytes;
use http::uri::Scheme;
use http_body_util::Full;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::error::ClientError;

#[cfg(feature = "tls")]
type Connector = hyper_rustls::HttpsConnector<HttpConnector>;
#[cfg(not(feature = "tls"))]
type Connector = HttpConnector;

/// What sends requests and keeps connections.
pub(crate) type Connections = HttpClient<Connector, Full<Bytes>>;

/// Schemes that this client can speak, for an error.
pub(crate) const SCHEMES: &str = if cfg!(feature = "tls") {
    "must begin with http:// or https://"
} else {
    "must begin with http://, the only scheme of this client (the feature `tls` brings https)"
};

/// Whether this client can speak it.
pub(crate) fn speaks(scheme: &Scheme) -> bool {
    *scheme == Scheme::HTTP || (cfg!(feature = "tls") && *scheme == Scheme::HTTPS)
}

/// Connections to a server of this scheme.
#[cfg(not(feature = "tls"))]
pub(crate) fn connections(_: &Scheme) -> Result<Connections, ClientError> {
    Ok(HttpClient::builder(TokioExecutor::new()).build(HttpConnector::new()))
}

/// Connections to a server of this scheme, which is trusted as the system trusts it.
#[cfg(feature = "tls")]
pub(crate) fn connections(scheme: &Scheme) -> Result<Connections, ClientError> {
    let mut roots = rustls::RootCertStore::empty();
    if *scheme == Scheme::HTTPS {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    trusting(roots)
}

/// Connections to a server that somebody whose certificate is in this PEM text vouches for, and nobody else.
#[cfg(feature = "tls")]
pub(crate) fn connections_trusting(pem: &[u8]) -> Result<Connections, ClientError> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| wrong(&error))?;
        roots.add(certificate).map_err(|error| wrong(&error))?;
    }
    if roots.is_empty() {
        return Err(ClientError::Certificate { wrong: "there is none in PEM form".to_owned() });
    }
    trusting(roots)
}

#[cfg(feature = "tls")]
fn trusting(roots: rustls::RootCertStore) -> Result<Connections, ClientError> {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut plain = HttpConnector::new();
    plain.enforce_http(false);
    let connector = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_http1()
        .wrap_connector(plain);
    Ok(HttpClient::builder(TokioExecutor::new()).build(connector))
}

#[cfg(feature = "tls")]
fn wrong(error: &dyn std::error::Error) -> ClientError {
    ClientError::Certificate { wrong: error.to_string() }
}
