//! Payloads: JSON as it was sent; base64 where a program with Laneway inside stored something else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use laneway_client::Json;
use serde_json::value::RawValue;

/// Bytes as JSON, or, where they are none, in base64.
pub(crate) fn payload(bytes: &[u8]) -> (Option<Json>, Option<String>) {
    let text = std::str::from_utf8(bytes).ok();
    match text.and_then(|text| RawValue::from_string(text.to_owned()).ok()) {
        Some(json) => (Some(json), None),
        None => (None, Some(STANDARD.encode(bytes))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stays_as_it_is_and_other_bytes_are_told_apart() {
        let (json, base64) = payload(br#"{ "a":1.0 }"#);
        assert_eq!((json.unwrap().get(), base64), (r#"{ "a":1.0 }"#, None));
        let (json, base64) = payload(b"\x00\xff");
        assert_eq!((json.is_none(), base64.as_deref()), (true, Some("AP8=")));
    }
}
