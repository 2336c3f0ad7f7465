//! CloudEvents 1.0 over HTTP: structured, in a batch, or binary, where the attributes are headers.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName};
use bytes::Bytes;
use laneway::core::Draft;
use laneway_client::wire::CloudEvent;
use serde_json::Value;
use serde_json::value::RawValue;

use super::body::{self, Many};
use super::error::{Failure, Result};
use super::{under_way, wire as convert};

const STRUCTURED: &str = "application/cloudevents+json";
const BATCH: &str = "application/cloudevents-batch+json";
const VERSION: HeaderName = HeaderName::from_static("ce-specversion");
const PREFIX: &str = "ce-";

/// Whether a body is meant as CloudEvents.
pub(super) fn is_meant(media_type: Option<&str>, headers: &HeaderMap) -> bool {
    matches!(media_type, Some(STRUCTURED | BATCH)) || headers.contains_key(VERSION)
}

/// Reads the events of a body.
pub(super) async fn read(
    media_type: Option<&str>,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Vec<Draft>, Many)> {
    let bytes = body::bytes(headers, body, under_way::limits().body_bytes).await?;
    match media_type {
        Some(STRUCTURED) => {
            let bytes = bytes.ok_or_else(body::empty)?;
            body::check_depth(&bytes)?;
            Ok((vec![convert::cloud_event(body::parse(&bytes, "")?)?], Many::One))
        }
        Some(BATCH) => {
            let bytes = bytes.ok_or_else(body::empty)?;
            body::check_depth(&bytes)?;
            let events: Vec<CloudEvent> = body::array(&bytes)?;
            let drafts = events
                .into_iter()
                .enumerate()
                .map(|(index, event)| convert::cloud_event(event).map_err(|failure| failure.at(index)));
            Ok((drafts.collect::<Result<_>>()?, Many::Array))
        }
        _ => Ok((vec![binary(media_type, headers, bytes)?], Many::One)),
    }
}

/// An event whose attributes are headers and whose data is the body.
fn binary(media_type: Option<&str>, headers: &HeaderMap, data: Option<Bytes>) -> Result<Draft> {
    let mut attributes: BTreeMap<String, Value> = BTreeMap::new();
    for (name, value) in headers {
        let Some(name) = name.as_str().strip_prefix(PREFIX) else { continue };
        let value = decoded(value.as_bytes()).ok_or_else(|| {
            let told = format!("{:?}", String::from_utf8_lossy(value.as_bytes()));
            Failure::value(&format!("{PREFIX}{name}"), told, "UTF-8, other characters escaped as %XX")
        })?;
        attributes.insert(name.to_owned(), Value::String(value));
    }
    if let Some(media_type) = media_type {
        attributes.insert("datacontenttype".to_owned(), Value::String(media_type.to_owned()));
    }
    let is_json = media_type.is_none_or(|given| given == "application/json" || given.ends_with("+json"));
    let mut json = None;
    if let Some(data) = data.as_ref().filter(|_| is_json) {
        body::check_depth(data)?;
        json = Some(body::parse::<Box<RawValue>>(data, "")?);
    }
    let attributes = Value::Object(attributes.into_iter().collect());
    let event: CloudEvent = body::parse(attributes.to_string().as_bytes(), "")?;
    let mut draft = convert::cloud_event(CloudEvent { data: json, ..event })?;
    if let Some(data) = data.filter(|_| !is_json) {
        convert::with_data(&mut draft, data)?;
    }
    Ok(draft)
}

/// Undoes percent escapes, as the HTTP binding has them.
fn decoded(text: &[u8]) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let escape = (byte == b'%').then(|| after.split_at_checked(2)).flatten();
        let escaped = escape.and_then(|(digits, after)| {
            let digits = std::str::from_utf8(digits).ok().filter(|text| !text.contains('+'))?;
            Some((u8::from_str_radix(digits, 16).ok()?, after))
        });
        match escaped {
            Some((byte, after)) => {
                bytes.push(byte);
                rest = after;
            }
            None => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}
