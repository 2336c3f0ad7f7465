//! What `[http]` says: where to listen, who may call, and how much.

use std::path::PathBuf;
use std::time::Duration;

use crate::access::{Book, BookError, Secret};
use crate::http::Limits;
use crate::listen::{Consent, Patience, TlsFiles};

/// The HTTP API.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Http {
    /// Where to listen: an address or a name, and a port.
    pub(crate) listen: String,
    /// File with the tokens that are valid.
    pub(crate) token_file: Option<PathBuf>,
    /// The same lines, said in the environment.
    pub(crate) tokens: Option<Secret>,
    /// The certificate, its key, and who vouches for callers.
    pub(crate) tls_cert: Option<PathBuf>,
    pub(crate) tls_key: Option<PathBuf>,
    pub(crate) tls_client_ca: Option<PathBuf>,
    /// Names by which others may call this server.
    pub(crate) hosts: Vec<String>,
    /// Others may connect without TLS.
    pub(crate) allow_plaintext: bool,
    /// Others may call without a token.
    pub(crate) allow_anonymous: bool,
    /// Nothing may be changed, and nothing is run.
    pub(crate) read_only: bool,
    /// How large requests may be, and how many.
    pub(crate) limits: Limits,
    /// How many connections there may be, and how long they may take.
    pub(crate) patience: Patience,
}

impl Http {
    /// On this address, with nothing else said.
    pub(crate) fn on(listen: impl Into<String>) -> Self {
        Self {
            listen: listen.into(),
            token_file: None,
            tokens: None,
            tls_cert: None,
            tls_key: None,
            tls_client_ca: None,
            hosts: Vec::new(),
            allow_plaintext: false,
            allow_anonymous: false,
            read_only: false,
            limits: Limits::default(),
            patience: Patience {
                count_max: 4_096,
                head: Duration::from_secs(10),
                body: Duration::from_secs(30),
                idle: Duration::from_secs(75),
            },
        }
    }

    /// Where certificate and key lie, if TLS is wanted.
    pub(crate) fn tls_files(&self) -> Option<TlsFiles> {
        let (cert, key) = (self.tls_cert.clone()?, self.tls_key.clone()?);
        Some(TlsFiles { cert, key, client_ca: self.tls_client_ca.clone() })
    }

    /// The tokens that are valid.
    pub(crate) fn book(&self) -> Result<Book, BookError> {
        match (&self.token_file, &self.tokens) {
            (Some(path), _) => Book::of_file(path),
            (None, Some(lines)) => Book::of_lines(lines, "LANEWAY_HTTP_TOKENS"),
            (None, None) => Ok(Book::empty()),
        }
    }

    /// What was prepared or said for a listener that others can reach.
    pub(crate) fn consent(&self) -> Consent {
        Consent {
            tokens: self.token_file.is_some() || self.tokens.is_some(),
            tls: self.tls_cert.is_some(),
            plaintext: self.allow_plaintext,
            anonymous: self.allow_anonymous,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::load::{Sources, load};
    use super::*;

    /// `dev` begins from these, `serve` from the table.
    #[test]
    fn the_table_has_the_same_defaults() {
        assert_eq!(load(&Sources::default()).unwrap().settings.http, Http::on("127.0.0.1:7070"));
    }
}
