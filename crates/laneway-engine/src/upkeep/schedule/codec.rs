//! The stored form of a schedule: a version byte, then the fields in order, numbers little-endian, bytes after their
//! length.
//!
//! Reading never panics and accepts nothing that writing would not have made. It does not check the schedule: a zone
//! that was known when it was written may be gone, and the schedule must still be shown and removed.

use std::time::Duration;

use laneway_core::{Bytes, Headers, Key, Kind, Timestamp};

use super::definition::{CatchUp, Firing, Overlap, Schedule, Spec};

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

impl Schedule {
    /// The bytes to store.
    pub fn encode(&self) -> Bytes {
        let mut out = vec![VERSION];
        put_bytes(&mut out, self.name.as_bytes());
        put_spec(&mut out, &self.spec);
        out.push(match self.overlap {
            Overlap::Allow => 0,
            Overlap::Skip => 1,
            Overlap::Queue => 2,
        });
        match self.catch_up {
            CatchUp::None => out.push(0),
            CatchUp::Last => out.push(1),
            CatchUp::All { max } => {
                out.push(2);
                out.extend_from_slice(&max.to_le_bytes());
            }
        }
        out.push(u8::from(self.paused));
        out.extend_from_slice(&self.since.0.to_le_bytes());
        put_bytes(&mut out, self.firing.stream.as_bytes());
        put_optional(&mut out, self.firing.key.as_ref().map(Key::as_ref));
        put_bytes(&mut out, self.firing.kind.bytes());
        put_bytes(&mut out, &self.firing.data);
        put_bytes(&mut out, self.firing.headers.bytes());
        put_optional(&mut out, self.firing.processor.as_deref().map(str::as_bytes));
        Bytes::from(out)
    }

    /// Reads what [`Schedule::encode`] wrote.
    ///
    /// # Errors
    /// When the bytes are anything else.
    pub fn decode(bytes: Bytes) -> Result<Self, DecodeError> {
        let mut from = Reader { rest: bytes, field: "version" };
        let version = from.byte("version")?;
        if version > VERSION {
            return Err(DecodeError::Newer { version });
        }
        if version != VERSION {
            return Err(from.malformed());
        }
        let schedule = Self {
            name: from.text("name")?,
            spec: from.spec()?,
            overlap: from.overlap()?,
            catch_up: from.catch_up()?,
            paused: from.flag("paused")?,
            since: Timestamp(from.u64("since")?),
            firing: from.firing()?,
        };
        if from.rest.is_empty() { Ok(schedule) } else { Err(DecodeError::Malformed { field: "end" }) }
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn put_optional(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    out.push(u8::from(bytes.is_some()));
    if let Some(bytes) = bytes {
        put_bytes(out, bytes);
    }
}

fn put_spec(out: &mut Vec<u8>, spec: &Spec) {
    match spec {
        Spec::Every { length, anchor } => {
            out.push(0);
            out.extend_from_slice(&length.as_secs().to_le_bytes());
            out.extend_from_slice(&length.subsec_nanos().to_le_bytes());
            out.extend_from_slice(&anchor.0.to_le_bytes());
        }
        Spec::Cron { expression, zone } => {
            out.push(1);
            put_bytes(out, expression.as_bytes());
            put_bytes(out, zone.as_bytes());
        }
    }
}

/// Reads from the front of shared bytes; slices share them.
struct Reader {
    rest: Bytes,
    /// What is being read, for the error.
    field: &'static str,
}

impl Reader {
    fn malformed(&self) -> DecodeError {
        DecodeError::Malformed { field: self.field }
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        self.field = field;
        let array = *self.rest.first_chunk::<N>().ok_or(self.malformed())?;
        let _ = self.rest.split_to(N);
        Ok(array)
    }

    fn byte(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        self.array::<1>(field).map(|[byte]| byte)
    }

    fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.array(field).map(u32::from_le_bytes)
    }

    fn u64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        self.array(field).map(u64::from_le_bytes)
    }

    fn flag(&mut self, field: &'static str) -> Result<bool, DecodeError> {
        match self.byte(field)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.malformed()),
        }
    }

    fn bytes(&mut self, field: &'static str) -> Result<Bytes, DecodeError> {
        let length = self.u64(field)?;
        let length = usize::try_from(length).ok().filter(|length| *length <= self.rest.len());
        Ok(self.rest.split_to(length.ok_or(self.malformed())?))
    }

    fn text(&mut self, field: &'static str) -> Result<String, DecodeError> {
        String::from_utf8(self.bytes(field)?.into()).map_err(|_| self.malformed())
    }

    fn spec(&mut self) -> Result<Spec, DecodeError> {
        match self.byte("spec")? {
            0 => {
                let (seconds, nanos) = (self.u64("length")?, self.u32("length")?);
                if nanos >= NANOS_PER_SECOND {
                    return Err(self.malformed());
                }
                Ok(Spec::Every {
                    length: Duration::new(seconds, nanos),
                    anchor: Timestamp(self.u64("anchor")?),
                })
            }
            1 => Ok(Spec::Cron { expression: self.text("expression")?, zone: self.text("zone")? }),
            _ => Err(self.malformed()),
        }
    }

    fn overlap(&mut self) -> Result<Overlap, DecodeError> {
        match self.byte("overlap")? {
            0 => Ok(Overlap::Allow),
            1 => Ok(Overlap::Skip),
            2 => Ok(Overlap::Queue),
            _ => Err(self.malformed()),
        }
    }

    fn catch_up(&mut self) -> Result<CatchUp, DecodeError> {
        match self.byte("catch_up")? {
            0 => Ok(CatchUp::None),
            1 => Ok(CatchUp::Last),
            2 => Ok(CatchUp::All { max: self.u32("catch_up")? }),
            _ => Err(self.malformed()),
        }
    }

    fn firing(&mut self) -> Result<Firing, DecodeError> {
        let stream = self.text("stream")?;
        let key = if self.flag("key")? {
            let bytes = self.bytes("key")?;
            Some(Key::new(bytes).map_err(|_| self.malformed())?)
        } else {
            None
        };
        let kind = self.bytes("type")?;
        let kind = Kind::from_bytes(kind).ok_or(self.malformed())?;
        let data = self.bytes("data")?;
        let headers = self.bytes("headers")?;
        let headers = Headers::from_bytes(headers).ok_or(self.malformed())?;
        let processor = if self.flag("processor")? { Some(self.text("processor")?) } else { None };
        Ok(Firing { stream, key, kind, data, headers, processor })
    }
}
