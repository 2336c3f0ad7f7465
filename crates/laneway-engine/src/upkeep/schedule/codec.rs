//! The stored form of a schedule: a version byte, then the fields in order, numbers little-endian, bytes after their
//! length.
//!
//! Reading never panics and accepts nothing that writing would not have made. It does not check the schedule: a zone
//! that was known when it was written may be gone, and the schedule must still be shown and removed.

use std::time::Duration;

use laneway_core::{Bytes, Headers, Key, Kind, Timestamp};

use super::definition::{CatchUp, Firing, Overlap, Schedule, Spec};
use crate::service::{Fields, Malformed, Reader};

const VERSION: u8 = 1;
const NANOS_PER_SECOND: u32 = 1_000_000_000;

/// Why stored bytes are no schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A newer Laneway wrote it: leave it alone.
    #[error("schedule has version {version}, must be at most {VERSION}")]
    Newer {
        /// The version found.
        version: u8,
    },
    /// The bytes are damaged: say so and go on with the other schedules.
    #[error("schedule is malformed at its {field}")]
    Malformed {
        /// What was being read.
        field: &'static str,
    },
}

impl From<Malformed> for DecodeError {
    fn from(Malformed { field }: Malformed) -> Self {
        Self::Malformed { field }
    }
}

impl Schedule {
    /// The bytes to store.
    pub fn encode(&self) -> Bytes {
        let mut out = Fields::new(VERSION);
        out.bytes(self.name.as_bytes());
        put_spec(&mut out, &self.spec);
        out.byte(match self.overlap {
            Overlap::Allow => 0,
            Overlap::Skip => 1,
            Overlap::Queue => 2,
        });
        match self.catch_up {
            CatchUp::None => out.byte(0),
            CatchUp::Last => out.byte(1),
            CatchUp::All { max } => {
                out.byte(2);
                out.u32(max);
            }
        }
        out.flag(self.paused);
        out.u64(self.since.0);
        out.bytes(self.firing.stream.as_bytes());
        out.optional(self.firing.key.as_ref().map(Key::as_ref));
        out.bytes(self.firing.kind.bytes());
        out.bytes(&self.firing.data);
        out.bytes(self.firing.headers.bytes());
        out.optional(self.firing.processor.as_deref().map(str::as_bytes));
        out.finish()
    }

    /// Reads what [`Schedule::encode`] wrote.
    ///
    /// # Errors
    /// When the bytes are anything else.
    pub fn decode(bytes: Bytes) -> Result<Self, DecodeError> {
        let mut from = Reader::new(bytes);
        let version = from.byte("version")?;
        if version > VERSION {
            return Err(DecodeError::Newer { version });
        }
        if version != VERSION {
            return Err(from.malformed().into());
        }
        let schedule = Self {
            name: from.text("name")?,
            spec: spec(&mut from)?,
            overlap: overlap(&mut from)?,
            catch_up: catch_up(&mut from)?,
            paused: from.flag("paused")?,
            since: Timestamp(from.u64("since")?),
            firing: firing(&mut from)?,
        };
        from.end()?;
        Ok(schedule)
    }
}

fn put_spec(out: &mut Fields, spec: &Spec) {
    match spec {
        Spec::Every { length, anchor } => {
            out.byte(0);
            out.u64(length.as_secs());
            out.u32(length.subsec_nanos());
            out.u64(anchor.0);
        }
        Spec::Cron { expression, zone } => {
            out.byte(1);
            out.bytes(expression.as_bytes());
            out.bytes(zone.as_bytes());
        }
    }
}

fn spec(from: &mut Reader) -> Result<Spec, Malformed> {
    match from.byte("spec")? {
        0 => {
            let (seconds, nanos) = (from.u64("length")?, from.u32("length")?);
            if nanos >= NANOS_PER_SECOND {
                return Err(from.malformed());
            }
            Ok(Spec::Every { length: Duration::new(seconds, nanos), anchor: Timestamp(from.u64("anchor")?) })
        }
        1 => Ok(Spec::Cron { expression: from.text("expression")?, zone: from.text("zone")? }),
        _ => Err(from.malformed()),
    }
}

fn overlap(from: &mut Reader) -> Result<Overlap, Malformed> {
    match from.byte("overlap")? {
        0 => Ok(Overlap::Allow),
        1 => Ok(Overlap::Skip),
        2 => Ok(Overlap::Queue),
        _ => Err(from.malformed()),
    }
}

fn catch_up(from: &mut Reader) -> Result<CatchUp, Malformed> {
    match from.byte("catch_up")? {
        0 => Ok(CatchUp::None),
        1 => Ok(CatchUp::Last),
        2 => Ok(CatchUp::All { max: from.u32("catch_up")? }),
        _ => Err(from.malformed()),
    }
}

fn firing(from: &mut Reader) -> Result<Firing, Malformed> {
    let stream = from.text("stream")?;
    let key = if from.flag("key")? {
        let bytes = from.bytes("key")?;
        Some(Key::new(bytes).map_err(|_| from.malformed())?)
    } else {
        None
    };
    let kind = from.bytes("type")?;
    let kind = Kind::from_bytes(kind).ok_or(from.malformed())?;
    let data = from.bytes("data")?;
    let headers = from.bytes("headers")?;
    let headers = Headers::from_bytes(headers).ok_or(from.malformed())?;
    let processor = if from.flag("processor")? { Some(from.text("processor")?) } else { None };
    Ok(Firing { stream, key, kind, data, headers, processor })
}
