//! Requests as bytes, made before a round: sending them costs the load generator next to nothing.

use std::fmt::Write;

use crate::workload::PAYLOAD_BYTES;

/// A POST of JSON.
pub(crate) fn post(path: &str, body: &str) -> Vec<u8> {
    post_with(path, "", body)
}

/// The same with further headers, each with its end of line.
pub(crate) fn post_with(path: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{headers}Content-Length: \
         {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

pub(crate) fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").into_bytes()
}

/// The head of a POST whose lines follow in pieces.
pub(crate) fn lines_head(path: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: \
         chunked\r\n\r\n"
    )
    .into_bytes()
}

/// An event or a job of the key with this number, with a payload of the usual length.
pub(crate) fn event(rng: &mut fastrand::Rng, number: u32) -> String {
    let mut event = format!(r#"{{"key":"key-{number:08x}","data":""#);
    // The quotes are part of the payload.
    for _ in 2..PAYLOAD_BYTES {
        event.push(rng.alphanumeric());
    }
    write!(event, r#""}}"#).expect("a text takes everything");
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_a_key_and_a_payload_of_the_usual_length() {
        let event: serde_json::Value =
            serde_json::from_str(&event(&mut fastrand::Rng::with_seed(1), 0x1a)).unwrap();
        assert_eq!(event["key"], "key-0000001a");
        assert_eq!(event["data"].to_string().len(), PAYLOAD_BYTES);
    }
}
