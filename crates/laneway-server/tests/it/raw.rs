//! A connection of which tests see every byte: for answers that come piece by piece.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::program::Program;
use crate::seam;

/// A connection with one call on it.
pub(crate) struct Raw {
    connection: TcpStream,
    said: String,
}

impl Raw {
    /// Sends a request line with headers; the body is sent in pieces.
    pub(crate) async fn call(program: &Program, head: &str) -> Self {
        let address = program.address().strip_prefix("http://").unwrap();
        let connection = TcpStream::connect(address).await.unwrap();
        let mut raw = Self { connection, said: String::new() };
        let (line, headers) = head.split_once('\n').unwrap_or((head, ""));
        let headers = headers.lines().map(|header| format!("{}\r\n", header.trim())).collect::<String>();
        raw.write(format!("{line} HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n").as_bytes()).await;
        raw
    }

    async fn write(&mut self, bytes: &[u8]) {
        seam::guarded("a write", self.connection.write_all(bytes)).await.unwrap();
    }

    /// Sends a piece of the body; an empty one ends it.
    pub(crate) async fn piece(&mut self, text: &str) {
        self.write(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).await;
    }

    /// The end of the answer, however long it is.
    pub(crate) async fn last_words(mut self) -> String {
        const KEPT: usize = 4_096;
        let (mut last, mut bytes) = (Vec::new(), vec![0; 64 << 10]);
        loop {
            let read = seam::guarded("the end", self.connection.read(&mut bytes)).await.unwrap();
            last.extend_from_slice(&bytes[..read]);
            last.drain(..last.len().saturating_sub(KEPT));
            if read == 0 || last.ends_with(b"\r\n0\r\n\r\n") {
                return String::from_utf8_lossy(&last).into_owned();
            }
        }
    }

    /// All that was said, as soon as it contains this.
    pub(crate) async fn until(&mut self, part: &str) -> &str {
        while !self.said.contains(part) {
            let mut bytes = [0; 4096];
            let read = seam::guarded(part, self.connection.read(&mut bytes)).await.unwrap();
            assert!(read > 0, "it ended without {part:?}: {}", self.said);
            self.said.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
        &self.said
    }
}
