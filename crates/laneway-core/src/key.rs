//! Keys: what names a lane, and which partition it belongs to.

use std::fmt;

use bytes::Bytes;

use crate::error::Refusal;
use crate::ids::Partition;
use crate::limits::KEY_BYTES_MAX;

/// Opaque bytes, 1 to 512 of them, that name a lane.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Bytes);

impl Key {
    /// Checks the length; an absent key is `Option::None`, never empty bytes.
    pub fn new(bytes: impl Into<Bytes>) -> Result<Self, Refusal> {
        let bytes = bytes.into();
        if bytes.is_empty() {
            return Err(Refusal::new("key", "\"\"", "1 to 512 bytes (leave the key out for no order)"));
        }
        if bytes.len() > KEY_BYTES_MAX {
            return Err(Refusal::new("key", format!("{} bytes", bytes.len()), "1 to 512 bytes"));
        }
        Ok(Self(bytes))
    }

    /// The bytes, shared.
    pub fn bytes(&self) -> &Bytes {
        &self.0
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
        let hash = xxhash_rust::xxh3::xxh3_64(&self.0);
        Partition(u32::try_from(hash % u64::from(partitions.max(1))).expect("the remainder of a u32 fits"))
    }
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.0.escape_ascii())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}
