//! `ETag`, `If-Match` and `If-None-Match` (RFC 9110): a change that counts only if nobody was faster.

use axum::http::HeaderMap;
use axum::http::header::{HeaderName, IF_MATCH, IF_NONE_MATCH};

use super::code::Code;
use super::error::{Failure, Result};

/// The ETag of a version.
pub(super) fn tag(version: u64) -> String {
    format!("\"{version}\"")
}

/// What a caller wants to be there, and what not.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    matches: Option<Vec<String>>,
    is_new: bool,
}

impl Wanted {
    /// Reads the headers of a call.
    pub(super) fn read(headers: &HeaderMap) -> Result<Self> {
        let none = tags(headers, &IF_NONE_MATCH)?;
        if none.as_ref().is_some_and(|tags| tags.iter().any(|tag| tag != "*")) {
            return Err(Failure::value("If-None-Match", format!("{none:?}"), "absent or *"));
        }
        Ok(Self { matches: tags(headers, &IF_MATCH)?, is_new: none.is_some() })
    }

    /// Whether anything will do.
    pub(super) fn is_any(&self) -> bool {
        self.matches.is_none() && !self.is_new
    }

    /// Refuses what is not as it is wanted; `version` is nothing when the thing is not there.
    pub(super) fn check(&self, name: &str, version: Option<u64>) -> Result<()> {
        let now = version.map(tag);
        if self.is_new && now.is_some() {
            return Err(failed(format!("{name:?} is there, and If-None-Match is *")));
        }
        let Some(matches) = &self.matches else { return Ok(()) };
        match now {
            None => Err(failed(format!("{name:?} is not there, and If-Match is {}", matches.join(", ")))),
            Some(now) if matches.iter().any(|tag| *tag == now || tag == "*") => Ok(()),
            Some(now) => {
                Err(failed(format!("the ETag of {name:?} is {now}, and If-Match is {}", matches.join(", "))))
            }
        }
    }

    /// The failure of somebody who looked and was not the first to change: what was wanted did not hold any more.
    pub(super) fn raced(&self, failure: Failure) -> Failure {
        match failure.code {
            Code::StreamConflict if !self.is_any() => failed(failure.detail),
            _ => failure,
        }
    }
}

fn failed(detail: String) -> Failure {
    Failure::new(Code::PreconditionFailed, detail)
}

fn tags(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Vec<String>>> {
    let mut tags = Vec::new();
    for value in headers.get_all(name) {
        let text = String::from_utf8_lossy(value.as_bytes());
        for tag in text.split(',').map(str::trim) {
            let is_tag = tag.len() > 2 && tag.starts_with('"') && tag.ends_with('"');
            if tag != "*" && !is_tag {
                let told = format!("{text:?}");
                return Err(Failure::value(
                    name.as_str(),
                    told,
                    "* or ETags as they were answered, such as \"3\"",
                ));
            }
            tags.push(tag.to_owned());
        }
    }
    Ok(Some(tags).filter(|tags| !tags.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(if_match: Option<&str>, if_none_match: Option<&str>, version: Option<u64>) -> Result<()> {
        let given = [(IF_MATCH, if_match), (IF_NONE_MATCH, if_none_match)];
        let given = given.into_iter().filter_map(|(name, value)| Some((name, value?.parse().ok()?)));
        Wanted::read(&given.collect())?.check("orders", version)
    }

    #[test]
    fn only_what_is_as_it_is_wanted_passes() {
        assert!(check(None, None, None).is_ok());
        assert!(check(Some("\"2\", \"3\""), None, Some(3)).is_ok());
        assert!(check(Some("*"), None, Some(3)).is_ok());
        assert!(check(None, Some("*"), None).is_ok());
        for (if_match, if_none_match, version) in
            [(Some("\"2\""), None, Some(3)), (Some("*"), None, None), (None, Some("*"), Some(1))]
        {
            let failure = check(if_match, if_none_match, version).unwrap_err();
            assert_eq!(failure.code, Code::PreconditionFailed, "{failure:?}");
        }
        assert_eq!(check(Some("3"), None, Some(3)).unwrap_err().code, Code::InvalidValue);
        assert_eq!(check(None, Some("\"3\""), None).unwrap_err().code, Code::InvalidValue);
    }
}
