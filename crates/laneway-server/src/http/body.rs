//! Reads the body of a request: its limits first, then its meaning. Nothing beyond a limit is kept in memory.

use std::error::Error;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::code::Code;
use super::error::{Failure, Result};
use super::under_way;
use super::unpack::Unpackable;
use crate::listen::BodyFault;
use crate::nearest::nearest;
use crate::seam;

/// Longest body in bytes, unless the server was told otherwise.
pub(super) const BODY_BYTES_MAX: usize = 1 << 20;
/// Longest answer of a handler: the largest result there may be, and as much as any other body around it.
pub(crate) const SETTLE_BYTES_MAX: usize = laneway::core::limits::RESULT_BYTES_MAX + BODY_BYTES_MAX;
/// How much of a body that is too long is still read, and for how long: a connection that is closed while its caller sends
/// takes the answer with it.
const DISCARDED_BYTES_MAX: usize = 64 << 20;
const DISCARDED_WITHIN: Duration = Duration::from_secs(5);
/// Deepest nesting of a body.
pub(super) const JSON_DEPTH_MAX: usize = 64;
/// Most events, jobs or settlements of one call.
pub(super) const EVENTS_MAX: usize = 1_000;

/// Whether a call had one object or an array of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Many {
    One,
    Array,
}

/// The bytes of a body that is JSON, as far as its limits go; nothing if there is none.
async fn read(headers: &HeaderMap, body: Body, max: usize) -> Result<Option<Bytes>> {
    let Some(bytes) = bytes(headers, body, max).await? else { return Ok(None) };
    check_media_type(headers)?;
    check_depth(&bytes)?;
    Ok(Some(bytes))
}

/// The bytes of a body, as far as its limits go; nothing if there is none.
pub(super) async fn bytes(headers: &HeaderMap, mut body: Body, max: usize) -> Result<Option<Bytes>> {
    let too_large = |told: String| {
        Failure::new(Code::BodyTooLarge, format!("the body has {told} bytes, at most {max} are taken"))
    };
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if let Some(announced) = announced
        && announced > max as u64
    {
        discard(headers, body).await;
        return Err(too_large(announced.to_string()));
    }
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(broken)?.into_data() else { continue };
        if bytes.len() + piece.len() > max {
            // One that came in pieces never said how long it is.
            discard(headers, body).await;
            return Err(too_large(format!("more than {max}")));
        }
        under_way::keep_bytes(piece.len())?;
        bytes.extend_from_slice(&piece);
    }
    under_way::body_is_whole()?;
    Ok(Some(bytes.freeze()).filter(|bytes| !bytes.is_empty()))
}

/// Why a body did not come to its end.
pub(super) fn broken(error: axum::Error) -> Failure {
    if let Some(late) = cause::<BodyFault>(&error) {
        return Failure::new(
            Code::BodyTimeout,
            format!("the body is not whole, and {late} (http.body_timeout)"),
        );
    }
    if let Some(unpackable) = cause::<Unpackable>(&error) {
        return Failure::new(Code::InvalidEncoding, unpackable.to_string());
    }
    Failure::new(Code::InvalidJson, format!("the body ended before its end: {error}"))
}

/// The error of this kind among an error and its causes.
fn cause<E: Error + 'static>(error: &axum::Error) -> Option<&E> {
    let first: &(dyn Error + 'static) = error;
    std::iter::successors(Some(first), |&error| error.source()).find_map(|error| error.downcast_ref())
}

/// Reads the rest of a body and keeps nothing of it. A caller that asks before it sends needs only the answer, and what is
/// packed is passed over as it is when it is dropped.
pub(super) async fn discard(headers: &HeaderMap, body: Body) {
    if !headers.contains_key(EXPECT) && !headers.contains_key(CONTENT_ENCODING) {
        pass_over(body).await;
    }
}

/// Reads a body to its end and keeps nothing of it, for a while.
pub(super) async fn pass_over(mut body: Body) {
    let rest = async {
        let mut left = DISCARDED_BYTES_MAX;
        while left > 0
            && let Some(Ok(frame)) = body.frame().await
        {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
        }
    };
    if seam::within(DISCARDED_WITHIN, rest).await.is_none() {
        tracing::debug!("a body that is too long was not read to its end");
    }
}

/// Only JSON is taken: a foreign page can make a browser send a form or text, and not this.
fn check_media_type(headers: &HeaderMap) -> Result<()> {
    if media_type(headers).as_deref() == Some("application/json") {
        return Ok(());
    }
    let given = headers.get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let given = given.map_or_else(|| "absent".to_owned(), |given| format!("{given:?}"));
    Err(Failure::new(
        Code::UnsupportedMediaType,
        format!("Content-Type is {given}, must be application/json (with curl: --json instead of -d)"),
    ))
}

/// The media type of a body in lower case, without its parameters.
pub(super) fn media_type(headers: &HeaderMap) -> Option<String> {
    let given = String::from_utf8_lossy(headers.get(CONTENT_TYPE)?.as_bytes()).to_ascii_lowercase();
    Some(given.split(';').next().unwrap_or_default().trim().to_owned())
}

/// Counts brackets outside of texts. Anything that is no JSON is left to the parser.
pub(super) fn check_depth(bytes: &[u8]) -> Result<()> {
    let (mut depth, mut in_text, mut escaped) = (0usize, false, false);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => {
                depth += 1;
                if depth > JSON_DEPTH_MAX {
                    let detail = format!("the body is nested more than {JSON_DEPTH_MAX} deep at byte {at}");
                    return Err(Failure::new(Code::JsonTooDeep, detail));
                }
            }
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

/// The one object of a body; an empty body is an empty object.
pub(super) async fn object<T: DeserializeOwned>(headers: &HeaderMap, body: Body) -> Result<T> {
    object_up_to(headers, body, under_way::limits().body_bytes).await
}

/// The one object of a body that carries results: the largest there may be, and as much as any other body around it.
pub(super) async fn object_with_result<T: DeserializeOwned>(headers: &HeaderMap, body: Body) -> Result<T> {
    let max = laneway::core::limits::RESULT_BYTES_MAX + under_way::limits().body_bytes;
    object_up_to(headers, body, max).await
}

/// The one object of a body that may have so many bytes.
async fn object_up_to<T: DeserializeOwned>(headers: &HeaderMap, body: Body, max: usize) -> Result<T> {
    parse(read(headers, body, max).await?.as_deref().unwrap_or(b"{}"), "")
}

/// The object or the array of objects of a body.
pub(super) async fn objects<T: DeserializeOwned>(headers: &HeaderMap, body: Body) -> Result<(Vec<T>, Many)> {
    let bytes = read(headers, body, under_way::limits().body_bytes).await?.ok_or_else(empty)?;
    let begins = bytes.iter().copied().find(|byte| !byte.is_ascii_whitespace());
    if begins != Some(b'[') {
        return Ok((vec![parse(&bytes, "")?], Many::One));
    }
    Ok((array(&bytes)?, Many::Array))
}

/// There is no body, and there must be one.
pub(super) fn empty() -> Failure {
    Failure::new(Code::InvalidJson, "the body is empty, must be an object or an array of objects")
}

/// The objects of an array.
pub(super) fn array<T: DeserializeOwned>(bytes: &[u8]) -> Result<Vec<T>> {
    let entries: Vec<&RawValue> = parse(bytes, "")?;
    if entries.len() > EVENTS_MAX {
        let detail = format!("the call has {} events, at most {EVENTS_MAX} are taken", entries.len());
        return Err(Failure::new(Code::TooManyEvents, detail));
    }
    if entries.is_empty() {
        return Err(Failure::value("the array", "empty", format!("1 to {EVENTS_MAX} objects")));
    }
    let parsed = entries
        .iter()
        .enumerate()
        .map(|(index, entry)| parse(entry.get().as_bytes(), &format!("event {index}: ")));
    parsed.collect()
}

/// Parses JSON; what is wrong is told with its field, and an unknown field with the nearest known one.
pub(super) fn parse<'de, T: Deserialize<'de>>(bytes: &'de [u8], place: &str) -> Result<T> {
    let mut source = serde_json::Deserializer::from_slice(bytes);
    let wrong = |path: &str, error: &serde_json::Error| {
        let mut told = error.to_string();
        if error.classify() == Category::Data {
            told = in_our_words(&told);
        }
        match error.classify() {
            Category::Data => match unknown_field(&told) {
                Some(told) => Failure::new(Code::UnknownField, format!("{place}{told}")),
                None if matches!(path, "." | "") => {
                    Failure::new(Code::InvalidValue, format!("{place}{told}"))
                }
                None => Failure::new(Code::InvalidValue, format!("{place}{path}: {told}")),
            },
            Category::Io | Category::Syntax | Category::Eof => {
                Failure::new(Code::InvalidJson, format!("{place}{told}"))
            }
        }
    };
    let parsed = serde_path_to_error::deserialize(&mut source)
        .map_err(|error| wrong(&error.path().to_string(), error.inner()))?;
    source.end().map_err(|error| wrong("", &error))?;
    Ok(parsed)
}

/// Puts words of JSON and limits in the place of the types of this program, and leaves out the column, since the field
/// is named: of an entry of an array it would not be the body's.
fn in_our_words(told: &str) -> String {
    let told = told.rsplit_once(" at line ").map_or(told, |(told, _)| told);
    if let Some(field) = told.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        return format!("{field} is absent, must be set");
    }
    let Some((what, expected)) = told.split_once(", expected ") else { return told.to_owned() };
    let expected = match expected {
        "u8" => "a whole number from 0 to 255",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number, 0 or more",
        "a map" => "an object",
        "a sequence" => "an array",
        expected if expected.starts_with("struct ") => "an object",
        expected => expected,
    };
    format!("{what}, must be {expected}")
}

/// Turns serde's words for an unknown field into ours, which name the nearest known one.
fn unknown_field(told: &str) -> Option<String> {
    let quoted: Vec<&str> = told.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2).collect();
    let (field, known) = quoted.split_first()?;
    let meant = nearest(field, known).map(|name| format!("did you mean {name:?}? ")).unwrap_or_default();
    Some(format!("field {field:?} is not known; {meant}known are {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use laneway_client::wire::EventDraft;

    use super::*;

    fn check(body: &str, code: Code, says: &str) {
        let failure = parse::<EventDraft>(body.as_bytes(), "").unwrap_err();
        assert_eq!(failure.code, code, "{body}: {failure:?}");
        assert!(failure.detail.contains(says), "{body}: {failure:?}");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_field() {
        check(r#"{"kye":"a"}"#, Code::UnknownField, "field \"kye\" is not known; did you mean \"key\"?");
        check(r#"{"key":7}"#, Code::InvalidValue, "key: invalid type: integer `7`, must be a string");
        check(
            r#"{"priority":300}"#,
            Code::InvalidValue,
            "priority: invalid value: integer `300`, must be a whole number from 0 to 255",
        );
        check("7", Code::InvalidValue, "invalid type: integer `7`, must be an object");
        check(r#"{"delay_mode":"wait"}"#, Code::InvalidValue, "must be `join` or `hold`");
        check(r#"{"headers":{"a":1}}"#, Code::InvalidValue, "headers.a");
        check(r#"{"key":"a""#, Code::InvalidJson, "EOF");
        check(r#"{"key":"a"} x"#, Code::InvalidJson, "trailing");
        let absent = parse::<laneway_client::wire::Extend>(br#"{"claims":[]}"#, "").unwrap_err();
        assert_eq!(absent.detail, "lease is absent, must be set");
        check(r#"{"key":"a","key":"b"}"#, Code::InvalidValue, "duplicate field `key`");
    }

    #[test]
    fn payloads_are_kept_byte_for_byte() {
        let draft: EventDraft =
            parse(br#"{"data": {"b" : 1.0,  "a":[ 1e3 ]},"expect_prev":null}"#, "").unwrap();
        assert_eq!(draft.data.unwrap().get(), r#"{"b" : 1.0,  "a":[ 1e3 ]}"#);
        assert_eq!(draft.expect_prev, Some(None));
    }

    #[test]
    fn depth_is_counted_outside_of_texts() {
        let nested = |depth: usize| "[".repeat(depth);
        assert!(check_depth(nested(JSON_DEPTH_MAX).as_bytes()).is_ok());
        assert_eq!(check_depth(nested(JSON_DEPTH_MAX + 1).as_bytes()).unwrap_err().code, Code::JsonTooDeep);
        let text = format!(r#"{{"a":"\"{}"}}"#, nested(100));
        assert!(check_depth(text.as_bytes()).is_ok());
    }
}
