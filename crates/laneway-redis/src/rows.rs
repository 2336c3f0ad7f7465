//! Values that scripts look into, as they go in and come out: drafts, receipts, lanes, seats, ends of jobs.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use laneway_core::adoption::Gap;
use laneway_core::event::Dedup;
use laneway_core::store::{
    DeadLetter, EndRow, JobEnd, JobResult, Progress, Receipt, SeatStatus, Source, TailView, TicketRow,
    Ticketed, Versioned,
};
use laneway_core::{
    Delay, DelayMode, Draft, Due, EventId, Fence, Incarnation, JobDraft, JobId, Key, LaneName, LaneRecord,
    Nonce, Partition, Passed, ProcessorId, Result, Seq, Shard, ShardInfo, StartAfter, StreamId, Term,
    Terminal, Timestamp, Window,
};

use crate::event;
use crate::pack::{Arg, parts};
use crate::reply::{Reply, bits, corrupt, end_of_time};
use crate::wire::{self, DeadRest, EndRest};

/// A draft as `joins.lua` reads it, with its number at its origin where the call does not say it for all.
pub(crate) fn draft_arg(draft: &Draft, number: Option<u64>) -> Arg {
    let delay = draft.delay.map(|delay| {
        let (clock, at) = match delay.until {
            StartAfter::Delay(length) => (0u8, Arg::from(length)),
            StartAfter::At(time) => (1u8, Arg::from(time)),
        };
        parts![u8::from(delay.mode == DelayMode::Hold), clock, at]
    });
    let dedup = draft.dedup.as_ref().map(|dedup| parts![dedup.id.clone(), dedup.body, dedup.window]);
    let mut parts = vec![
        Arg::from(draft.key.as_ref().map(|key| key.to_bytes())),
        event::body(&draft.kind, &draft.headers, &draft.data).into(),
        draft.generation.map(eight_bytes).into(),
        Some(draft.incarnation).filter(|incarnation| *incarnation > 0).map(eight_bytes).into(),
        draft.delete.into(),
        delay.into(),
        Some(draft.priority).filter(|priority| *priority > 0).into(),
        draft.ttl.into(),
        dedup.into(),
        draft.expect_prev.map(Option::unwrap_or_default).into(),
        number.into(),
        draft.job.map(|job| parts![job.responder.0, job.keep]).into(),
    ];
    // Most drafts are a key and a body: what is absent at the end is left out.
    while parts.len() > 2 && matches!(parts.last(), Some(Arg::Flag(false))) {
        parts.pop();
    }
    Arg::List(parts)
}

/// Numbers of 64 bits go as bytes: scripts compare them by halves.
pub(crate) fn eight_bytes(number: u64) -> Bytes {
    Bytes::copy_from_slice(&number.to_be_bytes())
}

fn from_eight(bytes: &[u8]) -> Result<u64> {
    let array = bytes.try_into().map_err(|_| corrupt(format!("{} bytes instead of 8", bytes.len())))?;
    Ok(u64::from_be_bytes(array))
}

/// The same draft read back.
pub(crate) fn draft(mut from: Reply) -> Result<Draft> {
    let key = from.optional()?.map(crate::reply::key).transpose()?;
    let (kind, headers, data) = event::read_body(from.bytes()?)?;
    let mut draft = Draft::new(key, kind, data);
    draft.headers = headers;
    draft.generation = from.optional()?.map(|bytes| from_eight(&bytes)).transpose()?;
    draft.incarnation = from.optional()?.map_or(Ok(0), |bytes| from_eight(&bytes))?;
    draft.delete = from.flag()?;
    draft.delay = from.optional_list()?.map(delay).transpose()?;
    draft.priority =
        u8::try_from(from.optional_number()?.unwrap_or(0)).map_err(|_| corrupt("priority of a draft"))?;
    draft.ttl = from.optional_number()?.map(|ttl| Duration::from_micros(end_of_time(ttl)));
    draft.dedup = from.optional_list()?.map(dedup).transpose()?;
    draft.expect_prev = from.optional_number()?.map(|id| Some(EventId(id)).filter(|id| id.0 > 0));
    draft.origin_seq = from.optional_number()?;
    draft.job = from.optional_list()?.map(job_draft).transpose()?;
    Ok(draft)
}

fn delay(mut from: Reply) -> Result<Delay> {
    let mode = if from.number()? == 1 { DelayMode::Hold } else { DelayMode::Join };
    let until = match from.number()? {
        0 => StartAfter::Delay(Duration::from_micros(from.time()?)),
        _ => StartAfter::At(from.timestamp()?),
    };
    Ok(Delay { until, mode })
}

fn dedup(mut from: Reply) -> Result<Dedup> {
    Ok(Dedup { id: from.bytes()?, body: from.bits()?, window: Duration::from_micros(from.time()?) })
}

fn job_draft(mut from: Reply) -> Result<JobDraft> {
    Ok(JobDraft { responder: ProcessorId(from.small()?), keep: Duration::from_micros(from.time()?) })
}

/// A moment, from the number of its clock and itself.
pub(crate) fn due(from: &mut Reply) -> Result<Due> {
    let clock = u8::try_from(from.number()?).unwrap_or(u8::MAX);
    event::due(clock, from.number()?).ok_or_else(|| corrupt("clock of a due time"))
}

fn job_id(from: &mut Reply) -> Result<Option<JobId>> {
    let Some(bytes) = from.optional()? else { return Ok(None) };
    JobId::from_bits(bits(&bytes)?).ok_or_else(|| corrupt("a job id")).map(Some)
}

/// What became of a draft.
pub(crate) fn receipt(mut from: Reply) -> Result<Receipt> {
    Ok(match &from.bytes()?[..] {
        b"n" => Receipt::New {
            id: from.id()?,
            prev: from.optional_id()?,
            seq: Some(Seq(from.number()?)).filter(|seq| seq.0 > 0),
            job: job_id(&mut from)?,
        },
        b"d" => Receipt::Duplicate {
            first: from.optional_list()?.map(|first| receipt(first).map(Box::new)).transpose()?,
        },
        b"t" => Receipt::Stale { newest: from.id()?, generation: from_eight(&from.bytes()?)? },
        b"s" => Receipt::Scheduled {
            ticket: from.number()?,
            due: due(&mut from)?,
            due_at: from.timestamp()?,
            job: job_id(&mut from)?,
        },
        other => return Err(corrupt(format!("receipt of kind {}", other.escape_ascii()))),
    })
}

/// A receipt as `append.lua` remembers it.
pub(crate) fn receipt_arg(receipt: &Receipt) -> Result<Arg> {
    Ok(match receipt {
        Receipt::New { id, prev, seq, job } => {
            parts!["n", *id, prev.unwrap_or_default(), seq.unwrap_or_default().0, job.map(JobId::bits)]
        }
        Receipt::Scheduled { ticket, due, due_at, job } => {
            let (clock, at) = event::due_parts(*due);
            parts!["s", *ticket, clock, at, *due_at, job.map(JobId::bits)]
        }
        Receipt::Duplicate { .. } | Receipt::Stale { .. } => {
            return Err(corrupt("a remembered receipt of a draft that was not accepted"));
        }
    })
}

/// A lane's name as scripts order it: keys by their bytes, then events by number.
pub(crate) fn lane_name(lane: &LaneName) -> Bytes {
    match lane {
        LaneName::Key(key) => [b"k", key.bytes()].concat().into(),
        LaneName::Event(id) => [&b"n"[..], &id.0.to_be_bytes()].concat().into(),
    }
}

/// The lane of such a name.
pub(crate) fn lane_of(mut name: Bytes) -> Result<LaneName> {
    match name.try_get_u8() {
        Ok(b'k') => crate::reply::key(name).map(LaneName::Key),
        Ok(b'n') => from_eight(&name).map(|id| LaneName::Event(EventId(id))),
        _ => Err(corrupt("the name of a lane")),
    }
}

/// A lane record as `laned.lua` reads it.
pub(crate) fn lane_arg(record: &LaneRecord) -> Arg {
    let block = record.block.as_ref();
    let kind = block.map_or(0, |block| 1 + block.kind() as u8);
    let (clock, at) = match block.and_then(laneway_core::Block::due) {
        Some(due) => {
            let (clock, at) = event::due_parts(due);
            (clock, Arg::from(at))
        }
        None => (0, Arg::Below),
    };
    parts![
        kind,
        clock,
        at,
        record.head.unwrap_or_default(),
        record.ahead.unwrap_or_default(),
        wire::store(record)
    ]
}

/// A seat as `seat_view` tells of it, with its highest request number.
pub(crate) struct SeatRow {
    pub(crate) progress: Progress,
    /// The owner before the present one ended in good order.
    pub(crate) was_clean: bool,
    pub(crate) request_no: u64,
}

pub(crate) fn seat(mut from: Reply) -> Result<SeatRow> {
    let fence = Fence {
        term: Term(from.number()?),
        nonce: Nonce(from.bits()?),
        version: from.number()?,
        adoptions: from.small()?,
    };
    let node = from.bytes()?;
    let (was_clean, clean) = (from.flag()?, from.flag()?);
    let request_no = from.number()?;
    let (requests_applied, emitted, forwarded) = (from.number()?, from.number()?, from.number()?);
    let (status, note) = (status(from.number()?)?, from.bytes()?);
    let incarnation = from.small()?;
    let mut window = Window::at(from.id()?);
    let mut passed = Passed::default();
    for (word, bits) in from.list()?.each(|pair| Ok((pair.number()?, from_eight(&pair.bytes()?)?)))? {
        passed.insert_word(word, bits);
    }
    window.pass(&passed, &[]);
    let progress = Progress {
        fence,
        node,
        window,
        clean,
        requests_applied,
        emitted,
        forwarded,
        status,
        note,
        incarnation,
    };
    Ok(SeatRow { progress, was_clean, request_no })
}

fn status(code: u64) -> Result<SeatStatus> {
    match code {
        0 => Ok(SeatStatus::Run),
        1 => Ok(SeatStatus::Paused),
        2 => Ok(SeatStatus::Halted),
        other => Err(corrupt(format!("status {other} of a seat"))),
    }
}

pub(crate) fn status_code(status: SeatStatus) -> u8 {
    match status {
        SeatStatus::Run => 0,
        SeatStatus::Paused => 1,
        SeatStatus::Halted => 2,
    }
}

/// The shard as `shard_view` tells of it.
pub(crate) fn shard(mut from: Reply) -> Result<ShardInfo> {
    Ok(ShardInfo {
        incarnation: Incarnation(from.bits()?),
        adoptions: from.small()?,
        layout: from.small()?,
        sealed: from.flag()?,
        first_id: from.id()?,
        first_term: Term(from.number()?),
        head: from.id()?,
        scheduled: from.number()?,
        trimmed: from.id()?,
        time: from.timestamp()?,
        gaps: gaps(&mut from)?,
    })
}

/// Ids that were never given, as both `shard_view` and `seize.lua` tell them.
pub(crate) fn gaps(from: &mut Reply) -> Result<Vec<Gap>> {
    from.list()?.each(|gaps| {
        let mut gap = gaps.list()?;
        Ok((gap.id()?, gap.id()?))
    })
}

/// A value with its version: the version (6), the bytes.
pub(crate) fn versioned(mut row: Bytes) -> Result<Versioned> {
    let version = row.try_get_uint(6).map_err(|_| corrupt("a lane's state"))?;
    Ok(Versioned { version, bytes: row })
}

pub(crate) fn versioned_row(value: &Versioned) -> Bytes {
    let mut out = Vec::with_capacity(6 + value.bytes.len());
    out.put_uint(value.version, 6);
    out.put_slice(&value.bytes);
    out.into()
}

/// An object: the version (6), whether there is a value, the bytes.
pub(crate) fn object(mut row: Bytes) -> Result<(u64, Option<Bytes>)> {
    let mut read = || Some((row.try_get_uint(6).ok()?, row.try_get_u8().ok()? == 1));
    let (version, there) = read().ok_or_else(|| corrupt("an object"))?;
    Ok((version, there.then_some(row)))
}

pub(crate) fn object_row(version: u64, value: Option<&Bytes>) -> Bytes {
    let mut out = Vec::new();
    out.put_uint(version, 6);
    out.put_u8(u8::from(value.is_some()));
    out.put_slice(value.map_or(&[], |value| &value[..]));
    out.into()
}

/// The end of a lane: id (6), seq (6), flags; where they say so generation and incarnation (8 each).
pub(crate) fn tail(row: &[u8], object_row: Option<Bytes>) -> Result<TailView> {
    let mut from = row;
    let mut read = || {
        let (id, seq) = (from.try_get_uint(6).ok()?, from.try_get_uint(6).ok()?);
        let flags = from.try_get_u8().ok()?;
        let long = flags & 4 != 0;
        let (generation, incarnation) =
            if long { (from.try_get_u64().ok()?, from.try_get_u64().ok()?) } else { (0, 0) };
        Some(TailView {
            id: EventId(id),
            seq: Seq(seq),
            generation: (flags & 1 != 0).then_some(generation),
            incarnation,
            deleted: flags & 2 != 0,
            object: None,
        })
    };
    let mut tail = read().ok_or_else(|| corrupt("the end of a lane"))?;
    if let Some(row) = object_row {
        let (version, value) = object(row)?;
        tail.object = value.map(|bytes| Versioned { version, bytes });
    }
    Ok(tail)
}

pub(crate) fn tail_row(tail: &TailView) -> Bytes {
    let mut out = Vec::new();
    let long = tail.generation.is_some() || tail.incarnation != 0;
    out.put_uint(tail.id.0, 6);
    out.put_uint(tail.seq.0, 6);
    out.put_u8(u8::from(tail.generation.is_some()) | u8::from(tail.deleted) << 1 | u8::from(long) << 2);
    if long {
        out.put_u64(tail.generation.unwrap_or(0));
        out.put_u64(tail.incarnation);
    }
    out.into()
}

/// The end of a job as it is stored under its event.
pub(crate) fn end(id: EventId, mut from: Reply) -> Result<EndRow> {
    from.time()?; // until when it was kept at first
    let keep_until = from.timestamp()?;
    let finished_at = from.timestamp()?;
    let (kind, result, chunks) = (from.number()?, from.bytes()?, from.small()?);
    let EndRest { end, error, attempts, started_at, keep } = wire::load(from.bytes()?)?;
    let result = match kind {
        0 => JobResult::None,
        1 => JobResult::Inline(result),
        _ => JobResult::Stashed { nonce: Nonce(bits(&result)?), chunks },
    };
    Ok(EndRow { end: JobEnd { id, end, error, attempts, started_at, finished_at, result, keep }, keep_until })
}

/// The parts of an end that a commit hands in: kind of result, result or nonce, chunks, the rest.
pub(crate) fn end_parts(end: &JobEnd) -> [Arg; 4] {
    let (kind, result, chunks) = match &end.result {
        JobResult::None => (0u8, Bytes::new(), 0),
        JobResult::Inline(bytes) => (1, bytes.clone(), 0),
        JobResult::Stashed { nonce, chunks } => (2, Bytes::copy_from_slice(&nonce.0.to_be_bytes()), *chunks),
    };
    let rest = EndRest {
        end: end.end,
        error: end.error.clone(),
        attempts: end.attempts,
        started_at: end.started_at,
        keep: end.keep,
    };
    [kind.into(), result.into(), chunks.into(), wire::store(&rest).into()]
}

/// The end of a job that never joined its lane, from its ticket's row.
pub(crate) fn never_joined(mut from: Reply) -> Result<EndRow> {
    from.number()?; // which kind of row
    end_of_ticket(&mut from)
}

/// End, reason, finished at, keep, kept until.
fn end_of_ticket(from: &mut Reply) -> Result<EndRow> {
    let code = usize::try_from(from.number()?).unwrap_or(usize::MAX);
    let end = Terminal::ALL.get(code).copied().ok_or_else(|| corrupt("the end of a scheduled job"))?;
    let error = from.bytes()?;
    let finished_at = from.timestamp()?;
    let keep = Duration::from_micros(from.time()?);
    let keep_until = from.timestamp()?;
    let end = JobEnd {
        id: EventId(0),
        end,
        error,
        attempts: 0,
        started_at: None,
        finished_at,
        result: JobResult::None,
        keep,
    };
    Ok(EndRow { end, keep_until })
}

/// What became of a ticket. Rows of before that was kept do not say when it was accepted.
pub(crate) fn ticket(ticket: u64, mut from: Reply) -> Result<TicketRow> {
    if from.number()? == 1 {
        return Ok(TicketRow { ticket, accepted_at: None, became: Ticketed::Joined(from.id()?) });
    }
    let became = Ticketed::Ended(Box::new(end_of_ticket(&mut from)?));
    let accepted_at = if from.is_empty() { None } else { Some(from.timestamp()?) };
    Ok(TicketRow { ticket, accepted_at, became })
}

pub(crate) fn ticket_arg(found: &TicketRow) -> Arg {
    match &found.became {
        Ticketed::Joined(id) => parts![1u8, *id],
        Ticketed::Ended(row) => {
            let end = &row.end;
            let mut parts = vec![
                Arg::from(2u8),
                (end.end as u8).into(),
                end.error.clone().into(),
                end.finished_at.into(),
                end.keep.into(),
                row.keep_until.into(),
            ];
            parts.extend(found.accepted_at.map(Arg::from));
            Arg::List(parts)
        }
    }
}

/// A dead letter: when (8), the rest.
pub(crate) fn dead(id: EventId, mut row: Bytes) -> Result<DeadLetter> {
    let at = Timestamp(row.try_get_u64().map_err(|_| corrupt(format!("dead letter {id}")))?);
    let DeadRest { event, cause, attempts } = wire::load(row)?;
    Ok(DeadLetter { event: event::read(id, event)?, cause, attempts, at })
}

pub(crate) fn dead_rest(dead: &DeadLetter) -> Bytes {
    let rest = DeadRest {
        event: event::write(&dead.event).into(),
        cause: dead.cause.clone(),
        attempts: dead.attempts,
    };
    wire::store(&rest)
}

/// A source's name: of an outbox, or as given.
pub(crate) fn source_name(source: &Source) -> Bytes {
    match source {
        Source::Outbox { shard, processor, incarnation, adoptions } => {
            let mut out = vec![b'o'];
            for number in [shard.stream.0, shard.partition.0, processor.0, *incarnation, *adoptions] {
                out.put_u32(number);
            }
            out.into()
        }
        Source::Named(name) => [b"n", &name[..]].concat().into(),
    }
}

pub(crate) fn source_of(mut name: Bytes) -> Result<Source> {
    let outbox = |name: &mut Bytes| {
        let mut next = || name.try_get_u32().ok();
        Some(Source::Outbox {
            shard: Shard { stream: StreamId(next()?), partition: Partition(next()?) },
            processor: ProcessorId(next()?),
            incarnation: next()?,
            adoptions: next()?,
        })
    };
    match name.try_get_u8() {
        Ok(b'o') => outbox(&mut name).ok_or_else(|| corrupt("the name of an outbox")),
        Ok(b'n') => Ok(Source::Named(name)),
        _ => Err(corrupt("the name of a source")),
    }
}

/// A dedup name: of a lane or of the whole shard, then the producer's.
pub(crate) fn dedup_name(key: Option<&Key>, id: &[u8]) -> Bytes {
    let mut out = Vec::new();
    match key {
        Some(key) => {
            out.put_u8(1);
            out.put_u16(u16::try_from(key.bytes().len()).expect("a key has at most 512 bytes"));
            out.put_slice(key.bytes());
        }
        None => out.put_u8(0),
    }
    out.put_slice(id);
    out.into()
}

pub(crate) fn dedup_name_of(mut name: Bytes) -> Result<(Option<Key>, Bytes)> {
    let mut key = None;
    if name.try_get_u8().map_err(|_| corrupt("a dedup name"))? == 1 {
        let len = usize::from(name.try_get_u16().map_err(|_| corrupt("a dedup name"))?);
        if len > name.len() {
            return Err(corrupt("a dedup name"));
        }
        key = Some(crate::reply::key(name.split_to(len))?);
    }
    Ok((key, name))
}
