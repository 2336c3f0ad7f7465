//! What can be wrong in a folder, and how it is told.

use std::fmt;
use std::path::PathBuf;

use laneway_core::{EventId, Key, Shard};

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FindingKind {
    /// An event is missing: a `prev` that is not there, a number in the lane or an id that is left out.
    Gap,
    /// Two events of a lane follow the same one.
    Fork,
    /// An id is there twice.
    Duplicate,
    /// An id comes after a higher one.
    Reorder,
    /// Bytes are not what was written: a checksum fails, or a record makes no sense.
    Damage,
    /// Two places that must say the same do not: index, footers and log.
    Mismatch,
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gap => "gap",
            Self::Fork => "fork",
            Self::Duplicate => "duplicate",
            Self::Reorder => "reorder",
            Self::Damage => "damage",
            Self::Mismatch => "mismatch",
        })
    }
}

/// A place in a file of the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, as seen from the folder.
    pub file: PathBuf,
    /// Where in it.
    pub offset: u64,
}

/// Something that does not fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which kind.
    pub kind: FindingKind,
    /// Where it was seen; absent for what is in no place of its own.
    pub place: Option<Place>,
    /// In which shard.
    pub shard: Option<Shard>,
    /// In which lane.
    pub key: Option<Key>,
    /// Which events it is about, ascending as far as they are in order.
    pub ids: Vec<EventId>,
    /// What was found and what belongs there.
    pub what: String,
}

impl Finding {
    pub(super) fn new(kind: FindingKind, what: impl Into<String>) -> Self {
        Self { kind, place: None, shard: None, key: None, ids: Vec::new(), what: what.into() }
    }

    pub(super) fn at(self, place: Place) -> Self {
        Self { place: Some(place), ..self }
    }

    pub(super) fn of(self, shard: Shard, key: Option<&Key>, ids: &[EventId]) -> Self {
        Self { shard: Some(shard), key: key.cloned(), ids: ids.to_vec(), ..self }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.kind)?;
        if let Some(place) = &self.place {
            write!(f, "{} at offset {}: ", place.file.display(), place.offset)?;
        }
        if let Some(shard) = self.shard {
            write!(f, "shard {shard}")?;
            if let Some(key) = &self.key {
                write!(f, ", lane {key}")?;
            }
            for (index, id) in self.ids.iter().enumerate() {
                f.write_str(if index == 0 { ", event " } else { " and " })?;
                write!(f, "{id}")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.what)
    }
}
