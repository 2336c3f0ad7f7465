//! Events in bytes: the one encoding for the log and for dead letters.
//!
//! A fixed head, then the parts with a length, so that a reader looking for an id passes over an event without
//! touching its payload:
//!
//! ```text
//! flags u16 | id varint | time u64 | [prev delta] [seq] [generation] [incarnation] [priority] [expires]
//! [hold] [job: bits u128, responder, keep] | key | kind | headers | data
//! ```

use std::time::Duration;

use bytes::Bytes;
use laneway_core::{Due, Event, EventId, Headers, JobId, JobMark, Kind, ProcessorId, Seq, Steady, Timestamp};

use super::{Decoder, Encoder, Malformed};

const PREV: u32 = 1;
const SEQ: u32 = 1 << 1;
const GENERATION: u32 = 1 << 2;
const INCARNATION: u32 = 1 << 3;
const DELETE: u32 = 1 << 4;
const PRIORITY: u32 = 1 << 5;
const EXPIRES: u32 = 1 << 6;
const HOLD_STEADY: u32 = 1 << 7;
const HOLD_CALENDAR: u32 = 1 << 8;
const HOLD: u32 = HOLD_STEADY | HOLD_CALENDAR;
const JOB: u32 = 1 << 9;
const KEY: u32 = 1 << 10;
const KNOWN: u32 = (1 << 11) - 1;

fn flags(event: &Event) -> u32 {
    let mut flags = 0;
    let mut set = |condition: bool, flag: u32| flags |= if condition { flag } else { 0 };
    set(event.prev.is_some(), PREV);
    set(event.seq.is_some(), SEQ);
    set(event.generation.is_some(), GENERATION);
    set(event.incarnation != 0, INCARNATION);
    set(event.delete, DELETE);
    set(event.priority != 0, PRIORITY);
    set(event.expires_at.is_some(), EXPIRES);
    set(matches!(event.hold_until, Some(Due::Steady(_))), HOLD_STEADY);
    set(matches!(event.hold_until, Some(Due::Calendar(_))), HOLD_CALENDAR);
    set(event.job.is_some(), JOB);
    set(event.key.is_some(), KEY);
    flags
}

/// Writes an event.
pub(crate) fn encode(event: &Event, out: &mut Vec<u8>) {
    out.varint(u64::from(flags(event)));
    out.varint(event.id.0);
    Encoder::u64(out, event.time.0);
    if let Some(prev) = event.prev {
        out.varint(event.id.0 - prev.0);
    }
    if let Some(seq) = event.seq {
        out.varint(seq.0);
    }
    if let Some(generation) = event.generation {
        out.varint(generation);
    }
    if event.incarnation != 0 {
        out.varint(event.incarnation);
    }
    if event.priority != 0 {
        out.u8(event.priority);
    }
    if let Some(expires) = event.expires_at {
        Encoder::u64(out, expires.0);
    }
    match event.hold_until {
        Some(Due::Steady(due)) => Encoder::u64(out, due.0),
        Some(Due::Calendar(due)) => Encoder::u64(out, due.0),
        None => {}
    }
    if let Some(job) = event.job {
        out.u128(job.id.bits());
        out.varint(u64::from(job.responder.0));
        out.varint(job.keep.as_micros().try_into().unwrap_or(u64::MAX));
    }
    if let Some(key) = &event.key {
        Encoder::bytes(out, key.as_ref());
    }
    Encoder::bytes(out, event.kind.bytes());
    Encoder::bytes(out, event.headers.bytes());
    Encoder::bytes(out, &event.data);
}

/// Reads an event; its parts share the decoder's bytes.
pub(crate) fn decode(from: &mut Decoder) -> Result<Event, Malformed> {
    let flags = u32::try_from(from.varint()?).map_err(|_| Malformed)?;
    if flags & !KNOWN != 0 {
        return Err(Malformed);
    }
    let has = |flag: u32| flags & flag != 0;
    let id = EventId(from.varint()?);
    let time = Timestamp(from.u64()?);
    let prev =
        if has(PREV) { Some(EventId(id.0.checked_sub(from.varint()?).ok_or(Malformed)?)) } else { None };
    let seq = if has(SEQ) { Some(Seq(from.varint()?)) } else { None };
    let generation = if has(GENERATION) { Some(from.varint()?) } else { None };
    let incarnation = if has(INCARNATION) { from.varint()? } else { 0 };
    let priority = if has(PRIORITY) { from.u8()? } else { 0 };
    let expires_at = if has(EXPIRES) { Some(Timestamp(from.u64()?)) } else { None };
    let hold_until = match (has(HOLD_STEADY), has(HOLD_CALENDAR)) {
        (false, false) => None,
        (true, false) => Some(Due::Steady(Steady(from.u64()?))),
        (false, true) => Some(Due::Calendar(Timestamp(from.u64()?))),
        (true, true) => return Err(Malformed),
    };
    let job = if has(JOB) { Some(decode_job(from)?) } else { None };
    let key = if has(KEY) { Some(from.key()?) } else { None };
    let kind = Kind::from_bytes(from.bytes()?).ok_or(Malformed)?;
    let headers = Headers::from_bytes(from.bytes()?).ok_or(Malformed)?;
    let data: Bytes = from.bytes()?;
    let delete = has(DELETE);
    Ok(Event {
        id,
        prev,
        seq,
        key,
        kind,
        data,
        headers,
        time,
        generation,
        incarnation,
        delete,
        priority,
        expires_at,
        hold_until,
        job,
    })
}

/// Reads only what makes an event a job, and passes over the rest.
pub(crate) fn decode_mark(from: &mut Decoder) -> Result<(EventId, Option<JobMark>), Malformed> {
    let flags = u32::try_from(from.varint()?).map_err(|_| Malformed)?;
    let has = |flag: u32| flags & flag != 0;
    let id = EventId(from.varint()?);
    from.u64()?;
    for flag in [PREV, SEQ, GENERATION, INCARNATION] {
        if has(flag) {
            from.varint()?;
        }
    }
    let fixed =
        usize::from(has(PRIORITY)) + 8 * usize::from(has(EXPIRES)) + 8 * usize::from(flags & HOLD != 0);
    from.skip(fixed)?;
    let job = if has(JOB) { Some(decode_job(from)?) } else { None };
    for _ in 0..3 + usize::from(has(KEY)) {
        let len = from.len()?;
        from.skip(len)?;
    }
    Ok((id, job))
}

fn decode_job(from: &mut Decoder) -> Result<JobMark, Malformed> {
    Ok(JobMark {
        id: JobId::from_bits(from.u128()?).ok_or(Malformed)?,
        responder: ProcessorId(u32::try_from(from.varint()?).map_err(|_| Malformed)?),
        keep: Duration::from_micros(from.varint()?),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::samples;
    use super::*;

    proptest! {
        #[test]
        fn an_event_reads_back_as_written(event in samples::event()) {
            let mut out = Vec::new();
            encode(&event, &mut out);
            let mut from = Decoder::new(out.into());
            prop_assert_eq!(decode(&mut from.clone()), Ok(event.clone()));
            prop_assert_eq!(decode_mark(&mut from), Ok((event.id, event.job)));
            prop_assert_eq!(from.finish(), Ok(()));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            drop(decode(&mut Decoder::new(bytes.clone().into())));
            let _ = decode_mark(&mut Decoder::new(bytes.into()));
        }
    }
}
