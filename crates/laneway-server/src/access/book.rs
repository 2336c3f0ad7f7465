//! The tokens that are valid now, and how they are read again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;

use super::files::{FileError, read_private};
use super::secret::Secret;
use super::token::{Caller, TOKEN_LEN_MIN, TokenLine, hash_of};

/// Most tokens of one name: the old one and the new one, while callers change over.
const PER_NAME_MAX: usize = 2;
/// Most tokens of all: each is compared for every call.
const TOKENS_MAX: usize = 1_000;

/// Where tokens are written down.
#[derive(Debug, Clone)]
enum Source {
    /// Nobody has a token.
    None,
    /// In a file.
    File(PathBuf),
    /// In the environment, which does not change.
    Lines,
}

/// The tokens that are valid now. Cheap to clone; all clones see a change.
#[derive(Debug, Clone)]
pub(crate) struct Book {
    source: Source,
    lines: Arc<RwLock<Arc<[TokenLine]>>>,
}

/// Why tokens cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BookError {
    /// Their file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// A line cannot be used.
    #[error("{place}: {wrong}")]
    Line {
        /// Where they are written down, and in which line.
        place: String,
        /// What is wrong with it.
        wrong: String,
    },
}

impl Book {
    /// Nobody has a token, and nobody needs one.
    pub(crate) fn empty() -> Self {
        Self { source: Source::None, lines: Arc::new(RwLock::new(Arc::default())) }
    }

    /// The tokens of a file.
    pub(crate) fn of_file(path: &Path) -> Result<Self, BookError> {
        let lines = read_file(path)?;
        Ok(Self { source: Source::File(path.to_owned()), lines: Arc::new(RwLock::new(lines)) })
    }

    /// Tokens by their lines, which stand at `place`; a semicolon ends a line too.
    pub(crate) fn of_lines(text: &Secret, place: &str) -> Result<Self, BookError> {
        let lines = read_lines(&text.reveal().replace(';', "\n"), place)?;
        Ok(Self { source: Source::Lines, lines: Arc::new(RwLock::new(lines)) })
    }

    /// Whether calls need a token.
    pub(crate) fn is_needed(&self) -> bool {
        !matches!(self.source, Source::None)
    }

    /// Reads the file again. Until all of it can be used, the tokens of before stay valid.
    pub(crate) fn reload(&self) -> Result<(), BookError> {
        if let Source::File(path) = &self.source {
            let lines = read_file(path)?;
            *self.lines.write() = lines;
        }
        Ok(())
    }

    /// Whose token this is. Every line is compared, whatever the ones before said.
    pub(crate) fn caller(&self, token: &str) -> Option<Caller> {
        if token.len() < TOKEN_LEN_MIN {
            return None;
        }
        let hash = hash_of(token);
        let lines = Arc::clone(&self.lines.read());
        lines
            .iter()
            .fold(None, |found, line| if line.is_of(&hash) { Some(line.caller.clone()) } else { found })
    }
}

fn read_file(path: &Path) -> Result<Arc<[TokenLine]>, BookError> {
    read_lines(read_private(path)?.reveal(), &path.display().to_string())
}

fn read_lines(text: &str, place: &str) -> Result<Arc<[TokenLine]>, BookError> {
    let mut lines: Vec<TokenLine> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |wrong| BookError::Line { place: format!("{place}, line {number}"), wrong };
        let line = TokenLine::read(line).map_err(wrong)?;
        let same = lines.iter().filter(|other| other.caller.name == line.caller.name).count();
        if same == PER_NAME_MAX {
            let name = &line.caller.name;
            return Err(wrong(format!(
                "is token {} of {name:?}, at most {PER_NAME_MAX} are valid at a time: remove the oldest",
                same + 1
            )));
        }
        lines.push(line);
    }
    if !(1..=TOKENS_MAX).contains(&lines.len()) {
        let wrong = format!("has {} tokens, must have 1 to {TOKENS_MAX}", lines.len());
        return Err(BookError::Line { place: place.to_owned(), wrong });
    }
    Ok(lines.into())
}

#[cfg(test)]
mod tests {
    use super::super::scope::Scopes;
    use super::super::token::make;
    use super::*;

    fn line_of(name: &str) -> (Secret, String) {
        let (token, line) = make(name, Scopes::read("read").unwrap()).unwrap();
        (token, line.to_string())
    }

    #[test]
    fn two_tokens_of_a_name_are_valid_at_a_time_and_a_third_is_refused() {
        let (old, old_line) = line_of("billing");
        let (new, new_line) = line_of("billing");
        let (_, third_line) = line_of("billing");
        let two = format!("# tokens\n\n{old_line}\n{new_line}\n");
        let book = Book::of_lines(&Secret::new(&two), "TOKENS").unwrap();
        for token in [&old, &new] {
            assert_eq!(&*book.caller(token.reveal()).unwrap().name, "billing");
        }
        assert_eq!(book.caller("no"), None);
        assert_eq!(book.caller(&new.reveal().to_uppercase()), None);
        let three = Secret::new(format!("{two}{third_line}"));
        let refused = Book::of_lines(&three, "TOKENS").unwrap_err().to_string();
        assert!(refused.starts_with("TOKENS, line 5: ") && refused.contains("at most 2"), "{refused}");
        let none = Book::of_lines(&Secret::new("# none"), "TOKENS").unwrap_err().to_string();
        assert!(none.contains("has 0 tokens"), "{none}");
    }

    /// A text that people thought up can be guessed, whatever its hash looks like.
    #[test]
    fn a_token_that_is_too_short_is_nobodys() {
        let line = format!(
            "billing read sha256:{}",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        let book = Book::of_lines(&Secret::new(line), "TOKENS").unwrap();
        assert_eq!(book.caller("abc"), None);
    }
}
