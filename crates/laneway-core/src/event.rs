//! Events as they are stored, and drafts of them as producers hand them in.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};

use crate::clock::{Steady, Timestamp};
use crate::error::Refusal;
use crate::ids::{EventId, ProcessorId, Seq};
use crate::job::JobId;
use crate::key::Key;
use crate::limits;
use crate::policy::Overrides;

/// The stored unit. Immutable; clones share the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Position in its partition.
    pub id: EventId,
    /// Id of the event before it in its lane; `None` for the first and for keyless events.
    pub prev: Option<EventId>,
    /// Number in its lane; `None` for keyless events.
    pub seq: Option<Seq>,
    /// Its lane; `None` is a lane of its own.
    pub key: Option<Key>,
    /// Its type.
    pub kind: Kind,
    /// Its payload.
    pub data: Bytes,
    /// Its headers.
    pub headers: Headers,
    /// When it joined its lane, by the store's calendar clock.
    pub time: Timestamp,
    /// Version of the object it speaks of (latest mode).
    pub generation: Option<u64>,
    /// Which life of that object (latest mode).
    pub incarnation: u64,
    /// Whether it ends that life (latest mode).
    pub delete: bool,
    /// Higher goes first, between lane heads only.
    pub priority: u8,
    /// Not started by then means `expired`.
    pub expires_at: Option<Timestamp>,
    /// Holds up its lane until then (`delay_mode = "hold"`).
    pub hold_until: Option<Due>,
    /// Set when a submitter waits for its result.
    pub job: Option<JobMark>,
}

impl Event {
    /// Bytes that count for the size of a page or a commit: key, type, headers, data.
    pub fn size(&self) -> usize {
        let key = self.key.as_ref().map_or(0, |key| key.bytes().len());
        key + self.kind.bytes().len() + self.headers.bytes().len() + self.data.len()
    }

    /// The same event with bytes of its own. One that was cut out of a larger block keeps that block in memory for as
    /// long as it waits.
    #[must_use]
    pub fn detached(self) -> Self {
        Self {
            key: self.key.map(|key| key.detached()),
            kind: Kind(Bytes::copy_from_slice(&self.kind.0)),
            headers: self.headers.detached(),
            data: Bytes::copy_from_slice(&self.data),
            ..self
        }
    }
}

/// What makes an event a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobMark {
    /// The job's id.
    pub id: JobId,
    /// The one processor that answers it.
    pub responder: ProcessorId,
    /// How long its end is kept.
    pub keep: Duration,
}

/// A moment on one of the two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Due {
    /// A delay: keeps its length when the wall clock jumps.
    Steady(Steady),
    /// A date: follows the wall clock.
    Calendar(Timestamp),
}

/// An event that has no place yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Its lane.
    pub key: Option<Key>,
    /// Its type.
    pub kind: Kind,
    /// Its payload.
    pub data: Bytes,
    /// Its headers.
    pub headers: Headers,
    /// Latest mode: version of the object; `None` takes one more than the newest accepted.
    pub generation: Option<u64>,
    /// Latest mode: which life of the object; higher is newer.
    pub incarnation: u64,
    /// Latest mode: ends this life of the object.
    pub delete: bool,
    /// When it may run.
    pub delay: Option<Delay>,
    /// Higher goes first, between lane heads only.
    pub priority: u8,
    /// Not started within this means `expired`.
    pub ttl: Option<Duration>,
    /// Makes the append repeatable.
    pub dedup: Option<Dedup>,
    /// Appends only if the lane's last id is this (`Some(None)`: only if the lane has none).
    pub expect_prev: Option<Option<EventId>>,
    /// Number of this draft at its origin; needed when the append names one.
    pub origin_seq: Option<u64>,
    /// Makes it a job.
    pub job: Option<JobDraft>,
}

/// A wish for a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobDraft {
    /// The processor that is to answer.
    pub responder: ProcessorId,
    /// How long the end is kept.
    pub keep: Duration,
}

/// Names a draft at its producer: the same again within the window is the same event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dedup {
    /// The producer's name for it; scope is the lane (or, without a key, the shard).
    pub id: Bytes,
    /// Hash of the body: the same id with another body is a conflict.
    pub body: u128,
    /// How long to remember, at least.
    pub window: Duration,
}

/// A wish not to run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Until when.
    pub until: StartAfter,
    /// Where it waits.
    pub mode: DelayMode,
}

/// When a delayed event may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAfter {
    /// So long from now; keeps its length when the wall clock jumps.
    Delay(Duration),
    /// At this date by the wall clock.
    At(Timestamp),
}

/// Where a delayed event waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayMode {
    /// Outside its lane; it joins the end when due.
    Join,
    /// In its lane, which waits with it.
    Hold,
}

impl Draft {
    /// A draft with a key, a type and data, and nothing else asked for.
    pub fn new(key: Option<Key>, kind: Kind, data: impl Into<Bytes>) -> Self {
        Self {
            key,
            kind,
            data: data.into(),
            headers: Headers::default(),
            generation: None,
            incarnation: 0,
            delete: false,
            delay: None,
            priority: 0,
            ttl: None,
            dedup: None,
            expect_prev: None,
            origin_seq: None,
            job: None,
        }
    }

    /// A number for what the producer says: type, data, headers, generation, incarnation and whether it removes. Under one
    /// dedup id another number is another event (contract 1.13).
    ///
    /// Options such as a delay may differ between two tries of one event, and so may the order of its headers and the trace
    /// that a try belongs to.
    pub fn fingerprint(&self) -> u128 {
        let mut said = xxhash_rust::xxh3::Xxh3::new();
        let mut say = |bytes: &[u8]| {
            // With its length, so that no end of one part can be the beginning of the next.
            said.update(&(bytes.len() as u64).to_le_bytes());
            said.update(bytes);
        };
        say(self.kind.bytes());
        say(&self.data);
        let about = self.headers.iter().filter(|(name, _)| !TRACE_HEADERS.contains(name));
        let mut about: Vec<(&str, &[u8])> = about.collect();
        about.sort_unstable();
        about.into_iter().for_each(|(name, value)| [name.as_bytes(), value].into_iter().for_each(&mut say));
        if let Some(generation) = self.generation {
            say(&generation.to_le_bytes());
        }
        say(&self.incarnation.to_le_bytes());
        say(&[u8::from(self.delete)]);
        said.digest128()
    }

    /// Refuses what is wrong whatever the state of the store.
    pub fn check(&self) -> Result<(), Refusal> {
        Refusal::check_max("data bytes", self.data.len(), limits::DATA_BYTES_MAX)?;
        if let Some(dedup) = &self.dedup {
            if dedup.id.is_empty() {
                return Err(Refusal::new("dedup_id", "\"\"", "1 to 256 bytes"));
            }
            Refusal::check_max("dedup_id bytes", dedup.id.len(), limits::DEDUP_ID_BYTES_MAX)?;
        }
        if let Some(job) = &self.job {
            Refusal::check_longest("keep", job.keep, limits::JOB_KEEP_MAX)?;
        }
        if !self.headers.is_empty() {
            Overrides::of(&self.headers)?;
        }
        if self.key.is_none() && self.expect_prev.is_some() {
            return Err(Refusal::new("expect_prev", "set", "absent for an event without a key"));
        }
        let Some(delay) = self.delay else { return Ok(()) };
        if self.expect_prev.is_some() {
            return Err(Refusal::new("expect_prev", "set", "absent when the event is delayed"));
        }
        if let StartAfter::Delay(length) = delay.until {
            let (field, max) = match delay.mode {
                DelayMode::Hold => ("delay with delay_mode hold", limits::HOLD_MAX),
                DelayMode::Join => ("delay", limits::DELAY_MAX),
            };
            if length > max {
                return Err(Refusal::new(field, format!("{length:?}"), format!("at most {max:?}")));
            }
        }
        Ok(())
    }
}

/// Headers of W3C trace context: where an event was sent from, not what it says.
pub const TRACE_HEADERS: [&str; 2] = ["traceparent", "tracestate"];

/// An event's type: short UTF-8 text, possibly empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(Bytes);

impl Kind {
    /// Checks the length.
    pub fn new(text: impl Into<String>) -> Result<Self, Refusal> {
        let text = text.into();
        Refusal::check_max("type bytes", text.len(), limits::KIND_BYTES_MAX)?;
        Ok(Self(Bytes::from(text)))
    }

    /// A type read back from a store; `None` if the bytes are no UTF-8.
    pub fn from_bytes(bytes: Bytes) -> Option<Self> {
        std::str::from_utf8(&bytes).is_ok().then_some(Self(bytes))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("checked when the kind was made")
    }

    /// The bytes of the text.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }
}

/// Names and values that travel with an event, in order, kept encoded so that nobody pays for what is not read.
///
/// ```
/// use laneway_core::Headers;
/// let headers = Headers::new([("trace", "00-ab"), ("hop", "2")]).unwrap();
/// assert_eq!(headers.get("hop"), Some(&b"2"[..]));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Headers(Bytes);

impl Headers {
    /// Encodes headers; refuses more of them than the limits allow.
    pub fn new<N: AsRef<str>, V: AsRef<[u8]>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, Refusal> {
        let mut encoded = BytesMut::new();
        let (mut count, mut total) = (0usize, 0usize);
        for (name, value) in pairs {
            let (name, value) = (name.as_ref().as_bytes(), value.as_ref());
            count += 1;
            total += name.len() + value.len();
            Refusal::check_max("headers", count, limits::HEADERS_MAX)?;
            Refusal::check_max("header bytes", total, limits::HEADERS_BYTES_MAX)?;
            encoded.put_u16_le(u16::try_from(name.len()).expect("below the limit on bytes"));
            encoded.put_u16_le(u16::try_from(value.len()).expect("below the limit on bytes"));
            encoded.put_slice(name);
            encoded.put_slice(value);
        }
        Ok(Self(encoded.freeze()))
    }

    /// The same headers with bytes of their own.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self(Bytes::copy_from_slice(&self.0))
    }

    /// Headers read back from a store; `None` if the bytes are not what [`Headers::new`] makes.
    pub fn from_bytes(bytes: Bytes) -> Option<Self> {
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (_, _, after) = split_header(rest)?;
            rest = after;
        }
        Some(Self(bytes))
    }

    /// The encoded bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first value under a name.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let mut rest = &self.0[..];
        std::iter::from_fn(move || {
            let (name, value, after) = split_header(rest)?;
            rest = after;
            Some((name, value))
        })
    }
}

fn split_header(bytes: &[u8]) -> Option<(&str, &[u8], &[u8])> {
    let (lengths, rest) = bytes.split_first_chunk::<4>()?;
    let name_len = usize::from(u16::from_le_bytes([lengths[0], lengths[1]]));
    let value_len = usize::from(u16::from_le_bytes([lengths[2], lengths[3]]));
    let (name, rest) = rest.split_at_checked(name_len)?;
    let (value, rest) = rest.split_at_checked(value_len)?;
    Some((std::str::from_utf8(name).ok()?, value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(kind: &str, data: &'static [u8], headers: &[(&str, &str)]) -> Draft {
        let headers = Headers::new(headers.iter().copied()).unwrap();
        Draft { headers, ..Draft::new(None, Kind::new(kind).unwrap(), data) }
    }

    #[test]
    fn whatever_a_producer_says_is_in_the_fingerprint() {
        let told = [
            draft("paid", b"1", &[]),
            draft("", b"1", &[]),
            draft("", b"paid1", &[]),
            draft("paid1", b"", &[]),
            draft("paid", b"1", &[("a", "b")]),
            draft("paid", b"1", &[("ab", "")]),
            Draft { generation: Some(0), ..draft("paid", b"1", &[]) },
            Draft { incarnation: 1, ..draft("paid", b"1", &[]) },
            Draft { delete: true, ..draft("paid", b"1", &[]) },
        ];
        for (at, one) in told.iter().enumerate() {
            for (other_at, other) in told.iter().enumerate() {
                let is_same = one.fingerprint() == other.fingerprint();
                assert_eq!(is_same, at == other_at, "{one:?} and {other:?}");
            }
        }
    }

    #[test]
    fn two_tries_of_one_event_have_one_fingerprint() {
        let first = draft("paid", b"1", &[("traceparent", "00-1"), ("a", "b")]);
        let again = Draft { priority: 9, ..draft("paid", b"1", &[("a", "b"), ("tracestate", "x")]) };
        assert_eq!(first.fingerprint(), again.fingerprint());
    }
}
