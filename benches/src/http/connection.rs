//! One kept connection, hand-written: the load generator shares the cores with what it measures, so it does no more than
//! write bytes and find the end of an answer.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Failure;

const BUFFER_BYTES: usize = 4 << 10;
/// An answer larger than that is no answer to what is asked here.
const ANSWER_BYTES_MAX: usize = 16 << 20;

pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// What came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer<'a> {
    pub(crate) status: u16,
    pub(crate) body: &'a [u8],
}

impl Answer<'_> {
    /// Says what came instead of what was expected.
    pub(crate) fn unexpected(&self) -> Failure {
        format!("the server answered {}: {}", self.status, String::from_utf8_lossy(self.body)).into()
    }
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self, Failure> {
        Ok(Self { stream: open(address).await?, buffer: vec![0; BUFFER_BYTES] })
    }

    /// Sends a request and waits for the whole answer.
    pub(crate) async fn call(&mut self, request: &[u8]) -> Result<Answer<'_>, Failure> {
        self.stream.write_all(request).await?;
        let (mut filled, mut found) = (0, None);
        loop {
            if filled == self.buffer.len() {
                if filled >= ANSWER_BYTES_MAX {
                    return Err(format!("an answer has more than {ANSWER_BYTES_MAX} bytes").into());
                }
                self.buffer.resize(2 * filled, 0);
            }
            let read = self.stream.read(&mut self.buffer[filled..]).await?;
            if read == 0 {
                return Err("the server closed a connection before its answer".into());
            }
            filled += read;
            if found.is_none() {
                found = Head::find(&self.buffer[..filled])?;
            }
            if let Some(head) = found
                && filled >= head.bytes + head.body_bytes
            {
                let body = &self.buffer[head.bytes..head.bytes + head.body_bytes];
                return Ok(Answer { status: head.status, body });
            }
        }
    }
}

/// A connection that sends at once.
pub(super) async fn open(address: SocketAddr) -> Result<TcpStream, Failure> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// What stands before a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    status: u16,
    bytes: usize,
    body_bytes: usize,
}

impl Head {
    /// The head, if it is whole.
    fn find(bytes: &[u8]) -> Result<Option<Self>, Failure> {
        let Some((status, head)) = head_of(bytes)? else { return Ok(None) };
        let length = std::str::from_utf8(&bytes[..head])?
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .ok_or("an answer has no Content-Length")?;
        Ok(Some(Self { status, bytes: head, body_bytes: length.1.trim().parse()? }))
    }
}

/// Status and length of a head, if it is whole.
pub(super) fn head_of(bytes: &[u8]) -> Result<Option<(u16, usize)>, Failure> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let line = std::str::from_utf8(&bytes[..end])?.lines().next().unwrap_or_default();
    let status = line.split(' ').nth(1).ok_or_else(|| format!("an answer begins with {line:?}"))?;
    Ok(Some((status.parse()?, end + 4)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_found_when_it_is_whole() {
        let answer = b"HTTP/1.1 201 Created\r\nContent-Length: 7\r\n\r\nbody";
        assert_eq!(Head::find(&answer[..30]).unwrap(), None);
        let head = Head { status: 201, bytes: answer.len() - 4, body_bytes: 7 };
        assert_eq!(Head::find(answer).unwrap(), Some(head));
        assert!(Head::find(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert!(Head::find(b"what\r\nContent-Length: 1\r\n\r\n").is_err());
    }
}
