//! Tokens: random texts that are shown once and kept as hashes.
//!
//! A random token of 32 bytes cannot be guessed, so a plain hash is enough: slow hashes protect what people think up.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use subtle::ConstantTimeEq as _;

use super::scope::Scopes;
use super::secret::Secret;

/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;
/// Characters that so many bytes have at least, in the shortest usual spelling.
pub(super) const TOKEN_LEN_MIN: usize = 43;
/// What tokens of ours begin with, so that people and scanners recognise one that lies around.
const BEGINS: &str = "lw_";
/// Longest name of a token in bytes: it is kept with every job of its caller.
const NAME_BYTES_MAX: usize = 64;
const HASH_BEGINS: &str = "sha256:";

/// Who calls: the name of a token, and what it is good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) name: Arc<str>,
    pub(crate) scopes: Scopes,
}

/// What is kept of a token: one line of the token file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TokenLine {
    pub(super) caller: Caller,
    hash: [u8; 32],
}

/// A new token, and the line that is kept of it.
pub(crate) fn make(name: &str, scopes: Scopes) -> Result<(Secret, TokenLine), String> {
    check_name(name)?;
    let mut bytes = [0; TOKEN_BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "the system gives no random bytes".to_owned())?;
    let token = Secret::new(format!("{BEGINS}{}", URL_SAFE_NO_PAD.encode(bytes)));
    let caller = Caller { name: name.into(), scopes };
    let line = TokenLine { caller, hash: hash_of(token.reveal()) };
    Ok((token, line))
}

impl TokenLine {
    /// Reads `NAME SCOPES sha256:HEX`.
    pub(super) fn read(line: &str) -> Result<Self, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, scopes, hash] = words[..] else {
            return Err(format!("has {} words, must be NAME SCOPES sha256:HEX", words.len()));
        };
        check_name(name)?;
        let scopes = Scopes::read(scopes)?;
        // What is wrong with it is not shown: somebody may have put the token itself there.
        let wrong =
            || "the third word must be sha256: and 64 digits from 0 to f, the hash of a token".to_owned();
        let hash = hash.strip_prefix(HASH_BEGINS).and_then(bytes_of_hex).ok_or_else(wrong)?;
        Ok(Self { caller: Caller { name: name.into(), scopes }, hash })
    }

    /// Whether this is the line of a token with that hash, in a time that says nothing about the hash.
    pub(super) fn is_of(&self, hash: &[u8; 32]) -> bool {
        self.hash.ct_eq(hash).into()
    }
}

impl fmt::Display for TokenLine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} {HASH_BEGINS}", self.caller.name, self.caller.scopes)?;
        self.hash.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

/// The hash of a token.
pub(super) fn hash_of(token: &str) -> [u8; 32] {
    digest(&SHA256, token.as_bytes()).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

fn check_name(name: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !(1..=NAME_BYTES_MAX).contains(&name.len()) || !name.bytes().all(plain) {
        return Err(format!("name {name:?}: must be 1 to {NAME_BYTES_MAX} letters, digits, '-', '_' or '.'"));
    }
    Ok(())
}

fn bytes_of_hex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_new_token_is_read_back_and_knows_its_token_only() {
        let (token, line) = make("billing", Scopes::read("read").unwrap()).unwrap();
        assert!(token.reveal().len() >= TOKEN_LEN_MIN + BEGINS.len());
        let read = TokenLine::read(&line.to_string()).unwrap();
        assert_eq!(read, line);
        assert!(read.is_of(&hash_of(token.reveal())));
        assert!(!read.is_of(&hash_of(&token.reveal().to_uppercase())));
        assert!(!line.to_string().contains(token.reveal()));
        let (another, _) = make("billing", Scopes::read("read").unwrap()).unwrap();
        assert!(another != token);
    }

    /// A hash that others can compute too, so that a line can be made without this program.
    #[test]
    fn the_hash_is_plain_sha256_of_the_text() {
        let line =
            TokenLine { caller: Caller { name: "a".into(), scopes: Scopes::all() }, hash: hash_of("abc") };
        let known = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(line.to_string(), format!("a read,write,work,admin {known}"));
    }

    #[test]
    fn a_line_that_cannot_be_used_says_why_and_never_shows_what_stands_for_the_hash() {
        for (line, says) in [
            ("billing read", "has 2 words"),
            ("bil/ling read sha256:00", "letters, digits"),
            ("billing reed sha256:00", "\"reed\" is not known"),
            ("billing read lw_canary", "the hash of a token"),
            ("billing read sha256:canary", "the hash of a token"),
        ] {
            let fault = TokenLine::read(line).unwrap_err();
            assert!(fault.contains(says) && !fault.contains("canary"), "{line}: {fault}");
        }
    }
}
