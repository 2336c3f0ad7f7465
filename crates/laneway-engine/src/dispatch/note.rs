//! What the owner of a seat keeps with it in the store besides its progress: who paused it, and up to where it replays
//! without emitting (contract 1.18).
//!
//! Bytes: a version, the quiet id, and, if it is paused, when and by whom. No bytes at all are a seat of which nothing is
//! kept. A version that is not known is refused: half a note would emit twice.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use laneway_core::{EventId, StoreError, Timestamp};

const VERSION: u8 = 1;

/// Who stopped a processor, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paused {
    /// Who, in their own words; empty if nobody said.
    pub by: Bytes,
    /// When.
    pub at: Timestamp,
}

/// What is kept with a seat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Note {
    /// Who paused it, while it is paused.
    pub(crate) paused: Option<Paused>,
    /// What events up to this emit was emitted before a reset: it is dropped.
    pub(crate) quiet_to: EventId,
}

impl Note {
    pub(crate) fn encode(&self) -> Bytes {
        if *self == Self::default() {
            return Bytes::new();
        }
        let mut out = BytesMut::new();
        out.put_u8(VERSION);
        out.put_u64(self.quiet_to.0);
        if let Some(Paused { by, at }) = &self.paused {
            out.put_u64(at.0);
            out.put_slice(by);
        }
        out.freeze()
    }

    pub(crate) fn decode(mut bytes: Bytes) -> Result<Self, StoreError> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let unknown = |what: &str| StoreError::Corrupt { what: format!("the note of a seat: {what}") };
        match bytes.get_u8() {
            VERSION => {}
            other => return Err(unknown(&format!("version {other}, this program knows {VERSION}"))),
        }
        let quiet_to = EventId(bytes.try_get_u64().map_err(|_| unknown("it is cut off"))?);
        let paused = if bytes.is_empty() {
            None
        } else {
            let at = Timestamp(bytes.try_get_u64().map_err(|_| unknown("it is cut off"))?);
            Some(Paused { by: bytes, at })
        };
        Ok(Self { paused, quiet_to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_back_as_they_were_written() {
        let by = |by: &'static str| Some(Paused { by: Bytes::from_static(by.as_bytes()), at: Timestamp(5) });
        for (paused, quiet_to) in [(None, 0), (None, 7), (by("ann"), 0), (by(""), u64::MAX)] {
            let note = Note { paused, quiet_to: EventId(quiet_to) };
            assert_eq!(Note::decode(note.encode()).unwrap(), note);
        }
        assert!(Note::default().encode().is_empty(), "a plain seat has none");
    }

    #[test]
    fn notes_that_cannot_be_understood_are_refused() {
        let whole = Note { paused: None, quiet_to: EventId(7) }.encode();
        assert!(Note::decode(whole.slice(..5)).is_err(), "cut off");
        let newer = [&[VERSION + 1], &whole[1..]].concat();
        let error = Note::decode(newer.into()).unwrap_err().to_string();
        assert!(error.contains("version 2, this program knows 1"), "{error}");
    }

    #[test]
    fn the_longest_note_has_room() {
        use laneway_core::limits::{CAUSE_BYTES_MAX, NOTE_BYTES_MAX};
        let by = Bytes::from(vec![b'a'; CAUSE_BYTES_MAX]);
        let note = Note { paused: Some(Paused { by, at: Timestamp(5) }), quiet_to: EventId(7) };
        assert!(note.encode().len() <= NOTE_BYTES_MAX);
    }
}
