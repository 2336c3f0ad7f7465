//! Keys: text where they are UTF-8, base64 where they are not.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use laneway::core::Key;

use crate::http::error::{Failure, Result};

/// A key as it goes over the wire: one of both is set, or none for an event without order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) key: Option<String>,
    pub(crate) key_b64: Option<String>,
}

/// The key that was sent, in one of its two forms.
pub(crate) fn key(text: Option<&[u8]>, base64: Option<&[u8]>) -> Result<Option<Key>> {
    let bytes = match (text, base64) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            return Err(Failure::value("key_b64", "set beside key", "the only one of the two"));
        }
        (Some(text), None) => Bytes::copy_from_slice(text),
        (None, Some(base64)) => Bytes::from(STANDARD.decode(base64).map_err(|error| {
            let value = format!("{:?} ({error})", String::from_utf8_lossy(base64));
            Failure::value("key_b64", value, "standard base64 with padding")
        })?),
    };
    Ok(Some(Key::new(bytes)?))
}

/// A key to send.
pub(crate) fn named(key: Option<&Key>) -> Named {
    let Some(key) = key else { return Named::default() };
    match std::str::from_utf8(key.bytes()) {
        Ok(text) => Named { key: Some(text.to_owned()), key_b64: None },
        Err(_) => Named { key: None, key_b64: Some(STANDARD.encode(key.bytes())) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_comes_back_as_it_was() {
        for bytes in [&b"ns/name"[..], b"two\nlines", "😀".as_bytes(), b"\xff\x00", b"{x}"] {
            let there = named(Some(&Key::new(bytes.to_vec()).unwrap()));
            let back = key(there.key.as_ref().map(AsRef::as_ref), there.key_b64.as_ref().map(AsRef::as_ref));
            assert_eq!(back.unwrap().unwrap().bytes(), bytes, "{there:?}");
        }
    }

    #[test]
    fn a_key_that_can_be_none_is_refused() {
        let told = |text: Option<&[u8]>, base64: Option<&[u8]>| key(text, base64).unwrap_err().detail;
        assert!(told(Some(b""), None).contains("1 to 512 bytes"));
        assert!(told(Some(&[b'a'; 513]), None).contains("513 bytes"));
        assert!(told(None, Some(b"!!")).contains("base64"));
        assert!(told(Some(b"a"), Some(b"YQ==")).contains("only one"));
    }
}
