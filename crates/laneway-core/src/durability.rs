//! How safe an acknowledged write is, and how stores differ.

use std::fmt;

/// What an acknowledged write survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// Nothing: it is gone with the process.
    Memory,
    /// A killed process, not a power cut.
    Buffered,
    /// A power cut.
    Synced,
    /// The loss of a machine: so many replicas had it.
    Replicated(u8),
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Buffered => f.write_str("buffered"),
            Self::Synced => f.write_str("synced"),
            Self::Replicated(count) => write!(f, "replicated({count})"),
        }
    }
}

/// In what documented ways stores differ. The conformance suite tests both values of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// What an acknowledged append survives.
    pub durability: Durability,
    /// Whether a store that is closed and opened again still has everything.
    pub persistent: bool,
    /// Whether several processes may use it at once.
    pub shared: bool,
}
