//! Fields of what is stored: numbers little-endian, bytes after their length. Reading never panics.

use bytes::Bytes;

/// Why stored bytes are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is malformed at its {field}")]
pub(crate) struct Malformed {
    /// What was being read.
    pub(crate) field: &'static str,
}

/// Fields being written.
pub(crate) struct Fields(Vec<u8>);

impl Fields {
    /// A version, and what follows.
    pub(crate) fn new(version: u8) -> Self {
        Self(vec![version])
    }

    pub(crate) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(crate) fn flag(&mut self, flag: bool) {
        self.byte(u8::from(flag));
    }

    pub(crate) fn u32(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(crate) fn u128(&mut self, number: u128) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn optional(&mut self, bytes: Option<&[u8]>) {
        self.flag(bytes.is_some());
        if let Some(bytes) = bytes {
            self.bytes(bytes);
        }
    }

    pub(crate) fn finish(self) -> Bytes {
        Bytes::from(self.0)
    }
}

/// Reads from the front of shared bytes; slices share them.
pub(crate) struct Reader {
    rest: Bytes,
    /// What is being read, for the error.
    field: &'static str,
}

impl Reader {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self { rest: bytes, field: "version" }
    }

    pub(crate) fn malformed(&self) -> Malformed {
        Malformed { field: self.field }
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], Malformed> {
        self.field = field;
        let array = *self.rest.first_chunk::<N>().ok_or(self.malformed())?;
        let _ = self.rest.split_to(N);
        Ok(array)
    }

    pub(crate) fn byte(&mut self, field: &'static str) -> Result<u8, Malformed> {
        self.array::<1>(field).map(|[byte]| byte)
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, Malformed> {
        self.array(field).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64, Malformed> {
        self.array(field).map(u64::from_le_bytes)
    }

    pub(crate) fn u128(&mut self, field: &'static str) -> Result<u128, Malformed> {
        self.array(field).map(u128::from_le_bytes)
    }

    pub(crate) fn flag(&mut self, field: &'static str) -> Result<bool, Malformed> {
        match self.byte(field)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.malformed()),
        }
    }

    pub(crate) fn bytes(&mut self, field: &'static str) -> Result<Bytes, Malformed> {
        let length = self.u64(field)?;
        let length = usize::try_from(length).ok().filter(|length| *length <= self.rest.len());
        Ok(self.rest.split_to(length.ok_or(self.malformed())?))
    }

    pub(crate) fn text(&mut self, field: &'static str) -> Result<String, Malformed> {
        String::from_utf8(self.bytes(field)?.into()).map_err(|_| self.malformed())
    }

    /// Refuses whatever is left.
    pub(crate) fn end(&self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed { field: "end" }) }
    }
}
