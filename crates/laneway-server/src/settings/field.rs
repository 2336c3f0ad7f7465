//! One setting: what it is called, what it looks like, what it does, and how its value is read.
//!
//! A value is what the file says, as JSON; a flag or a variable is always text, so every reader takes text too.

use std::path::PathBuf;
use std::time::Duration;

use laneway::core::period;
use serde_json::Value;

use crate::nearest::nearest;

/// One field of `T`.
pub(crate) struct Field<T: 'static> {
    /// Its path in the file, such as `http.listen`.
    pub(crate) path: &'static str,
    /// What its value looks like.
    pub(crate) form: Form,
    /// Its value when nobody says anything; nothing where there is none.
    pub(crate) default: Option<&'static str>,
    /// What it does, in a sentence or two.
    pub(crate) about: &'static str,
    /// Puts a value where it belongs, or says what it must be instead. It does not repeat the value, which may be secret.
    pub(crate) read: fn(&mut T, &Value) -> Result<(), String>,
}

/// What a value looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Text, named for people.
    Text(&'static str),
    /// A whole number.
    Number,
    /// A length of time, such as `30s`.
    Length,
    /// `true` or `false`.
    YesNo,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Several texts, named for people.
    List(&'static str),
    /// Whatever the file can say.
    Any,
}

impl Form {
    /// For people: what to write behind a flag.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Text(name) | Self::List(name) => name,
            Self::Number => "NUMBER",
            Self::Length => "LENGTH",
            Self::YesNo => "true|false",
            Self::Choice(_) => "WORD",
            Self::Any => "VALUE",
        }
    }

    /// For people: what to write.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Choice(words) => words.join("|"),
            Self::List(name) => format!("[{name}, …]"),
            Self::Text(_) | Self::Number | Self::Length | Self::YesNo | Self::Any => self.word().to_owned(),
        }
    }

    /// A value as the file has it.
    pub(super) fn in_file(self, text: &str) -> String {
        match self {
            Self::Text(_) | Self::Length | Self::Choice(_) => format!("{text:?}"),
            Self::Number | Self::YesNo | Self::Any => text.to_owned(),
            Self::List(_) => {
                let entries: Vec<String> = entries(text).map(|entry| format!("{entry:?}")).collect();
                format!("[{}]", entries.join(", "))
            }
        }
    }
}

/// Puts a value that was read where it belongs.
pub(super) fn put<A>(place: &mut A, read: Result<A, String>) -> Result<(), String> {
    *place = read?;
    Ok(())
}

/// [`put`] for what may be absent.
pub(super) fn put_some<A>(place: &mut Option<A>, read: Result<A, String>) -> Result<(), String> {
    put(place, read.map(Some))
}

/// Text that says something.
pub(super) fn text(value: &Value) -> Result<String, String> {
    let text = value.as_str().ok_or("must be text in quotes")?;
    if text.is_empty() {
        return Err("is empty".to_owned());
    }
    Ok(text.to_owned())
}

/// A whole number that `N` can hold.
pub(super) fn number<N: TryFrom<u64>>(value: &Value) -> Result<N, String> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    let number = number.and_then(|number| N::try_from(number).ok());
    number.ok_or_else(|| "must be a whole number, not negative and not too large".to_owned())
}

/// A whole number within bounds.
pub(super) fn bounded(value: &Value, min: usize, max: usize) -> Result<usize, String> {
    number(value)
        .ok()
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| format!("must be a whole number from {min} to {max}"))
}

/// A path of a file.
pub(super) fn path(value: &Value) -> Result<PathBuf, String> {
    text(value).map(PathBuf::from)
}

/// A length of time, more than nothing.
pub(super) fn length(value: &Value) -> Result<Duration, String> {
    let length = value.as_str().and_then(period::parse).filter(|length| !length.is_zero());
    length.ok_or_else(|| format!("must be {}, more than nothing", period::FORM))
}

/// Yes or no.
pub(super) fn yes_no(value: &Value) -> Result<bool, String> {
    match value {
        Value::Bool(yes) => Ok(*yes),
        Value::String(text) if text == "true" => Ok(true),
        Value::String(text) if text == "false" => Ok(false),
        _ => Err("must be true or false".to_owned()),
    }
}

/// One of several words, each with its meaning.
pub(super) fn choice<A: Copy>(value: &Value, known: &[(&str, A)]) -> Result<A, String> {
    let word = value.as_str().unwrap_or_default();
    if let Some((_, meaning)) = known.iter().find(|(name, _)| *name == word) {
        return Ok(*meaning);
    }
    let words: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    let near = nearest(word, &words).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    Err(format!("must be one of {}{near}", words.join(", ")))
}

/// Several texts; as one text, with commas between them.
pub(super) fn list(value: &Value) -> Result<Vec<String>, String> {
    let wrong = || "must be a list of texts".to_owned();
    match value {
        Value::Array(values) => values.iter().map(|value| text(value).map_err(|_| wrong())).collect(),
        Value::String(text) => Ok(entries(text).map(str::to_owned).collect()),
        _ => Err(wrong()),
    }
}

fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_is_read_like_what_the_file_has() {
        assert_eq!(number::<u32>(&json!(7)), number(&json!("7")));
        assert_eq!(yes_no(&json!(true)), yes_no(&json!("true")));
        assert_eq!(list(&json!(["a", "b"])), list(&json!("a, b")));
        assert!(number::<u8>(&json!(256)).is_err() && number::<u8>(&json!(-1)).is_err());
        assert!(length(&json!("0s")).is_err() && length(&json!(30)).is_err());
        let wrong = choice(&json!("dead_leter"), &[("park", 1), ("dead_letter", 2)]).unwrap_err();
        assert_eq!(wrong, "must be one of park, dead_letter; did you mean \"dead_letter\"?");
    }
}
