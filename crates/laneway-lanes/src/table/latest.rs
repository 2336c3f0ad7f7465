//! Latest mode's one question: is this push newer than what the lane has accepted?
//!
//! A pure comparison, asked on every path, also when nothing runs. It knows no lanes and no queues.
//!
//! The naive rule compares only with what runs or waits. Then generation 3 arriving after 5 has finished runs and
//! overwrites newer work; so the comparison is with the newest *accepted* version, whatever became of it.

/// Whether a push says what the object is now, or that it is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Kind {
    /// The object exists and has this value.
    #[default]
    Update,
    /// The object is gone. Terminal for its incarnation.
    Delete,
}

/// What a pusher says about the version of its item. All of it may be left out.
///
/// In queue mode nothing is compared; the handler sees what was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Revision {
    /// The object's generation; left out, one more than the newest accepted.
    pub generation: Option<u64>,
    /// Which life of the object; a recreated object has a higher one. Left out, the newest accepted.
    pub incarnation: Option<u64>,
    /// Update or delete.
    pub kind: Kind,
}

/// The version an item was accepted with. Orders by incarnation, generation, and delete after update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version {
    /// Which life of the object.
    pub incarnation: u64,
    /// Its generation within that life.
    pub generation: u64,
    /// Update or delete.
    pub kind: Kind,
}

impl Revision {
    /// The version in a lane that compares nothing.
    pub(super) fn as_given(self) -> Version {
        Version {
            incarnation: self.incarnation.unwrap_or(0),
            generation: self.generation.unwrap_or(0),
            kind: self.kind,
        }
    }

    /// The version this revision is accepted with, or the newer one that makes it stale.
    pub(super) fn judge(self, accepted: Option<Version>) -> Result<Version, Version> {
        let Some(newest) = accepted else {
            let fresh = self.generation.unwrap_or(1);
            return Ok(Version { generation: fresh, ..self.as_given() });
        };
        let incarnation = self.incarnation.unwrap_or(newest.incarnation);
        if incarnation > newest.incarnation {
            return Ok(Version { incarnation, generation: self.generation.unwrap_or(1), kind: self.kind });
        }
        let generation = self.generation.unwrap_or(newest.generation.saturating_add(1));
        let same_life = incarnation == newest.incarnation;
        if same_life && newest.kind == Kind::Update && generation >= newest.generation {
            return Ok(Version { incarnation, generation, kind: self.kind });
        }
        Err(newest)
    }
}
