//! Tokens and certificates, read again when the process is asked to (SIGHUP).

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::access::Book;
use crate::http::chain;
use crate::listen::Tls;

/// What can be read again.
pub(crate) struct Reload {
    asked: Signal,
    book: Book,
    tls: Option<Tls>,
}

impl Reload {
    /// From here on the signal does not end the process.
    pub(crate) fn new(book: Book, tls: Option<Tls>) -> io::Result<Self> {
        Ok(Self { asked: signal(SignalKind::hangup())?, book, tls })
    }

    /// Reads both again with every signal. What cannot be used leaves what was before in use, and is told.
    pub(crate) async fn whenever_asked(mut self) {
        while self.asked.recv().await.is_some() {
            match self.book.reload() {
                Ok(()) => tracing::info!("tokens were read again"),
                Err(error) => {
                    tracing::error!(error = chain(&error), "the tokens of before stay valid");
                }
            }
            match self.tls.as_ref().map(Tls::reload) {
                None => {}
                Some(Ok(())) => tracing::info!("certificates were read again"),
                Some(Err(error)) => {
                    tracing::error!(error = chain(&error), "the certificates of before stay in use");
                }
            }
        }
        std::future::pending().await
    }
}
