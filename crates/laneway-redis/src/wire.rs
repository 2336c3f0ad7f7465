//! The encoding of what scripts never look into: records, wishes, drafts on their way, the rest of an end.
//!
//! A value begins with the version of its encoding; numbers are big-endian, bytes come with their length.

use std::time::Duration;

use bytes::Bytes;
use laneway_core::event::Dedup;
use laneway_core::store::{Emit, Ending, RedriveTo, RequestOp, Reset};
use laneway_core::{
    Block, Claim, Delay, DelayMode, Draft, Due, EventId, Headers, JobDraft, Key, Kind, LaneName, LaneRecord,
    Mode, Nonce, ProcessorId, Result, StartAfter, StartAt, Steady, StreamId, StreamSettings, Terminal,
    Timestamp,
};

use crate::reply::corrupt;

const VERSION: u8 = 1;

/// A value as it is stored.
pub(crate) fn store<T: Wire>(value: &T) -> Bytes {
    let mut out = vec![VERSION];
    value.put(&mut out);
    out.into()
}

/// A stored value.
pub(crate) fn load<T: Wire>(bytes: Bytes) -> Result<T> {
    let mut from = From { bytes };
    let read = match u8::take(&mut from) {
        Ok(VERSION) => T::take(&mut from),
        _ => Err(Malformed),
    };
    match read {
        Ok(value) if from.bytes.is_empty() => Ok(value),
        _ => Err(corrupt(format!("a stored {}", std::any::type_name::<T>()))),
    }
}

/// The bytes are not what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Bytes that are read from the front; slices share them.
pub(crate) struct From {
    bytes: Bytes,
}

impl From {
    fn split(&mut self, len: usize) -> Result<Bytes, Malformed> {
        if len > self.bytes.len() { Err(Malformed) } else { Ok(self.bytes.split_to(len)) }
    }
}

/// What can be written and read back.
pub(crate) trait Wire: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn take(from: &mut From) -> Result<Self, Malformed>;
}

macro_rules! numbers {
    ($($type:ty),*) => { $(impl Wire for $type {
        fn put(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&self.to_be_bytes());
        }
        fn take(from: &mut From) -> Result<Self, Malformed> {
            let bytes = from.split(size_of::<$type>())?;
            Ok(Self::from_be_bytes(bytes[..].try_into().map_err(|_| Malformed)?))
        }
    })* };
}
numbers!(u8, u32, u64, u128);

/// Types around one other.
macro_rules! around {
    ($($type:ty),*) => { $(impl Wire for $type {
        fn put(&self, out: &mut Vec<u8>) {
            self.0.put(out);
        }
        fn take(from: &mut From) -> Result<Self, Malformed> {
            Wire::take(from).map(Self)
        }
    })* };
}
around!(EventId, Timestamp, Steady, Nonce, ProcessorId, StreamId);

/// Structures, part by part.
macro_rules! structure {
    ($type:ty { $($part:ident),* }) => { impl Wire for $type {
        fn put(&self, out: &mut Vec<u8>) {
            $(self.$part.put(out);)*
        }
        fn take(from: &mut From) -> Result<Self, Malformed> {
            Ok(Self { $($part: Wire::take(from)?),* })
        }
    } };
}

/// Choices, each with its number.
macro_rules! choice {
    ($type:ty { $($number:literal => $name:ident $({ $($part:ident),* })? $(($inner:ident))?),* $(,)? }) => { impl Wire for $type {
        fn put(&self, out: &mut Vec<u8>) {
            match self {
                $(Self::$name $({ $($part),* })? $(($inner))? => {
                    out.push($number);
                    $($($part.put(out);)*)?
                    $($inner.put(out);)?
                })*
            }
        }
        fn take(from: &mut From) -> Result<Self, Malformed> {
            match u8::take(from)? {
                $($number => Ok(Self::$name $({ $($part: Wire::take(from)?),* })? $(({ let $inner = Wire::take(from)?; $inner }))?),)*
                _ => Err(Malformed),
            }
        }
    } };
}

impl Wire for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn take(from: &mut From) -> Result<Self, Malformed> {
        match u8::take(from)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    u32::try_from(bytes.len()).expect("limits keep every value far below 4 GiB").put(out);
    out.extend_from_slice(bytes);
}

impl Wire for Bytes {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(self, out);
    }
    fn take(from: &mut From) -> Result<Self, Malformed> {
        let len = usize::try_from(u32::take(from)?).map_err(|_| Malformed)?;
        from.split(len)
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }
    fn take(from: &mut From) -> Result<Self, Malformed> {
        if bool::take(from)? { T::take(from).map(Some) } else { Ok(None) }
    }
}

impl Wire for Duration {
    fn put(&self, out: &mut Vec<u8>) {
        u64::try_from(self.as_micros()).unwrap_or(u64::MAX).put(out);
    }
    fn take(from: &mut From) -> Result<Self, Malformed> {
        u64::take(from).map(Self::from_micros)
    }
}

impl Wire for Key {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(self.bytes(), out);
    }
    fn take(from: &mut From) -> Result<Self, Malformed> {
        Self::new(Bytes::take(from)?).map_err(|_| Malformed)
    }
}

impl Wire for Kind {
    fn put(&self, out: &mut Vec<u8>) {
        self.bytes().put(out);
    }
    fn take(from: &mut From) -> Result<Self, Malformed> {
        Self::from_bytes(Bytes::take(from)?).ok_or(Malformed)
    }
}

impl Wire for Headers {
    fn put(&self, out: &mut Vec<u8>) {
        self.bytes().put(out);
    }
    fn take(from: &mut From) -> Result<Self, Malformed> {
        Self::from_bytes(Bytes::take(from)?).ok_or(Malformed)
    }
}

choice!(Terminal { 0 => Done, 1 => Failed, 2 => Skipped, 3 => Superseded, 4 => Cancelled, 5 => Expired });
choice!(Due { 0 => Steady(at), 1 => Calendar(at) });
choice!(StartAfter { 0 => Delay(length), 1 => At(time) });
choice!(DelayMode { 0 => Join, 1 => Hold });
choice!(Mode { 0 => Queue, 1 => Latest });
choice!(StartAt { 0 => Beginning, 1 => End, 2 => Id(id), 3 => Time(time) });
choice!(RedriveTo { 0 => Place, 1 => Tail });
choice!(LaneName { 1 => Key(key), 2 => Event(id) });
choice!(Block {
    1 => Retry { due, cause },
    2 => Hold { due },
    3 => Paused { by, at },
    4 => Parked { cause, at },
    5 => Diverting { since },
    6 => Running { since, progress },
    7 => Claimed(claim),
});
choice!(RequestOp {
    1 => Cancel { id },
    2 => Pause { lane, by },
    3 => Resume { lane },
    4 => Retry { lane, id },
    5 => Skip { lane, id },
    6 => Redrive { id, lane, to },
    7 => Reset(reset),
    8 => Settle { claim, answer },
    9 => Extend { claim, lease },
    10 => Discard { id, lane },
});
structure!(Claim { nonce, worker, through, expires });
structure!(LaneRecord { lane, block, head, attempts, crashes, started, ahead });
structure!(Ending { id, end, reason, winner });
structure!(Delay { until, mode });
structure!(Dedup { id, body, window });
structure!(JobDraft { responder, keep });
structure!(Draft {
    key,
    kind,
    data,
    headers,
    generation,
    incarnation,
    delete,
    delay,
    priority,
    ttl,
    dedup,
    expect_prev,
    origin_seq,
    job
});
structure!(Emit { stream, draft });

impl Wire for Reset {
    fn put(&self, out: &mut Vec<u8>) {
        self.start.put(out);
        // Before there were two bits it was a flag.
        out.push(u8::from(self.clear_states) | u8::from(self.quiet) << 1);
    }
    fn take(from: &mut From) -> Result<Self, Malformed> {
        let (start, bits) = (Wire::take(from)?, u8::take(from)?);
        if bits > 3 {
            return Err(Malformed);
        }
        Ok(Self { start, clear_states: bits & 1 != 0, quiet: bits & 2 != 0 })
    }
}

/// How long dedup ids are remembered where the bytes say nothing.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Wire for StreamSettings {
    fn put(&self, out: &mut Vec<u8>) {
        self.partitions.put(out);
        self.mode.put(out);
        self.keep.put(out);
        self.max_pending.put(out);
        self.dedup_max.put(out);
        self.dead_keep.put(out);
        self.keep_done.put(out);
        // Without one the bytes are those of before it was known.
        let has_window = self.dedup_window != DAY;
        let forgets = self.forget_lanes_after.is_some() || has_window;
        if self.responder.is_some() || forgets {
            Bytes::from(self.responder.clone().unwrap_or_default()).put(out);
        }
        if forgets {
            self.forget_lanes_after.unwrap_or_default().put(out);
        }
        if has_window {
            self.dedup_window.put(out);
        }
    }
    fn take(from: &mut From) -> Result<Self, Malformed> {
        Ok(Self {
            partitions: Wire::take(from)?,
            mode: Wire::take(from)?,
            keep: Wire::take(from)?,
            max_pending: Wire::take(from)?,
            dedup_max: Wire::take(from)?,
            dead_keep: Wire::take(from)?,
            keep_done: Wire::take(from)?,
            responder: if from.bytes.is_empty() {
                None
            } else {
                Some(text(from)?).filter(|name| !name.is_empty())
            },
            forget_lanes_after: if from.bytes.is_empty() {
                None
            } else {
                Some(Wire::take(from)?).filter(|length: &Duration| !length.is_zero())
            },
            dedup_window: if from.bytes.is_empty() { DAY } else { Wire::take(from)? },
        })
    }
}

fn text(from: &mut From) -> Result<String, Malformed> {
    String::from_utf8(Bytes::take(from)?.into()).map_err(|_| Malformed)
}

/// What of a job's end no script looks into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EndRest {
    pub(crate) end: Terminal,
    pub(crate) error: Bytes,
    pub(crate) attempts: u32,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) keep: Duration,
}
structure!(EndRest { end, error, attempts, started_at, keep });

/// What of a dead letter no script looks into; its event is as the log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeadRest {
    pub(crate) event: Bytes,
    pub(crate) cause: Bytes,
    pub(crate) attempts: u32,
}
structure!(DeadRest { event, cause, attempts });

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample() -> Draft {
        Draft {
            headers: Headers::new([("a", "b")]).unwrap(),
            generation: Some(u64::MAX),
            delay: Some(Delay { until: StartAfter::At(Timestamp(9)), mode: DelayMode::Hold }),
            dedup: Some(Dedup { id: Bytes::from_static(b"\0"), body: 3, window: Duration::MAX }),
            expect_prev: Some(None),
            job: Some(JobDraft { responder: ProcessorId(2), keep: Duration::from_secs(5) }),
            ..Draft::new(Some(Key::new("k").unwrap()), Kind::new("paid").unwrap(), "data")
        }
    }

    fn reads_back<T: Wire + PartialEq + std::fmt::Debug>(value: T) {
        let bytes = store(&value);
        assert_eq!(load::<T>(bytes.clone()).unwrap(), value);
        for end in 0..bytes.len() {
            assert!(load::<T>(bytes.slice(..end)).is_err(), "{end} of {} bytes", bytes.len());
        }
        let mut longer = bytes.to_vec();
        longer.push(0);
        assert!(load::<T>(longer.into()).is_err(), "a byte too many");
    }

    #[test]
    fn values_read_back_as_written_and_no_part_of_them_does() {
        let lane = LaneName::Key(Key::new("k").unwrap());
        let claim = Claim { nonce: Nonce(1), worker: Bytes::new(), through: EventId(4), expires: Steady(5) };
        for block in [
            Block::Retry { due: Due::Steady(Steady(1)), cause: Bytes::from_static(b"why") },
            Block::Hold { due: Due::Calendar(Timestamp(2)) },
            Block::Paused { by: Bytes::from_static(b"ann"), at: Timestamp(3) },
            Block::Parked { cause: Bytes::new(), at: Timestamp(4) },
            Block::Diverting { since: EventId(5) },
            Block::Running { since: Timestamp(6), progress: Bytes::from_static(b"half") },
            Block::Claimed(claim),
        ] {
            reads_back(LaneRecord {
                block: Some(block),
                head: Some(EventId(9)),
                ..LaneRecord::new(lane.clone())
            });
        }
        for op in [
            RequestOp::Cancel { id: EventId(1) },
            RequestOp::Pause { lane: None, by: Bytes::from_static(b"ann") },
            RequestOp::Resume { lane: Some(lane.clone()) },
            RequestOp::Retry { lane: lane.clone(), id: EventId(2) },
            RequestOp::Skip { lane: LaneName::Event(EventId(3)), id: EventId(3) },
            RequestOp::Redrive { id: Some(EventId(4)), lane: lane.clone(), to: RedriveTo::Tail },
            RequestOp::Reset(Reset { start: StartAt::Time(Timestamp(5)), clear_states: true, quiet: true }),
            RequestOp::Settle { claim: Bytes::from_static(b"c"), answer: Bytes::from_static(b"a") },
            RequestOp::Extend { claim: Bytes::from_static(b"c"), lease: Duration::from_secs(6) },
            RequestOp::Discard { id: None, lane },
        ] {
            reads_back(op);
        }
        let mut emitted = sample();
        // Whole microseconds, at most so many as 64 bits hold.
        emitted.dedup = emitted.dedup.map(|dedup| Dedup { window: Duration::from_micros(u64::MAX), ..dedup });
        reads_back(Emit { stream: StreamId(1), draft: emitted });
        reads_back(StreamSettings { max_pending: Some(16), mode: Mode::Latest, ..StreamSettings::default() });
        // Settings from before there were responders end there, so that part reads back too.
        let answered = StreamSettings { responder: Some("charge".to_owned()), ..StreamSettings::default() };
        assert_eq!(load::<StreamSettings>(store(&answered)).unwrap(), answered);
        let window = StreamSettings { dedup_window: Duration::from_secs(60), ..StreamSettings::default() };
        let forgets = StreamSettings { forget_lanes_after: Some(Duration::from_secs(9)), ..window.clone() };
        for settings in [window, forgets] {
            assert_eq!(load::<StreamSettings>(store(&settings)).unwrap(), settings);
        }
        reads_back(Ending {
            id: EventId(1),
            end: Terminal::Expired,
            reason: Bytes::new(),
            winner: Some(EventId(2)),
        });
    }

    #[test]
    fn a_longer_time_than_fits_stays_the_longest() {
        let read: Draft = load(store(&sample())).unwrap();
        assert_eq!(read.dedup.unwrap().window, Duration::from_micros(u64::MAX));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = load::<Draft>(bytes.clone().into());
            let _ = load::<LaneRecord>(bytes.clone().into());
            let _ = load::<RequestOp>(bytes.into());
        }
    }
}
