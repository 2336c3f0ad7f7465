//! Paths with queries, for calls that ask by several things at once.

/// A path with those parts of the query that are said.
pub(super) fn with_query(path: &str, parts: &[(&str, Option<&str>)]) -> String {
    let said: Vec<String> = parts
        .iter()
        .filter_map(|(name, value)| value.map(|value| format!("{name}={}", escaped(value))))
        .collect();
    if said.is_empty() { path.to_owned() } else { format!("{path}?{}", said.join("&")) }
}

/// Text for a piece of a path or query.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}
