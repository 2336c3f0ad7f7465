//! TLS: certificates from files, read again without a restart.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use crate::access::{FileError, read_private};

/// Where certificate and key lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    /// The certificate and those that vouch for it, as PEM.
    pub(crate) cert: PathBuf,
    /// The key of the certificate, as PEM; only its owner may read it.
    pub(crate) key: PathBuf,
    /// Certificates that vouch for callers, as PEM; then a caller without such a certificate is refused.
    pub(crate) client_ca: Option<PathBuf>,
}

/// Certificates in use. Cheap to clone; all clones see a change.
#[derive(Debug, Clone)]
pub(crate) struct Tls {
    files: TlsFiles,
    config: Arc<RwLock<Arc<ServerConfig>>>,
}

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    /// The key cannot be used.
    #[error(transparent)]
    Key(#[from] FileError),
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file has not what it should.
    #[error("{}: {wrong}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        wrong: String,
    },
}

impl Tls {
    /// Reads the files.
    pub(crate) fn new(files: TlsFiles) -> Result<Self, TlsError> {
        let config = Arc::new(RwLock::new(read(&files)?));
        Ok(Self { files, config })
    }

    /// Reads the files again, for connections to come. Until all of them can be used, those of before stay in use.
    pub(crate) fn reload(&self) -> Result<(), TlsError> {
        let config = read(&self.files)?;
        *self.config.write() = config;
        Ok(())
    }

    /// What a connection uses that begins now.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config.read())
    }
}

fn read(files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
    let wrong = |path: &Path, wrong: String| TlsError::Wrong { path: path.to_owned(), wrong };
    let provider = Arc::new(default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&files.cert, error.to_string()))?;
    let builder = match &files.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for cert in certificates(path)? {
                roots.add(cert).map_err(|error| wrong(path, error.to_string()))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| wrong(path, error.to_string()))?)
        }
    };
    let key = read_private(&files.key)?;
    let key = PrivateKeyDer::from_pem_slice(key.reveal().as_bytes())
        .map_err(|_| wrong(&files.key, "has no private key as PEM".to_owned()))?;
    let mut config = builder
        .with_single_cert(certificates(&files.cert)?, key)
        .map_err(|error| wrong(&files.cert, format!("does not go with the key: {error}")))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text =
        std::fs::read(path).map_err(|source| TlsError::Unreadable { path: path.to_owned(), source })?;
    let wrong = |wrong: String| TlsError::Wrong { path: path.to_owned(), wrong };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| wrong(format!("is no PEM: {error}")))?;
    if found.is_empty() {
        return Err(wrong("has no certificate as PEM".to_owned()));
    }
    Ok(found)
}
