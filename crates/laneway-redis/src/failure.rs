//! What a script answers instead of doing its work, as the errors of the seam.

use laneway_core::limits::NUMBER_MAX;
use laneway_core::{
    Conflict, ConflictReason, EventId, FullReason, Incarnation, ProcessorId, Refusal, Result, Seat, Shard,
    StoreError, Term,
};

use crate::reply::{Reply, corrupt};

/// What a call is about, for its errors.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subject {
    Store,
    Stream(laneway_core::StreamId),
    Processor(ProcessorId),
    Shard(Shard),
    Seat(Seat),
}

impl Subject {
    fn shard(self) -> Result<Shard> {
        match self {
            Self::Shard(shard) => Ok(shard),
            Self::Seat(seat) => Ok(seat.shard),
            other => Err(corrupt(format!("an answer about a shard to a call about {other:?}"))),
        }
    }
}

/// Why a script did nothing.
pub(crate) enum Failure {
    /// It must be called with the keys of these seats: the shard's definition is of this version.
    Learn { def: u64, processors: Vec<ProcessorId> },
    /// The shard or seat is not there, or not yet.
    Missing(StoreError),
    /// The server's clock reads another time than it should.
    Clock,
    /// The answer for the caller.
    Final(StoreError),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Final(error)
    }
}

/// The answer of a script: what it did, or why not.
pub(crate) fn judge(mut reply: Reply, subject: Subject, current: Incarnation) -> Result<Reply, Failure> {
    let error = match &reply.bytes()?[..] {
        b"ok" => return Ok(reply),
        b"learn" => {
            let def = reply.number()?;
            let processors = reply.list()?.each(|ids| ids.small().map(ProcessorId))?;
            return Err(Failure::Learn { def, processors });
        }
        b"clock" => return Err(Failure::Clock),
        b"missing" => return Err(Failure::Missing(missing(&reply.text()?, subject))),
        b"refused" => refusal(&mut reply)?.into(),
        b"importing" => {
            Refusal::new("shard", subject.shard()?.to_string(), "one whose import has finished").into()
        }
        b"not_importing" => {
            let limit = "one whose import has begun and has not finished";
            Refusal::new("shard", subject.shard()?.to_string(), limit).into()
        }
        b"adopt" => StoreError::Adopt { shard: subject.shard()?, stored: reply.bits()?, current },
        b"moved" => StoreError::Moved { shard: subject.shard()?, layout: reply.small()? },
        b"fenced" => match subject {
            Subject::Seat(seat) => StoreError::Fenced { seat, current: Term(reply.number()?) },
            other => corrupt(format!("a fence in a call about {other:?}")),
        },
        b"conflict" => conflict(&mut reply)?,
        b"trimmed" => StoreError::Trimmed { shard: subject.shard()?, first: reply.id()? },
        b"pending" => {
            StoreError::Full(FullReason::Pending { pending: reply.number()?, limit: reply.number()? })
        }
        b"used_up" => {
            let shard = subject.shard()?;
            let reason = format!("shard {shard} has given all {NUMBER_MAX} ids it can: use another stream");
            StoreError::Full(FullReason::Store { reason })
        }
        b"corrupt" => corrupt(reply.words()?),
        other => corrupt(format!("answer {}", other.escape_ascii())),
    };
    Err(Failure::Final(error))
}

fn missing(what: &str, subject: Subject) -> StoreError {
    let what = match (what, subject) {
        (_, Subject::Stream(stream)) => format!("stream {stream}"),
        (_, Subject::Processor(processor)) => format!("processor {processor}"),
        ("seat", Subject::Seat(seat)) => format!("seat {seat}"),
        (_, Subject::Seat(seat)) => format!("shard {}", seat.shard),
        (_, Subject::Shard(shard)) => format!("shard {shard}"),
        (what, Subject::Store) => what.to_owned(),
    };
    StoreError::NotFound { what }
}

fn conflict(reply: &mut Reply) -> Result<StoreError> {
    let index = reply.not_below()?.map(|index| usize::try_from(index).unwrap_or(usize::MAX));
    let reason = match &reply.bytes()?[..] {
        b"body" => ConflictReason::DedupBody { first: reply.optional_id()? },
        b"prev" => ConflictReason::Prev { actual: reply.optional_id()? },
        b"object" => ConflictReason::ObjectVersion { actual: reply.number()? },
        b"version" => {
            ConflictReason::Version { actual: reply.optional_id()?.map(|EventId(version)| version) }
        }
        b"term" => ConflictReason::OriginTerm { actual: Term(reply.number()?) },
        b"due" => ConflictReason::AlreadyDue,
        b"unfinished" => ConflictReason::Unfinished,
        other => return Err(corrupt(format!("conflict of kind {}", other.escape_ascii()))),
    };
    Ok(StoreError::Conflict(Conflict { index, reason }))
}

/// The fields that scripts refuse; a refusal names one of the program's own words.
const FIELDS: [&str; 30] = [
    "key",
    "responder",
    "run_at",
    "events of the call in one partition",
    "passed",
    "endings",
    "jobs",
    "result",
    "result bytes",
    "lanes",
    "ahead",
    "side",
    "unside",
    "record",
    "forwarded",
    "requests_applied",
    "answers",
    "id",
    "floor",
    "id of an event",
    "head",
    "streams ever created",
    "processors ever registered",
    "partitions",
    "mode",
    "name of a processor",
    "number of the stream",
    "number of the processor",
    "name of the stream",
    "name of the processor",
];

fn refusal(reply: &mut Reply) -> Result<Refusal> {
    let field = reply.text()?;
    let known = FIELDS.iter().find(|known| **known == field);
    let known = known.ok_or_else(|| corrupt(format!("a refusal of {field}")))?;
    Ok(Refusal::new(known, reply.words()?, reply.words()?))
}
