//! What an operator allows endpoints that were named over the API to be.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::address::{Range, refused};
use crate::handlers::Secret;

/// What is allowed.
pub(crate) struct Rules {
    /// What calls are signed with. Without it, no endpoint can be named.
    pub(crate) secret: Secret,
    /// The ports there may be.
    pub(super) ports: Vec<u16>,
    /// Addresses that may be called although they are not public.
    pub(super) private: Vec<Range>,
    /// Whether http:// is allowed.
    pub(super) plaintext: bool,
    /// Who vouches for endpoints.
    pub(super) tls: Arc<rustls::ClientConfig>,
}

/// Why endpoints cannot be called.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RulesError {
    /// The certificates cannot be read.
    #[error("webhook.ca_file {}: {words}", .path.display())]
    Certificates {
        /// Where they should be.
        path: PathBuf,
        /// What is wrong with them.
        words: String,
    },
    /// There is no version of TLS that can be used.
    #[error("TLS cannot be used")]
    Tls(#[from] rustls::Error),
}

impl Rules {
    /// Rules with this secret; `vouching` has certificates beside those that the system trusts.
    pub(crate) fn new(
        secret: Secret,
        ports: Vec<u16>,
        private: Vec<Range>,
        plaintext: bool,
        vouching: Option<&Path>,
    ) -> Result<Self, RulesError> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(path) = vouching {
            let wrong = |words: String| RulesError::Certificates { path: path.to_owned(), words };
            let read = CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?;
            for certificate in read {
                roots
                    .add(certificate.map_err(|error| wrong(error.to_string()))?)
                    .map_err(|error| wrong(error.to_string()))?;
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { secret, ports, private, plaintext, tls: Arc::new(tls) })
    }

    /// Refuses an address that only this server may reach.
    pub(super) fn check(&self, address: IpAddr) -> Result<(), String> {
        match refused(address) {
            Some(what) if !self.private.iter().any(|range| range.contains(address)) => Err(format!(
                "its address {address} is {what}, must be public (webhook.allow_private names others)"
            )),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Rules").field("ports", &self.ports).finish_non_exhaustive()
    }
}
