//! Bodies that are sent as gzip: unpacked piece by piece, so that no limit is passed before it is noticed.

use std::pin::Pin;
use std::task::{Context, Poll};

use async_compression::tokio::bufread::GzipDecoder;
use axum::body::{Body, BodyDataStream};
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use bytes::Bytes;
use futures::{Stream, StreamExt as _, TryStreamExt as _, ready};
use tokio::io::AsyncRead;
use tokio_util::io::{ReaderStream, StreamReader};

use super::body::pass_over;
use super::code::Code;
use super::error::{Failure, Result};
use crate::seam;

/// Bytes that are unpacked at a time.
const PIECE_BYTES: usize = 16 << 10;

/// How a body is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    Not,
    Gzip,
}

/// Why a body cannot be unpacked.
#[derive(Debug, thiserror::Error)]
#[error("the body is no gzip")]
pub(super) struct Unpackable;

/// A request whose body is as it was before it was packed.
pub(super) fn unpacked(request: Request) -> Result<Request> {
    if packing(request.headers())? == Packing::Not {
        return Ok(request);
    }
    let (mut parts, body) = request.into_parts();
    // How long it is now, nobody knows.
    parts.headers.remove(CONTENT_LENGTH);
    let packed = StreamReader::new(Packed(Some(body.into_data_stream())).map_err(std::io::Error::other));
    let mut decoder = GzipDecoder::new(packed);
    decoder.multiple_members(true);
    Ok(Request::from_parts(parts, pieces(decoder)))
}

/// A packed body. What is left when nobody wants to unpack more of it is passed over as it is: a connection that is closed
/// while its caller sends takes the answer with it.
struct Packed(Option<BodyDataStream>);

impl Stream for Packed {
    type Item = std::result::Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(body) = &mut self.0 else { return Poll::Ready(None) };
        let piece = ready!(body.poll_next_unpin(context));
        if piece.is_none() {
            self.0 = None;
        }
        Poll::Ready(piece)
    }
}

impl Drop for Packed {
    fn drop(&mut self) {
        if let Some(rest) = self.0.take() {
            // It ends by itself, at the end of the body or when that takes too long.
            drop(seam::spawn(pass_over(Body::from_stream(rest))));
        }
    }
}

fn packing(headers: &HeaderMap) -> Result<Packing> {
    let mut given = headers.get_all(CONTENT_ENCODING).iter();
    let told = match (given.next(), given.next()) {
        (None, _) => return Ok(Packing::Not),
        (Some(one), None) => String::from_utf8_lossy(one.as_bytes()).trim().to_ascii_lowercase(),
        (Some(_), Some(_)) => "given twice".to_owned(),
    };
    match told.as_str() {
        "identity" => Ok(Packing::Not),
        "gzip" | "x-gzip" => Ok(Packing::Gzip),
        _ => {
            let detail = format!("Content-Encoding is {told:?}, must be absent, identity or gzip");
            Err(Failure::new(Code::UnsupportedEncoding, detail))
        }
    }
}

fn pieces(decoder: impl AsyncRead + Send + 'static) -> Body {
    let pieces = ReaderStream::with_capacity(decoder, PIECE_BYTES);
    Body::from_stream(pieces.map_err(|error| match error.get_ref() {
        // What came from below is no fault of the packing.
        Some(below) if below.is::<axum::Error>() => axum::BoxError::from(error),
        _ => Unpackable.into(),
    }))
}
