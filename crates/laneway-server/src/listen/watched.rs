//! A stream of bytes that tells its line when something came or went.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::line::Line;

pub(super) struct Watched {
    stream: TcpStream,
    line: Arc<Line>,
}

impl Watched {
    pub(super) fn new(stream: TcpStream, line: Arc<Line>) -> Self {
        Self { stream, line }
    }

    fn note(&self, wrote: &Poll<io::Result<usize>>) {
        if wrote.is_ready() { self.line.told() } else { self.line.unread() }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.line.heard();
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(&wrote);
        wrote
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.note(&wrote);
        wrote
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_caller_that_reads_nothing_is_noticed_until_it_reads() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut caller = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let line = Arc::new(Line::new());
        let mut watched = Watched::new(listener.accept().await.unwrap().0, Arc::clone(&line));
        let piece = vec![7; 1 << 20];
        let mut sent = 0;
        while line.unread_since().is_none() {
            let write = std::pin::pin!(watched.write(&piece));
            sent += futures::FutureExt::now_or_never(write).map_or(0, |wrote| wrote.unwrap());
        }
        let (mut taken, mut buffer) = (0, vec![0; 1 << 20]);
        while taken < sent {
            taken += caller.read(&mut buffer).await.unwrap();
        }
        watched.write_all(b"more").await.unwrap();
        assert_eq!(line.unread_since(), None);
    }
}
