//! Bodies that are sent gzip or zstd: unpacked piece by piece, so that no limit is passed before it is noticed.

use async_compression::tokio::bufread::{GzipDecoder, ZstdDecoder};
use async_compression::zstd::DParameter;
use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use futures::{StreamExt as _, TryStreamExt as _};
use tokio::io::AsyncRead;
use tokio_util::io::{ReaderStream, StreamReader};

use super::code::Code;
use super::error::{Failure, Result};
use super::load::{Load, Memory};

/// Bytes that are unpacked at a time.
const PIECE_BYTES: usize = 16 << 10;
/// Largest window of zstd, as a power of two: what RFC 9659 allows on the web. The window is memory.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// How a body is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    Gzip,
    Zstd,
}

/// Why a body cannot be unpacked.
#[derive(Debug, thiserror::Error)]
#[error("the body is no {0}")]
pub(super) struct Unpackable(&'static str);

/// A request whose body is as it was before it was packed.
pub(super) fn unpacked(request: Request, load: &Load) -> Result<Request> {
    let Some(packing) = packing(request.headers())? else { return Ok(request) };
    let mut memory = load.memory();
    let (mut parts, body) = request.into_parts();
    // How long it is now, nobody knows.
    parts.headers.remove(CONTENT_LENGTH);
    let packed = StreamReader::new(body.into_data_stream().map_err(std::io::Error::other));
    let body = match packing {
        Packing::Gzip => {
            let mut decoder = GzipDecoder::new(packed);
            decoder.multiple_members(true);
            pieces(decoder, "gzip", memory)
        }
        Packing::Zstd => {
            memory.grow(1 << ZSTD_WINDOW_LOG_MAX)?;
            let window = DParameter::window_log_max(ZSTD_WINDOW_LOG_MAX);
            let mut decoder = ZstdDecoder::with_params(packed, &[window]);
            decoder.multiple_members(true);
            pieces(decoder, "zstd", memory)
        }
    };
    Ok(Request::from_parts(parts, body))
}

fn packing(headers: &HeaderMap) -> Result<Option<Packing>> {
    let mut given = headers.get_all(CONTENT_ENCODING).iter();
    let told = match (given.next(), given.next()) {
        (None, _) => return Ok(None),
        (Some(one), None) => String::from_utf8_lossy(one.as_bytes()).trim().to_ascii_lowercase(),
        (Some(_), Some(_)) => "given twice".to_owned(),
    };
    match told.as_str() {
        "identity" => Ok(None),
        "gzip" | "x-gzip" => Ok(Some(Packing::Gzip)),
        "zstd" => Ok(Some(Packing::Zstd)),
        _ => {
            let detail = format!("Content-Encoding is {told:?}, must be absent, gzip or zstd");
            Err(Failure::new(Code::UnsupportedEncoding, detail))
        }
    }
}

/// The decoder keeps its memory as long as it is read.
fn pieces(decoder: impl AsyncRead + Send + 'static, what: &'static str, memory: Memory) -> Body {
    let pieces = ReaderStream::with_capacity(decoder, PIECE_BYTES);
    Body::from_stream(pieces.map(move |piece| {
        let _kept = &memory;
        piece.map_err(|error| match error.get_ref() {
            // What came from below is no fault of the packing.
            Some(below) if below.is::<axum::Error>() => axum::BoxError::from(error),
            _ => Unpackable(what).into(),
        })
    }))
}
