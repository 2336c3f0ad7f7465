//! Events as the log has them. Appends write these bytes in `joins.lua` and `plain.lua`, imports and dead letters write them here, and
//! `event_parts` in `base.lua` reads what scripts must know. All have one layout:
//!
//! version, flags, prev (6), seq (6), time (8); as the flags say generation (8), incarnation (8), expiry (8), hold (clock,
//! 8), job (id 16, responder 4, keep 8), priority, key (length 2, bytes); then the body.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use laneway_core::{
    Due, Event, EventId, Headers, JobId, JobMark, Key, Kind, ProcessorId, Result, Seq, Steady, Timestamp,
};

use crate::pack::NUMBER_END;
use crate::reply::{corrupt, end_of_time};

const VERSION: u8 = 1;
const GENERATION: u8 = 1;
const INCARNATION: u8 = 2;
const DELETE: u8 = 4;
const EXPIRES: u8 = 8;
const HOLD: u8 = 16;
const JOB: u8 = 32;
const PRIORITY: u8 = 64;
const KEY: u8 = 128;

/// What a producer says, which no script looks into: type, headers, data.
pub(crate) fn body(kind: &Kind, headers: &Headers, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(3 + kind.bytes().len() + headers.bytes().len() + data.len());
    out.put_u8(u8::try_from(kind.bytes().len()).expect("a type has at most 128 bytes"));
    out.put_slice(kind.bytes());
    out.put_u16(u16::try_from(headers.bytes().len()).expect("headers have at most 16 KiB and 64 lengths"));
    out.put_slice(headers.bytes());
    out.put_slice(data);
    out
}

/// The same behind a key, as the log has both.
pub(crate) fn keyed_body(key: &[u8], kind: &Kind, headers: &Headers, data: &[u8]) -> Vec<u8> {
    let body = body(kind, headers, data);
    let mut out = Vec::with_capacity(2 + key.len() + body.len());
    out.put_u16(u16::try_from(key.len()).expect("a key has at most 512 bytes"));
    out.put_slice(key);
    out.put_slice(&body);
    out
}

/// Reads back what [`body`] wrote.
pub(crate) fn read_body(mut bytes: Bytes) -> Result<(Kind, Headers, Bytes)> {
    let read = |bytes: &mut Bytes| {
        let kind_len = usize::from(bytes.try_get_u8().ok()?);
        let kind = Kind::from_bytes(split(bytes, kind_len)?)?;
        let headers_len = usize::from(bytes.try_get_u16().ok()?);
        Some((kind, Headers::from_bytes(split(bytes, headers_len)?)?))
    };
    let (kind, headers) = read(&mut bytes).ok_or_else(|| corrupt("the body of an event"))?;
    Ok((kind, headers, bytes))
}

fn split(bytes: &mut Bytes, len: usize) -> Option<Bytes> {
    (len <= bytes.len()).then(|| bytes.split_to(len))
}

/// The bytes of an event, without its id.
pub(crate) fn write(event: &Event) -> Vec<u8> {
    let mut flags = 0;
    let mut rest = Vec::new();
    let mut part = |present: bool, flag: u8| {
        flags |= if present { flag } else { 0 };
        present
    };
    if part(event.generation.is_some(), GENERATION) {
        rest.put_u64(event.generation.unwrap_or(0));
    }
    if part(event.incarnation != 0, INCARNATION) {
        rest.put_u64(event.incarnation);
    }
    part(event.delete, DELETE);
    if let Some(expires) = event.expires_at.filter(|_| part(event.expires_at.is_some(), EXPIRES)) {
        rest.put_u64(expires.0.min(NUMBER_END));
    }
    if let Some(due) = event.hold_until.filter(|_| part(event.hold_until.is_some(), HOLD)) {
        let (clock, due) = due_parts(due);
        rest.put_u8(clock);
        rest.put_u64(due.min(NUMBER_END));
    }
    if let Some(job) = event.job.filter(|_| part(event.job.is_some(), JOB)) {
        rest.put_slice(&job_bytes(&job));
    }
    if part(event.priority != 0, PRIORITY) {
        rest.put_u8(event.priority);
    }
    if let Some(key) = event.key.as_ref().filter(|_| part(event.key.is_some(), KEY)) {
        rest.put_u16(u16::try_from(key.bytes().len()).expect("a key has at most 512 bytes"));
        rest.put_slice(key.bytes());
    }
    let mut out = vec![VERSION, flags];
    out.put_uint(event.prev.map_or(0, |id| id.0), 6);
    out.put_uint(event.seq.map_or(0, |seq| seq.0), 6);
    out.put_u64(event.time.0.min(NUMBER_END));
    out.append(&mut rest);
    out.append(&mut body(&event.kind, &event.headers, &event.data));
    out
}

/// The event of these bytes.
pub(crate) fn read(id: EventId, bytes: Bytes) -> Result<Event> {
    read_parts(id, bytes).ok_or_else(|| corrupt(format!("event {id}")))?
}

fn read_parts(id: EventId, mut bytes: Bytes) -> Option<Result<Event>> {
    if bytes.try_get_u8().ok()? != VERSION {
        return None;
    }
    let flags = bytes.try_get_u8().ok()?;
    let has = |flag: u8| flags & flag != 0;
    let prev = bytes.try_get_uint(6).ok()?;
    let seq = bytes.try_get_uint(6).ok()?;
    let time = Timestamp(bytes.try_get_u64().ok()?);
    let generation = if has(GENERATION) { Some(bytes.try_get_u64().ok()?) } else { None };
    let incarnation = if has(INCARNATION) { bytes.try_get_u64().ok()? } else { 0 };
    let expires_at =
        if has(EXPIRES) { Some(Timestamp(end_of_time(bytes.try_get_u64().ok()?))) } else { None };
    let hold_until =
        if has(HOLD) { Some(due(bytes.try_get_u8().ok()?, bytes.try_get_u64().ok()?)?) } else { None };
    let job = if has(JOB) { Some(read_job(&split(&mut bytes, JOB_BYTES)?)?) } else { None };
    let priority = if has(PRIORITY) { bytes.try_get_u8().ok()? } else { 0 };
    let key = if has(KEY) {
        let len = usize::from(bytes.try_get_u16().ok()?);
        Some(Key::new(split(&mut bytes, len)?).ok()?)
    } else {
        None
    };
    Some(read_body(bytes).map(|(kind, headers, data)| Event {
        id,
        prev: Some(EventId(prev)).filter(|id| id.0 > 0),
        seq: Some(Seq(seq)).filter(|seq| seq.0 > 0),
        key,
        kind,
        data,
        headers,
        time,
        generation,
        incarnation,
        delete: has(DELETE),
        priority,
        expires_at,
        hold_until,
        job,
    }))
}

const JOB_BYTES: usize = 28;

fn job_bytes(job: &JobMark) -> [u8; JOB_BYTES] {
    let mut out = Vec::with_capacity(JOB_BYTES);
    out.put_u128(job.id.bits());
    out.put_u32(job.responder.0);
    out.put_u64(u64::try_from(job.keep.as_micros()).unwrap_or(u64::MAX).min(NUMBER_END));
    out.try_into().expect("16, 4 and 8 bytes")
}

/// What makes an event a job, from its bytes.
pub(crate) fn read_job(bytes: &[u8]) -> Option<JobMark> {
    let mut bytes = bytes;
    let id = JobId::from_bits(bytes.try_get_u128().ok()?)?;
    let responder = ProcessorId(bytes.try_get_u32().ok()?);
    let keep = Duration::from_micros(end_of_time(bytes.try_get_u64().ok()?));
    Some(JobMark { id, responder, keep })
}

/// Which clock, and when by it.
pub(crate) fn due_parts(due: Due) -> (u8, u64) {
    match due {
        Due::Steady(at) => (0, at.0),
        Due::Calendar(at) => (1, at.0),
    }
}

/// The moment by this clock.
pub(crate) fn due(clock: u8, at: u64) -> Option<Due> {
    match clock {
        0 => Some(Due::Steady(Steady(end_of_time(at)))),
        1 => Some(Due::Calendar(Timestamp(end_of_time(at)))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use laneway_core::{JobNumber, Partition, Shard, StreamId};
    use proptest::prelude::*;

    use super::*;

    fn plain() -> Event {
        Event {
            id: EventId(7),
            prev: None,
            seq: None,
            key: None,
            kind: Kind::default(),
            data: Bytes::from_static(b"data"),
            headers: Headers::default(),
            time: Timestamp(1_794_700_000_000_000),
            generation: None,
            incarnation: 0,
            delete: false,
            priority: 0,
            expires_at: None,
            hold_until: None,
            job: None,
        }
    }

    fn full() -> Event {
        let shard = Shard { stream: StreamId(3), partition: Partition(5) };
        Event {
            prev: Some(EventId((1 << 48) - 1)),
            seq: Some(Seq(9)),
            key: Some(Key::new(vec![0, 255]).unwrap()),
            kind: Kind::new("paid").unwrap(),
            headers: Headers::new([("trace", "00")]).unwrap(),
            generation: Some(u64::MAX),
            incarnation: u64::MAX,
            delete: true,
            priority: 255,
            expires_at: Some(Timestamp(u64::MAX)),
            hold_until: Some(Due::Calendar(Timestamp(3))),
            job: Some(JobMark {
                id: JobId::new(Timestamp(1_000), shard, JobNumber::Event(EventId(7))),
                responder: ProcessorId(4),
                keep: Duration::from_secs(60),
            }),
            ..plain()
        }
    }

    #[test]
    fn events_read_back_as_written() {
        let steady = Event { hold_until: Some(Due::Steady(Steady(9))), ..plain() };
        for event in [plain(), full(), steady] {
            assert_eq!(read(event.id, write(&event).into()).unwrap(), event);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = read(EventId(1), bytes.into());
        }
    }
}
