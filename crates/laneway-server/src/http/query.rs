//! The query of a request: every name must be known, and no value is decoded by guesswork.

use super::code::Code;
use super::error::{Failure, Result};
use crate::nearest::nearest;

/// Names and values of a query, decoded to bytes.
#[derive(Debug)]
pub(super) struct Query(Vec<(String, Vec<u8>)>);

impl Query {
    /// Reads a query whose names are among these.
    pub(super) fn read(query: Option<&str>, known: &[&str]) -> Result<Self> {
        let mut pairs: Vec<(String, Vec<u8>)> = Vec::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = String::from_utf8_lossy(&decoded(name)?).into_owned();
            if !known.contains(&name.as_str()) {
                let meant = nearest(&name, known).map(|near| format!("did you mean {near:?}? "));
                let (meant, known) = (meant.unwrap_or_default(), known.join(", "));
                let detail = format!("query {name:?} is not known; {meant}known are {known}");
                return Err(Failure::new(Code::UnknownField, detail));
            }
            if pairs.iter().any(|(given, _)| *given == name) {
                return Err(Failure::value(&format!("query {name}"), "given twice", "given once"));
            }
            pairs.push((name, decoded(value)?));
        }
        Ok(Self(pairs))
    }

    /// A value as bytes.
    pub(super) fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.0.iter().find(|(given, _)| given == name).map(|(_, value)| &value[..])
    }

    /// A value as text; bytes that are no UTF-8 are in no name.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.bytes(name).map(|value| String::from_utf8_lossy(value).into_owned())
    }

    /// Those of these names that were given, in their order, as a query: the same meaning is always written the same way.
    pub(super) fn written(&self, names: &[&str]) -> String {
        let given = names.iter().filter_map(|name| Some(format!("{name}={}", escaped(self.bytes(name)?))));
        given.collect::<Vec<_>>().join("&")
    }

    /// A value as a number.
    pub(super) fn number<N: std::str::FromStr>(&self, name: &str, limit: &str) -> Result<Option<N>> {
        let Some(value) = self.bytes(name) else { return Ok(None) };
        let text = String::from_utf8_lossy(value);
        text.parse()
            .map(Some)
            .map_err(|_| Failure::value(&format!("query {name}"), format!("{text:?}"), limit))
    }
}

/// Escapes everything but letters, digits, `-`, `.`, `_` and `~`.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'-' | b'.' | b'_' | b'~' => text.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// Undoes percent escapes, and `+` for a space.
fn decoded(text: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = rest.split_at_checked(2).and_then(|(digits, after)| {
                    rest = after;
                    let text = std::str::from_utf8(digits)
                        .ok()
                        .filter(|_| digits.iter().all(u8::is_ascii_hexdigit))?;
                    u8::from_str_radix(text, 16).ok()
                });
                let wrong = || {
                    Failure::value("the query", format!("{text:?}"), "escaped as %XX, two digits from 0 to F")
                };
                bytes.push(digits.ok_or_else(wrong)?);
            }
            _ => bytes.push(byte),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_any_bytes_are_decoded() {
        let query = Query::read(Some("key=ns%2Fname%0A%F0%9F%98%80+%FF"), &["key"]).unwrap();
        assert_eq!(query.bytes("key").unwrap(), b"ns/name\n\xf0\x9f\x98\x80 \xff");
    }

    #[test]
    fn unknown_and_malformed_queries_are_refused() {
        let told = |query| Query::read(Some(query), &["key", "limit"]).unwrap_err().detail;
        assert!(told("kee=a").contains("did you mean \"key\""));
        assert!(told("key=%4").contains("two digits"));
        assert!(told("key=%+4").contains("two digits"));
        assert!(told("key=a&key=b").contains("given twice"));
        let query = Query::read(Some("limit=x"), &["limit"]).unwrap();
        assert!(query.number::<u32>("limit", "1 to 1000").unwrap_err().detail.contains("\"x\""));
    }
}
