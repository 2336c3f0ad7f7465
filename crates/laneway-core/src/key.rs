//! Keys: what names a lane, and which partition it belongs to.
//!
//! A key is copied at every step of an event, by every thread. A short one lies in the value itself: a shared one would
//! be counted up and down in memory that all threads write to.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use bytes::Bytes;

use crate::error::Refusal;
use crate::ids::Partition;
use crate::limits::KEY_BYTES_MAX;

/// What fits into the space that a shared key takes anyway.
const SHORT_MAX: usize = 38;

/// Opaque bytes, 1 to 512 of them, that name a lane.
#[derive(Clone)]
pub struct Key(Form);

#[derive(Clone)]
enum Form {
    Short { len: u8, bytes: [u8; SHORT_MAX] },
    Long(Bytes),
}

impl Key {
    /// Checks the length; an absent key is `Option::None`, never empty bytes.
    pub fn new(bytes: impl AsRef<[u8]> + Into<Bytes>) -> Result<Self, Refusal> {
        match short(bytes.as_ref())? {
            Some(short) => Ok(Self(short)),
            None => Ok(Self(Form::Long(bytes.into()))),
        }
    }

    /// The same from bytes that somebody else keeps.
    pub fn copied(bytes: &[u8]) -> Result<Self, Refusal> {
        let form = short(bytes)?.unwrap_or_else(|| Form::Long(Bytes::copy_from_slice(bytes)));
        Ok(Self(form))
    }

    /// The same key, without keeping alive what it was cut out of.
    #[must_use]
    pub fn detached(&self) -> Self {
        match &self.0 {
            Form::Short { .. } => self.clone(),
            Form::Long(bytes) => Self(Form::Long(Bytes::copy_from_slice(bytes))),
        }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Form::Short { len, bytes } => &bytes[..usize::from(*len)],
            Form::Long(bytes) => bytes,
        }
    }

    /// The bytes, to be kept.
    pub fn to_bytes(&self) -> Bytes {
        match &self.0 {
            Form::Short { .. } => Bytes::copy_from_slice(self.bytes()),
            Form::Long(bytes) => bytes.clone(),
        }
    }

    /// The partition of this key in a stream of so many partitions.
    ///
    /// Version 1 of the rule: XXH3-64 of the bytes with seed 0, modulo the count. It is part of what is
    /// stored, so it never changes; another rule gets another version in the stream's metadata.
    ///
    /// ```
    /// use laneway_core::{Key, Partition};
    /// // Pinned: a build that answers anything else would route a lane to two places.
    /// assert_eq!(Key::new("customer-1").unwrap().partition(16), Partition(12));
    /// ```
    pub fn partition(&self, partitions: u32) -> Partition {
        let hash = xxhash_rust::xxh3::xxh3_64(self.bytes());
        Partition(u32::try_from(hash % u64::from(partitions.max(1))).expect("the remainder of a u32 fits"))
    }
}

/// The form of a key that is short enough to lie in the value; refuses what is no key at all.
fn short(bytes: &[u8]) -> Result<Option<Form>, Refusal> {
    if bytes.is_empty() {
        return Err(Refusal::new("key", "\"\"", "1 to 512 bytes (leave the key out for no order)"));
    }
    if bytes.len() > KEY_BYTES_MAX {
        return Err(Refusal::new("key", format!("{} bytes", bytes.len()), "1 to 512 bytes"));
    }
    let Ok(len) = u8::try_from(bytes.len()) else { return Ok(None) };
    let mut form = [0; SHORT_MAX];
    let Some(place) = form.get_mut(..bytes.len()) else { return Ok(None) };
    place.copy_from_slice(bytes);
    Ok(Some(Form::Short { len, bytes: form }))
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bytes().cmp(other.bytes())
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes().hash(state);
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.bytes().escape_ascii())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.bytes().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_keys_are_their_bytes_however_they_were_made() {
        let longest = vec![b'k'; KEY_BYTES_MAX];
        for len in [1, SHORT_MAX - 1, SHORT_MAX, SHORT_MAX + 1, 255, 256, KEY_BYTES_MAX] {
            let bytes = &longest[..len];
            let (made, copied) = (Key::new(bytes.to_vec()).unwrap(), Key::copied(bytes).unwrap());
            assert_eq!((made.bytes(), &made.to_bytes()[..]), (bytes, bytes), "{len} bytes");
            assert_eq!(made, copied);
            assert!(made > Key::copied(b"a").unwrap() && made < Key::copied(b"l").unwrap());
        }
        assert!(Key::new("").is_err() && Key::copied(&[0; KEY_BYTES_MAX + 1]).is_err());
        assert_eq!(size_of::<Key>(), 40, "no larger than a shared one");
    }
}
