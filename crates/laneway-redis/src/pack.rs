//! What a call hands to its script, as msgpack: numbers, bytes, lists, names. User bytes stay bytes on their whole way.

use std::time::Duration;

use bytes::Bytes;
use laneway_core::{EventId, Timestamp};

/// Numbers in scripts are doubles: from here on a time is the end of time, and no other number is as high.
pub(crate) const NUMBER_END: u64 = 1 << 53;

/// One part of a call.
#[derive(Clone, Debug)]
pub(crate) enum Arg {
    /// A number; above [`NUMBER_END`] it is that.
    Number(u64),
    /// What is below every number, where one is expected.
    Below,
    Bytes(Bytes),
    Flag(bool),
    List(Vec<Arg>),
    Named(Vec<(&'static str, Arg)>),
}

/// Nothing, where there may be something.
pub(crate) const ABSENT: Arg = Arg::Flag(false);

impl Arg {
    /// The bytes that `cmsgpack.unpack` reads.
    pub(crate) fn pack(&self, out: &mut Vec<u8>) {
        match self {
            Self::Number(number) => pack_number(*number, out),
            Self::Below => out.push(0xff),
            Self::Bytes(bytes) => pack_bytes(bytes, out),
            Self::Flag(flag) => out.push(if *flag { 0xc3 } else { 0xc2 }),
            Self::List(items) => {
                out.push(0xdd);
                out.extend_from_slice(&length(items.len()));
                items.iter().for_each(|item| item.pack(out));
            }
            Self::Named(parts) => {
                out.push(0xdf);
                out.extend_from_slice(&length(parts.len()));
                for (name, part) in parts {
                    pack_bytes(name.as_bytes(), out);
                    part.pack(out);
                }
            }
        }
    }

    /// A list of anything that can be a part.
    pub(crate) fn list<T: Into<Self>>(items: impl IntoIterator<Item = T>) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

fn length(len: usize) -> [u8; 4] {
    u32::try_from(len).expect("limits keep every part far below 4 GiB").to_be_bytes()
}

fn pack_number(number: u64, out: &mut Vec<u8>) {
    match u8::try_from(number) {
        Ok(small) if small < 0x80 => out.push(small),
        _ => {
            out.push(0xcf);
            out.extend_from_slice(&number.min(NUMBER_END).to_be_bytes());
        }
    }
}

fn pack_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    match u8::try_from(bytes.len()) {
        Ok(short) if short < 32 => out.push(0xa0 | short),
        _ => {
            out.push(0xdb);
            out.extend_from_slice(&length(bytes.len()));
        }
    }
    out.extend_from_slice(bytes);
}

macro_rules! number_args {
    ($($type:ty),*) => { $(impl From<$type> for Arg {
        fn from(number: $type) -> Self {
            Self::Number(u64::from(number))
        }
    })* };
}
number_args!(u8, u32, u64);

impl From<usize> for Arg {
    fn from(number: usize) -> Self {
        Self::Number(number as u64)
    }
}

impl From<EventId> for Arg {
    fn from(id: EventId) -> Self {
        Self::Number(id.0)
    }
}

impl From<Timestamp> for Arg {
    fn from(time: Timestamp) -> Self {
        Self::Number(time.0)
    }
}

impl From<Duration> for Arg {
    fn from(length: Duration) -> Self {
        Self::Number(u64::try_from(length.as_micros()).unwrap_or(u64::MAX))
    }
}

impl From<bool> for Arg {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<Bytes> for Arg {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Vec<u8>> for Arg {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl From<&str> for Arg {
    fn from(text: &str) -> Self {
        Self::Bytes(Bytes::copy_from_slice(text.as_bytes()))
    }
}

/// 128 bits as 16 bytes.
impl From<u128> for Arg {
    fn from(bits: u128) -> Self {
        Self::Bytes(Bytes::copy_from_slice(&bits.to_be_bytes()))
    }
}

impl<T: Into<Self>> From<Option<T>> for Arg {
    fn from(part: Option<T>) -> Self {
        part.map_or(ABSENT, Into::into)
    }
}

/// A list of parts of any kinds.
macro_rules! parts {
    ($($part:expr),* $(,)?) => { $crate::pack::Arg::List(vec![$($crate::pack::Arg::from($part)),*]) };
}

/// Parts with names.
macro_rules! named {
    ($($name:ident: $part:expr),* $(,)?) => {
        $crate::pack::Arg::Named(vec![$((stringify!($name), $crate::pack::Arg::from($part))),*])
    };
}

pub(crate) use {named, parts};

impl Arg {
    /// The same with one more name; on names only.
    pub(crate) fn with(mut self, name: &'static str, part: impl Into<Self>) -> Self {
        if let Self::Named(parts) = &mut self {
            parts.push((name, part.into()));
        }
        self
    }

    pub(crate) fn with_all(self, parts: Vec<(&'static str, Self)>) -> Self {
        parts.into_iter().fold(self, |call, (name, part)| call.with(name, part))
    }
}
