//! The answer of a remote worker as bytes, for the way through the store to the owner: a version byte, then the fields in
//! order, numbers little-endian, bytes after their length.
//!
//! Reading never panics. What an emit cannot carry is refused when it is written.

use std::time::Duration;

use bytes::{Buf, Bytes};
use laneway_core::{Delay, DelayMode, Draft, Headers, Key, Kind, Refusal, StartAfter, Timestamp};

use super::types::{Done, Emission, Failure, LaneAnswer, Retry, StateChange};

const VERSION: u8 = 1;

/// Encodes an answer.
pub(crate) fn encode(answer: &LaneAnswer) -> Result<Bytes, Refusal> {
    let mut out = vec![VERSION];
    put_len(&mut out, answer.done.len());
    for done in &answer.done {
        put_optional(&mut out, done.result.as_deref());
        put_len(&mut out, done.emits.len());
        for emission in &done.emits {
            put_emission(&mut out, emission)?;
        }
    }
    match &answer.state {
        StateChange::Keep => out.push(0),
        StateChange::Set(bytes) => {
            out.push(1);
            put_bytes(&mut out, bytes);
        }
        StateChange::Remove => out.push(2),
    }
    match &answer.failure {
        None => out.push(0),
        Some(failure) => {
            let (tag, wait) = match failure.retry {
                Retry::ByPolicy => (1, Duration::ZERO),
                Retry::After(wait) => (2, wait),
                Retry::Never => (3, Duration::ZERO),
                Retry::NotRun => (4, Duration::ZERO),
                Retry::Alone => (5, Duration::ZERO),
            };
            out.push(tag);
            put_duration(&mut out, wait);
            put_bytes(&mut out, failure.error.as_bytes());
        }
    }
    Ok(Bytes::from(out))
}

/// Refuses what no emit can carry: each of these could be refused by the stream long after the run was settled.
pub(crate) fn check_carried(draft: &Draft) -> Result<(), Refusal> {
    let unwanted = [
        ("dedup_id", draft.dedup.is_some()),
        ("expect_prev", draft.expect_prev.is_some()),
        ("job", draft.job.is_some()),
    ];
    match unwanted.into_iter().find(|(_, set)| *set) {
        Some((field, _)) => Err(Refusal::new(field, "set", "absent in an emit")),
        None => Ok(()),
    }
}

fn put_emission(out: &mut Vec<u8>, emission: &Emission) -> Result<(), Refusal> {
    let draft = &emission.draft;
    check_carried(draft)?;
    put_bytes(out, emission.stream.as_bytes());
    put_optional(out, draft.key.as_ref().map(|key| key.bytes()));
    put_bytes(out, draft.kind.bytes());
    put_bytes(out, &draft.data);
    put_bytes(out, draft.headers.bytes());
    out.push(u8::from(draft.generation.is_some()));
    out.extend_from_slice(&draft.generation.unwrap_or(0).to_le_bytes());
    out.extend_from_slice(&draft.incarnation.to_le_bytes());
    out.extend_from_slice(&[u8::from(draft.delete), draft.priority, u8::from(draft.ttl.is_some())]);
    put_duration(out, draft.ttl.unwrap_or_default());
    match draft.delay {
        None => out.push(0),
        Some(Delay { until, mode }) => {
            out.push(if mode == DelayMode::Join { 1 } else { 2 });
            match until {
                StartAfter::Delay(length) => {
                    out.push(0);
                    put_duration(out, length);
                }
                StartAfter::At(at) => {
                    out.push(1);
                    out.extend_from_slice(&at.0.to_le_bytes());
                }
            }
        }
    }
    Ok(())
}

fn put_len(out: &mut Vec<u8>, len: usize) {
    out.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_len(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn put_optional(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    out.push(u8::from(bytes.is_some()));
    put_bytes(out, bytes.unwrap_or_default());
}

fn put_duration(out: &mut Vec<u8>, length: Duration) {
    let micros = u64::try_from(length.as_micros()).unwrap_or(u64::MAX);
    out.extend_from_slice(&micros.to_le_bytes());
}

/// Reads what [`encode`] wrote; nothing else.
pub(crate) fn decode(bytes: Bytes) -> Option<LaneAnswer> {
    let mut from = Reader(bytes);
    if from.byte()? != VERSION {
        return None;
    }
    let mut answer = LaneAnswer::default();
    for _ in 0..from.len()? {
        let result = from.optional()?;
        let mut emits = Vec::new();
        for _ in 0..from.len()? {
            emits.push(from.emission()?);
        }
        answer.done.push(Done { result, emits });
    }
    answer.state = match from.byte()? {
        0 => StateChange::Keep,
        1 => StateChange::Set(from.bytes()?),
        2 => StateChange::Remove,
        _ => return None,
    };
    let tag = from.byte()?;
    if tag != 0 {
        let wait = from.duration()?;
        let retry = match tag {
            1 => Retry::ByPolicy,
            2 => Retry::After(wait),
            3 => Retry::Never,
            4 => Retry::NotRun,
            5 => Retry::Alone,
            _ => return None,
        };
        answer.failure = Some(Failure { error: from.text()?, retry });
    }
    from.0.is_empty().then_some(answer)
}

struct Reader(Bytes);

impl Reader {
    fn byte(&mut self) -> Option<u8> {
        self.0.try_get_u8().ok()
    }

    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<u64> {
        self.0.try_get_u64_le().ok()
    }

    /// A length, never more than there are bytes.
    fn len(&mut self) -> Option<usize> {
        let len = usize::try_from(self.0.try_get_u32_le().ok()?).ok()?;
        (len <= self.0.len()).then_some(len)
    }

    fn bytes(&mut self) -> Option<Bytes> {
        let len = self.len()?;
        Some(self.0.split_to(len))
    }

    fn optional(&mut self) -> Option<Option<Bytes>> {
        let there = self.flag()?;
        let bytes = self.bytes()?;
        Some(there.then_some(bytes))
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    fn duration(&mut self) -> Option<Duration> {
        self.number().map(Duration::from_micros)
    }

    fn emission(&mut self) -> Option<Emission> {
        let stream = self.text()?;
        let key = self.optional()?.map(Key::new).transpose().ok()?;
        let kind = Kind::from_bytes(self.bytes()?)?;
        let mut draft = Draft::new(key, kind, self.bytes()?);
        draft.headers = Headers::from_bytes(self.bytes()?)?;
        let has_generation = self.flag()?;
        draft.generation = Some(self.number()?).filter(|_| has_generation);
        draft.incarnation = self.number()?;
        draft.delete = self.flag()?;
        draft.priority = self.byte()?;
        let has_ttl = self.flag()?;
        draft.ttl = Some(self.duration()?).filter(|_| has_ttl);
        draft.delay = match self.byte()? {
            0 => None,
            mode @ (1 | 2) => {
                let mode = if mode == 1 { DelayMode::Join } else { DelayMode::Hold };
                let until = match self.byte()? {
                    0 => StartAfter::Delay(self.duration()?),
                    1 => StartAfter::At(Timestamp(self.number()?)),
                    _ => return None,
                };
                Some(Delay { until, mode })
            }
            _ => return None,
        };
        Some(Emission { stream, draft })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> LaneAnswer {
        let key = Key::new("ann").expect("a short key");
        let mut draft = Draft::new(Some(key), Kind::new("paid").expect("a short type"), "data");
        draft.headers = Headers::new([("a", "b")]).expect("few headers");
        (draft.generation, draft.incarnation, draft.delete, draft.priority) = (Some(3), 4, true, 2);
        draft.ttl = Some(Duration::from_secs(5));
        draft.delay =
            Some(Delay { until: StartAfter::Delay(Duration::from_millis(7)), mode: DelayMode::Hold });
        let plain = Draft::new(None, Kind::default(), "");
        let emits = [draft, plain].map(|draft| Emission { stream: "other".to_owned(), draft }).to_vec();
        LaneAnswer {
            done: vec![Done { result: Some(Bytes::from_static(b"r")), emits }, Done::default()],
            state: StateChange::Set(Bytes::from_static(b"s")),
            failure: Some(Failure { error: "e".to_owned(), retry: Retry::After(Duration::from_secs(9)) }),
            ..LaneAnswer::default()
        }
    }

    #[test]
    fn answers_read_back_as_written() {
        for answer in [full(), LaneAnswer::default(), LaneAnswer::failed("x", Retry::Never)] {
            let bytes = encode(&answer).expect("it can be carried");
            assert_eq!(decode(bytes), Some(answer));
        }
    }

    #[test]
    fn damaged_answers_are_no_answers() {
        let whole = encode(&full()).expect("it can be carried");
        for end in 0..whole.len() {
            assert_eq!(decode(whole.slice(..end)), None, "cut at {end}");
        }
        for at in 0..whole.len() {
            let mut bytes = whole.to_vec();
            bytes[at] ^= 0xff;
            // It may still be an answer, but reading it must not fail.
            let _maybe = decode(Bytes::from(bytes));
        }
    }
}
