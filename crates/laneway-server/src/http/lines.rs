//! The lines of a body, one after the other, however many there are: at most one line and one piece of the body are in
//! memory.

use axum::body::{Body, BodyDataStream};
use bytes::{Buf as _, Bytes, BytesMut};
use futures::{FutureExt as _, StreamExt as _};

use super::body::BODY_BYTES_MAX;
use super::code::Code;
use super::error::{Failure, Result};

/// The media type of a body of lines.
pub(super) const MEDIA_TYPE: &str = "application/x-ndjson";

/// Reads lines from a body.
#[derive(Debug)]
pub(super) struct Lines {
    body: BodyDataStream,
    buffer: BytesMut,
    /// How much of the buffer has no end of a line.
    searched: usize,
    /// The number of the last line.
    number: u64,
    /// The rest of a line that was too long is passed over.
    in_long_line: bool,
    has_ended: bool,
}

/// One line that is not empty.
#[derive(Debug)]
pub(super) struct Line {
    /// Its number, from 1.
    pub(super) number: u64,
    /// Its text, unless it was too long.
    pub(super) text: Result<Bytes>,
}

impl Lines {
    pub(super) fn new(body: Body) -> Self {
        let (body, buffer) = (body.into_data_stream(), BytesMut::new());
        Self { body, buffer, searched: 0, number: 0, in_long_line: false, has_ended: false }
    }

    /// The number of the next line.
    pub(super) fn next_number(&self) -> u64 {
        self.number + 1
    }

    /// The rest of the body.
    pub(super) fn into_body(self) -> Body {
        Body::from_stream(self.body)
    }

    /// The next line, as soon as it is there; nothing at the end. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Option<Line> {
        loop {
            if let Some(line) = self.buffered() {
                return Some(line);
            }
            if self.has_ended {
                return None;
            }
            let piece = self.body.next().await;
            self.take(piece);
        }
    }

    /// The next line, if it has come already.
    pub(super) fn next_now(&mut self) -> Option<Line> {
        loop {
            if let Some(line) = self.buffered() {
                return Some(line);
            }
            if self.has_ended {
                return None;
            }
            let piece = self.body.next().now_or_never()?;
            self.take(piece);
        }
    }

    fn take(&mut self, piece: Option<std::result::Result<Bytes, axum::Error>>) {
        match piece {
            Some(Ok(bytes)) => self.buffer.extend_from_slice(&bytes),
            // The last line needs no end.
            None => {
                self.has_ended = true;
                if !self.buffer.is_empty() {
                    self.buffer.extend_from_slice(b"\n");
                }
            }
            // Cut off: nobody knows whether what came last was a whole line.
            Some(Err(error)) => {
                tracing::debug!(%error, "a body of lines was cut off");
                self.has_ended = true;
                self.buffer.clear();
                self.searched = 0;
            }
        }
    }

    fn buffered(&mut self) -> Option<Line> {
        loop {
            let found = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
            let Some(end) = found.map(|at| self.searched + at) else {
                self.searched = self.buffer.len();
                let is_long = self.buffer.len() > BODY_BYTES_MAX;
                let is_first_of_it = is_long && !self.in_long_line;
                if is_long || self.in_long_line {
                    self.in_long_line = true;
                    self.buffer.clear();
                    self.searched = 0;
                }
                return is_first_of_it.then(|| self.too_long());
            };
            let text = self.buffer.split_to(end).freeze();
            self.buffer.advance(1);
            self.searched = 0;
            if std::mem::take(&mut self.in_long_line) {
                continue;
            }
            if text.len() > BODY_BYTES_MAX {
                return Some(self.too_long());
            }
            self.number += 1;
            if !text.trim_ascii().is_empty() {
                return Some(Line { number: self.number, text: Ok(text) });
            }
        }
    }

    fn too_long(&mut self) -> Line {
        self.number += 1;
        let detail =
            format!("the line has more than {BODY_BYTES_MAX} bytes, at most {BODY_BYTES_MAX} are taken");
        Line { number: self.number, text: Err(Failure::new(Code::BodyTooLarge, detail)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(pieces: &[&str], expected: &[(u64, Option<&str>)]) {
        let pieces: Vec<_> =
            pieces.iter().map(|piece| Ok::<_, std::io::Error>((*piece).to_owned())).collect();
        let mut lines = Lines::new(Body::from_stream(futures::stream::iter(pieces)));
        let mut told = Vec::new();
        while let Some(line) = lines.next().await {
            told.push((line.number, line.text.ok().map(|text| String::from_utf8(text.to_vec()).unwrap())));
        }
        let told: Vec<_> = told.iter().map(|(number, text)| (*number, text.as_deref())).collect();
        assert_eq!(told, expected);
    }

    #[tokio::test]
    async fn lines_are_found_wherever_the_pieces_end() {
        check(&["a\nb", "b\n\n", "\r\nc"], &[(1, Some("a")), (2, Some("bb")), (5, Some("c"))]).await;
        check(&["", "\n"], &[]).await;
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_told_once_and_passed_over() {
        let half = "x".repeat(BODY_BYTES_MAX / 2 + 1);
        check(&["a\n", &half, &half, &half, "x\nb\n"], &[(1, Some("a")), (2, None), (3, Some("b"))]).await;
        let whole = format!("{half}{half}\nb");
        check(&[&whole], &[(1, None), (2, Some("b"))]).await;
    }

    #[tokio::test]
    async fn what_is_cut_off_is_no_line() {
        let pieces = [Ok("a\nb".to_owned()), Err(std::io::Error::other("gone"))];
        let mut lines = Lines::new(Body::from_stream(futures::stream::iter(pieces)));
        assert_eq!(lines.next().await.unwrap().text.unwrap(), "a");
        assert!(lines.next().await.is_none());
    }
}
