//! What a script answers: lists of numbers, bytes and lists, read one after the other.

use bytes::Bytes;
use laneway_core::{EventId, Key, Result, StoreError, Timestamp};
use redis::Value;

use crate::pack::NUMBER_END;

/// The answer is not what the script of this version gives.
pub(crate) fn corrupt(what: impl Into<String>) -> StoreError {
    StoreError::Corrupt { what: what.into() }
}

/// The items of a list, from the first on.
#[derive(Debug)]
pub(crate) struct Reply {
    items: std::vec::IntoIter<Value>,
}

impl Reply {
    pub(crate) fn of(value: Value) -> Result<Self> {
        match value {
            Value::Array(items) => Ok(Self { items: items.into_iter() }),
            other => Err(corrupt(format!("a list was expected, not {other:?}"))),
        }
    }

    /// The next item, whatever it is.
    pub(crate) fn value(&mut self) -> Result<Value> {
        // Lists of a script end at their first absence: what is not there at the end is absent.
        Ok(self.items.next().unwrap_or(Value::Nil))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.len() == 0
    }

    pub(crate) fn list(&mut self) -> Result<Self> {
        Self::of(self.value()?)
    }

    /// A list, or nothing.
    pub(crate) fn optional_list(&mut self) -> Result<Option<Self>> {
        match self.value()? {
            Value::Nil => Ok(None),
            other => Self::of(other).map(Some),
        }
    }

    /// Every remaining item, read by `read`.
    pub(crate) fn each<T>(mut self, mut read: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut all = Vec::new();
        while !self.is_empty() {
            all.push(read(&mut self)?);
        }
        Ok(all)
    }

    pub(crate) fn number(&mut self) -> Result<u64> {
        match self.value()? {
            Value::Int(number) => u64::try_from(number).map_err(|_| corrupt(format!("number {number}"))),
            Value::BulkString(text) => {
                let number = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
                number.ok_or_else(|| corrupt(format!("number {}", text.escape_ascii())))
            }
            other => Err(corrupt(format!("a number was expected, not {other:?}"))),
        }
    }

    pub(crate) fn small(&mut self) -> Result<u32> {
        let number = self.number()?;
        u32::try_from(number).map_err(|_| corrupt(format!("number {number}")))
    }

    /// A number, or nothing where it is below all numbers.
    pub(crate) fn not_below(&mut self) -> Result<Option<u64>> {
        match self.value()? {
            Value::Int(number) => Ok(u64::try_from(number).ok()),
            other => Err(corrupt(format!("a number was expected, not {other:?}"))),
        }
    }

    /// A number, or nothing.
    pub(crate) fn optional_number(&mut self) -> Result<Option<u64>> {
        match self.value()? {
            Value::Nil => Ok(None),
            Value::Int(number) if number >= 0 => Ok(Some(number.unsigned_abs())),
            other => Err(corrupt(format!("a number was expected, not {other:?}"))),
        }
    }

    /// A time; the end of time is the end of time.
    pub(crate) fn time(&mut self) -> Result<u64> {
        Ok(end_of_time(self.number()?))
    }

    pub(crate) fn timestamp(&mut self) -> Result<Timestamp> {
        self.time().map(Timestamp)
    }

    pub(crate) fn id(&mut self) -> Result<EventId> {
        self.number().map(EventId)
    }

    /// The id of an entry of the log: `17-0`.
    pub(crate) fn log_id(&mut self) -> Result<EventId> {
        let text = self.text()?;
        let id = text.strip_suffix("-0").unwrap_or(&text).parse().map(EventId);
        id.map_err(|_| corrupt(format!("id {text} in the log")))
    }

    /// An id, or nothing for 0.
    pub(crate) fn optional_id(&mut self) -> Result<Option<EventId>> {
        Ok(Some(self.id()?).filter(|id| id.0 > 0))
    }

    pub(crate) fn flag(&mut self) -> Result<bool> {
        match self.value()? {
            Value::Nil => Ok(false),
            Value::Int(1) => Ok(true),
            other => Err(corrupt(format!("a flag was expected, not {other:?}"))),
        }
    }

    pub(crate) fn bytes(&mut self) -> Result<Bytes> {
        self.optional()?.ok_or_else(|| corrupt("bytes were expected, not nothing"))
    }

    pub(crate) fn optional(&mut self) -> Result<Option<Bytes>> {
        match self.value()? {
            Value::Nil => Ok(None),
            Value::BulkString(bytes) => Ok(Some(bytes.into())),
            other => Err(corrupt(format!("bytes were expected, not {other:?}"))),
        }
    }

    pub(crate) fn text(&mut self) -> Result<String> {
        let bytes = self.bytes()?;
        String::from_utf8(bytes.to_vec()).map_err(|_| corrupt(format!("text {}", bytes.escape_ascii())))
    }

    /// A text for people.
    pub(crate) fn words(&mut self) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.bytes()?).into_owned())
    }

    pub(crate) fn key(&mut self) -> Result<Key> {
        key(self.bytes()?)
    }

    pub(crate) fn bits(&mut self) -> Result<u128> {
        bits(&self.bytes()?)
    }
}

/// A stored key.
pub(crate) fn key(bytes: Bytes) -> Result<Key> {
    Key::new(bytes).map_err(|refusal| corrupt(refusal.to_string()))
}

/// 128 stored bits.
pub(crate) fn bits(bytes: &[u8]) -> Result<u128> {
    let array = bytes.try_into().map_err(|_| corrupt(format!("{} bytes instead of 16", bytes.len())))?;
    Ok(u128::from_be_bytes(array))
}

/// A time as scripts have it.
pub(crate) fn end_of_time(time: u64) -> u64 {
    if time >= NUMBER_END { u64::MAX } else { time }
}
