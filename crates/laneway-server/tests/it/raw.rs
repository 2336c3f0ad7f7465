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

    /// What comes next; nothing at the end of the connection.
    pub(crate) async fn more(&mut self, what: &str) -> Vec<u8> {
        let mut bytes = vec![0; 16 << 10];
        let read = seam::guarded(what, self.connection.read(&mut bytes)).await.unwrap();
        bytes.truncate(read);
        bytes
    }

    /// All that was said, as soon as it contains this.
    pub(crate) async fn until(&mut self, part: &str) -> &str {
        while !self.said.contains(part) {
            let more = self.more(part).await;
            assert!(!more.is_empty(), "it ended without {part:?}: {}", self.said);
            self.said.push_str(&String::from_utf8_lossy(&more));
        }
        &self.said
    }
}
