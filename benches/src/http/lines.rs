//! A stream of lines over one connection: pieces of the body go out while the answers of earlier lines come back.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::connection::{head_of, open};
use crate::Failure;

const READ_BYTES: usize = 64 << 10;

/// The side that sends.
pub(crate) struct Lines(OwnedWriteHalf);

/// The side that is answered.
pub(crate) struct LineAnswers {
    stream: OwnedReadHalf,
    buffer: Vec<u8>,
    /// Bytes of the buffer that are not used up.
    filled: usize,
    is_past_head: bool,
    pieces: Pieces,
}

impl Lines {
    /// Opens a connection and sends the head of the request.
    pub(crate) async fn open(address: SocketAddr, head: &[u8]) -> Result<(Self, LineAnswers), Failure> {
        let mut stream = open(address).await?;
        stream.write_all(head).await?;
        let (stream, write) = stream.into_split();
        let (buffer, pieces) = (vec![0; READ_BYTES], Pieces::default());
        Ok((Self(write), LineAnswers { stream, buffer, filled: 0, is_past_head: false, pieces }))
    }

    /// Lines as a piece of a body, ready to be sent.
    pub(crate) fn piece(lines: &str) -> Vec<u8> {
        format!("{:x}\r\n{lines}\r\n", lines.len()).into_bytes()
    }

    pub(crate) async fn send(&mut self, piece: &[u8]) -> Result<(), Failure> {
        Ok(self.0.write_all(piece).await?)
    }

    /// Says that nothing more comes.
    pub(crate) async fn end(&mut self) -> Result<(), Failure> {
        self.send(b"0\r\n\r\n").await
    }
}

impl LineAnswers {
    /// Waits for more answers and counts those that `is_right` accepts; any other is an error. Nothing at the end.
    pub(crate) async fn next(&mut self, is_right: fn(&[u8]) -> bool) -> Result<Option<u64>, Failure> {
        loop {
            if self.pieces.is_over {
                return Ok(None);
            }
            let read = self.stream.read(&mut self.buffer[self.filled..]).await?;
            if read == 0 {
                return Err("the server closed a stream of lines before its end".into());
            }
            self.filled += read;
            if !self.is_past_head && !self.pass_head()? {
                continue;
            }
            self.pieces.take(&self.buffer[..self.filled])?;
            self.filled = 0;
            let count = self.pieces.count_lines(is_right)?;
            if count > 0 {
                return Ok(Some(count));
            }
        }
    }

    /// Whether the head was whole, and is passed.
    fn pass_head(&mut self) -> Result<bool, Failure> {
        let Some((status, bytes)) = head_of(&self.buffer[..self.filled])? else { return Ok(false) };
        if status != 200 {
            return Err(String::from_utf8_lossy(&self.buffer[..self.filled]).into_owned().into());
        }
        self.buffer.copy_within(bytes..self.filled, 0);
        self.filled -= bytes;
        self.is_past_head = true;
        Ok(true)
    }
}

/// A body that comes in pieces, without what stands between them.
#[derive(Debug, Default)]
struct Pieces {
    /// What has come of a piece's length, or of the line behind a piece.
    line: Vec<u8>,
    /// What is still to come of a piece.
    left: usize,
    text: Vec<u8>,
    is_over: bool,
}

impl Pieces {
    fn take(&mut self, mut bytes: &[u8]) -> Result<(), Failure> {
        while !bytes.is_empty() {
            if self.left > 0 {
                let (now, later) = bytes.split_at(self.left.min(bytes.len()));
                self.text.extend_from_slice(now);
                self.left -= now.len();
                bytes = later;
                continue;
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let (now, later) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
            self.line.extend_from_slice(now);
            bytes = later;
            if end.is_some() {
                let line = std::str::from_utf8(&self.line)?.trim();
                // Behind every piece is the end of a line.
                if !line.is_empty() {
                    self.left = usize::from_str_radix(line, 16)?;
                    self.is_over = self.left == 0;
                }
                self.line.clear();
            }
        }
        Ok(())
    }

    fn count_lines(&mut self, is_right: fn(&[u8]) -> bool) -> Result<u64, Failure> {
        let (mut count, mut at) = (0, 0);
        while let Some(end) = self.text[at..].iter().position(|byte| *byte == b'\n') {
            let line = &self.text[at..at + end];
            if !is_right(line) {
                return Err(format!("a line was answered: {}", String::from_utf8_lossy(line)).into());
            }
            count += 1;
            at += end + 1;
        }
        self.text.drain(..at);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_however_they_are_cut() {
        let body = b"4\r\nab\nc\r\n3\r\nd\ne\r\n1\r\n\n\r\n0\r\n\r\n";
        for cut in 0..body.len() {
            let mut pieces = Pieces::default();
            let mut count = 0;
            for part in [&body[..cut], &body[cut..]] {
                pieces.take(part).unwrap();
                count += pieces.count_lines(|line| line.len() < 3).unwrap();
            }
            assert_eq!((count, pieces.is_over), (3, true), "cut at {cut}");
        }
        let mut pieces = Pieces::default();
        pieces.take(&Lines::piece("no\n")).unwrap();
        assert!(pieces.count_lines(|line| line == b"yes").is_err());
    }
}
