//! The methods of the seam, each a call of its script.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use laneway_core::limits::{CAUSE_BYTES_MAX, CHUNK_KEEP, HOLD_MAX, PAGE_MAX, RESULT_BYTES_MAX, TOKEN_KEEP};
use laneway_core::store::{
    About, Accepted, Append, Appended, Commit, Committed, Define, Defined, Entry, JobState, JobView, Jobs,
    LaneChange, LaneSelect, LaneView, Lanes, ObjectWrite, Page, Promote, Promoted, Query, Read, ReadFrom,
    Request, Resume, Rows, Seize, Source, Stash, Trim, Trimmed,
};
use laneway_core::{
    ClockReport, Draft, EventId, Fence, JobNumber, LaneRecord, Nonce, Refusal, Result, Shard, Store,
    StoreError, Term, Terminal, Topic,
};

use crate::pack::{ABSENT, Arg, NUMBER_END, named, parts};
use crate::reply::{Reply, corrupt};
use crate::store::RedisStore;
use crate::wakeups::topic_bytes;
use crate::{event, plain, rows, wire};

/// Sources that producers name anew for each of their runs; one that was silent for so long is let go.
const FLEETING: &[u8] = b"nproducer/";
const SILENCE: Duration = Duration::from_secs(24 * 60 * 60);

#[async_trait]
impl Store for RedisStore {
    fn clock_report(&self) -> Option<ClockReport> {
        self.clock().report()
    }

    fn about(&self) -> About {
        let (capabilities, incarnation) = self.server();
        About { capabilities, incarnation }
    }

    async fn define(&self, define: Define) -> Result<Defined> {
        self.change_definition(define).await
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        append.check()?;
        let shard = append.shard;
        let call = append_call(&append)?;
        let mut reply = self.on_seats(&self.scripts().append, shard, &call).await?;
        let receipts = match reply.value()? {
            redis::Value::BulkString(plain) => plain::receipts(&plain)?,
            any => Reply::of(any)?.each(|receipts| rows::receipt(receipts.list()?))?,
        };
        let object_version = Some(reply.number()?).filter(|version| *version > 0);
        let (durability, dedup_evicted) = (self.server().0.durability, reply.number()?);
        Ok(Appended { receipts, durability, object_version, dedup_evicted })
    }

    async fn promote(&self, promote: Promote) -> Result<Promoted> {
        let shard = promote.shard;
        let call = place(shard).with("limit", promote.limit).with("topic", topic_bytes(Topic::Shard(shard)));
        let mut reply = self.on_shard(&self.scripts().promote, shard, &call).await?;
        let moved = usize::try_from(reply.number()?).unwrap_or(usize::MAX);
        Ok(Promoted { moved, next: length(&mut reply)? })
    }

    async fn read(&self, read: Read) -> Result<Page> {
        if read.states && read.processor.is_none() {
            return Err(Refusal::new("states", "true", "false without a processor").into());
        }
        let (ids, from) = match &read.from {
            ReadFrom::After(id) => (ABSENT, Arg::from(*id)),
            ReadFrom::Ids(ids) => {
                Refusal::check_max("ids", ids.len(), PAGE_MAX)?;
                if !ids.is_sorted() {
                    return Err(Refusal::new("ids", "not in order", "ascending").into());
                }
                (Arg::list(ids.iter().copied()), ABSENT)
            }
        };
        let call = named! {
            ids: ids, from: from, limit: read.limit, bytes: read.bytes,
            processor: read.processor.is_some(), states: read.states,
        };
        let script = &self.scripts().read;
        let reply = match read.processor {
            Some(processor) => {
                self.on_seat(script, laneway_core::Seat { shard: read.shard, processor }, &call).await?
            }
            None => self.on_shard(script, read.shard, &call).await?,
        };
        page(reply)
    }

    async fn seize(&self, seize: Seize) -> Result<Resume> {
        Refusal::check_max("node bytes", seize.node.len(), CAUSE_BYTES_MAX)?;
        let expect = seize.expect.map(|owner| parts![owner.term.0, owner.nonce.0]);
        let call =
            named! { inc: seize.incarnation.0, expect: expect, nonce: seize.nonce.0, node: seize.node };
        let mut reply = self.on_seat(&self.scripts().seize, seize.seat, &call).await?;
        let mut seat = rows::seat(reply.list()?)?;
        seat.progress.clean = seat.was_clean;
        Ok(Resume {
            progress: seat.progress,
            head: reply.id()?,
            gaps: rows::gaps(&mut reply)?,
            request_no: seat.request_no,
        })
    }

    async fn lanes(&self, lanes: Lanes) -> Result<Vec<LaneView>> {
        let call = lanes_call(&lanes)?;
        let mut reply = self.on_seat(&self.scripts().lanes, lanes.seat, &call).await?;
        reply.list()?.each(|views| {
            let mut view = views.list()?;
            let name = view.bytes()?;
            let record = match view.optional()? {
                Some(record) => wire::load(record)?,
                None => LaneRecord::new(rows::lane_of(name)?),
            };
            let state = view.optional()?.map(rows::versioned).transpose()?;
            Ok(LaneView { record, state, siding: view.list()?.each(Reply::id)? })
        })
    }

    async fn commit(&self, commit: Commit) -> Result<Committed> {
        let seat = commit.seat;
        let call = commit_call(&commit)?;
        let mut reply = self.on_seat(&self.scripts().commit, seat, &call).await?;
        Ok(Committed {
            fence: Fence {
                term: Term(reply.number()?),
                nonce: Nonce(reply.bits()?),
                version: reply.number()?,
                adoptions: reply.small()?,
            },
            floor: reply.id()?,
            request_no: reply.number()?,
            emitted: reply.number()?,
        })
    }

    async fn request(&self, request: Request) -> Result<Accepted> {
        request.check()?;
        let topic = topic_bytes(Topic::Seat(request.seat));
        let call = named! { token: request.token.0, op: wire::store(&request.op), topic: topic };
        let mut reply = self.on_seat(&self.scripts().request, request.seat, &call).await?;
        Ok(Accepted { number: reply.number()?, repeated: reply.flag()? })
    }

    async fn jobs(&self, jobs: Jobs) -> Result<Vec<JobView>> {
        let (shard, numbers, call) = jobs_call(jobs)?;
        let mut reply = self.on_seats(&self.scripts().jobs, shard, &call).await?;
        let states = reply.list()?.each(|views| job_state(views.list()?))?;
        Ok(numbers.into_iter().zip(states).map(|(number, state)| JobView { number, state }).collect())
    }

    async fn stash(&self, stash: Stash) -> Result<()> {
        let call = named! {
            id: stash.id, nonce: stash.nonce.0, index: stash.index, bytes: stash.bytes.clone(), keep: CHUNK_KEEP,
        };
        stash.check()?;
        self.on_shard(&self.scripts().stash, stash.shard, &call).await?;
        Ok(())
    }

    async fn query(&self, query: Query) -> Result<Rows> {
        self.list(query).await
    }

    async fn trim(&self, trim: Trim) -> Result<Trimmed> {
        let call = named! { fleeting: Bytes::from_static(FLEETING), silence: SILENCE };
        let mut reply = self.on_seats(&self.scripts().trim, trim.shard, &call).await?;
        Ok(Trimmed {
            first: reply.id()?,
            events: reply.number()?,
            expired: reply.number()?,
            rows: reply.number()?,
            more: reply.flag()?,
        })
    }
}

/// A call that makes job ids, which carry the shard's place.
fn place(shard: Shard) -> Arg {
    named! { stream: shard.stream.0, partition: shard.partition.0 }
}

/// The number of the first draft, where each has one more than the one before: they need not say it one by one. Those
/// that are delayed do, because the schedule keeps them as they came.
fn first_number(drafts: &[Draft]) -> Option<u64> {
    let first = drafts.first()?.origin_seq?;
    let is_next = |(number, draft): (u64, &Draft)| draft.origin_seq == Some(number) && draft.delay.is_none();
    (first..).zip(drafts).all(is_next).then_some(first)
}

fn append_call(append: &Append) -> Result<Arg> {
    let origin = append.origin.as_ref();
    let highest = append.drafts.iter().filter_map(|draft| draft.origin_seq).max().unwrap_or(0);
    for (field, number) in
        [("origin_seq", highest), ("term of the origin", origin.map_or(0, |origin| origin.term.0))]
    {
        if number >= NUMBER_END {
            return Err(
                Refusal::new(field, number.to_string(), format!("below {NUMBER_END} on Redis")).into()
            );
        }
    }
    let first_number = first_number(&append.drafts);
    let drafts = &append.drafts;
    let says_own = |draft: &Draft| draft.origin_seq.filter(|_| first_number.is_none());
    let are_plain =
        !drafts.is_empty() && drafts.iter().all(|draft| plain::is_plain(draft) && says_own(draft).is_none());
    let drafts = if are_plain {
        Vec::from(plain::call(drafts))
    } else {
        vec![("drafts", Arg::list(drafts.iter().map(|draft| rows::draft_arg(draft, says_own(draft)))))]
    };
    let from_outbox = origin.is_some_and(|origin| matches!(origin.source, Source::Outbox { .. }));
    let object = append
        .object
        .as_ref()
        .map(|ObjectWrite { expect, value }| parts![expect.map_or(Arg::Below, Arg::from), value.clone()]);
    Ok(place(append.shard)
        .with("inc", append.incarnation.0)
        .with("layout", append.layout)
        .with("source", origin.map(|origin| rows::source_name(&origin.source)))
        .with("term", origin.map_or(0, |origin| origin.term.0))
        .with("from_outbox", from_outbox)
        .with("first_number", first_number)
        .with_all(drafts)
        .with("object", object)
        .with("hold_max", HOLD_MAX)
        .with("topic", topic_bytes(Topic::Shard(append.shard))))
}

fn length(reply: &mut Reply) -> Result<Option<Duration>> {
    Ok(reply.not_below()?.map(Duration::from_micros))
}

fn page(mut reply: Reply) -> Result<Page> {
    let entries = reply.list()?.each(|entries| {
        let id = entries.log_id()?;
        let mut entry = match entries.value()? {
            redis::Value::BulkString(bytes) => return event::read(id, bytes.into()).map(Entry::Event),
            superseded => Reply::of(superseded)?,
        };
        let (winner, key) = (entry.id()?, entry.key()?);
        let job = entry.optional()?;
        let job = job.map(|job| event::read_job(&job).ok_or_else(|| corrupt(format!("job of event {id}"))));
        Ok(Entry::Superseded { id, winner, key, job: job.transpose()? })
    })?;
    let (head, request_no, next_due) = (reply.id()?, reply.number()?, length(&mut reply)?);
    let mut states = reply.list()?.each(|pair| Ok((pair.key()?, rows::versioned(pair.bytes()?)?)))?;
    states.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(Page { entries, head, request_no, next_due, states })
}

fn lanes_call(lanes: &Lanes) -> Result<Arg> {
    let call = named! { siding: lanes.siding, states: lanes.states };
    Ok(match &lanes.select {
        LaneSelect::Names(names) => {
            Refusal::check_max("lanes", names.len(), PAGE_MAX)?;
            call.with("names", Arg::list(names.iter().map(rows::lane_name)))
        }
        LaneSelect::Due { within, limit } => {
            call.with("within", *within).with("limit", (*limit).min(PAGE_MAX))
        }
        LaneSelect::Blocked { kind, after, limit } => call
            .with("kind", kind.map(|kind| 1 + kind as u8))
            .with("from", after.as_ref().map(rows::lane_name))
            .with("limit", (*limit).min(PAGE_MAX)),
    })
}

fn lane_change(change: &LaneChange) -> Result<Arg> {
    change.check_record()?;
    Ok(parts![
        rows::lane_name(&change.lane),
        change.record.as_ref().map(rows::lane_arg),
        Arg::list(change.side.iter().copied()),
        Arg::list(change.unside.iter().copied()),
    ])
}

fn commit_call(commit: &Commit) -> Result<Arg> {
    commit.check_sizes()?;
    if let Some(ending) = commit.endings.iter().find(|ending| ending.end == Terminal::Done) {
        let limit = "another end than done, of an event that is passed or in a siding";
        return Err(Refusal::new("endings", format!("{} of event {}", ending.end, ending.id), limit).into());
    }
    let fence = commit.fence;
    let words = commit.passed.words().iter().map(|(word, bits)| parts![*word, rows::eight_bytes(*bits)]);
    let jobs = commit.jobs.iter().map(|end| {
        let [kind, result, chunks, rest] = rows::end_parts(end);
        parts![end.id, end.keep, kind, result, chunks, rest]
    });
    let lanes = commit.lanes.iter().map(lane_change).collect::<Result<Vec<Arg>>>()?;
    let reset = commit.reset.map(|reset| {
        let (kind, value) = start(reset.start);
        parts![kind, value, reset.clear_states]
    });
    Ok(named! {
        processor: commit.seat.processor.0,
        fence: parts![fence.term.0, fence.nonce.0, fence.version, fence.adoptions],
        id: commit.id.0,
        passed: Arg::list(words),
        last: commit.passed.last().unwrap_or_default(),
        endings: Arg::list(commit.endings.iter().map(|ending| parts![ending.id, wire::store(ending)])),
        lanes: Arg::List(lanes),
        states: Arg::list(commit.states.iter().map(|state| parts![state.key.to_bytes(), state.value.clone()])),
        dead: Arg::list(commit.dead.iter().map(|dead| parts![dead.event.id, rows::dead_rest(dead)])),
        revived: Arg::list(commit.revived.iter().copied()),
        emits: Arg::list(commit.emits.iter().map(wire::store)),
        forwarded: commit.forwarded,
        requests_applied: commit.requests_applied,
        answers: Arg::list(commit.answers.iter().map(|found| parts![found.number, found.answer.clone()])),
        jobs: Arg::list(jobs),
        status: commit.status.map(rows::status_code),
        note: commit.note.clone(),
        clean: commit.clean,
        reset: reset,
        token_keep: TOKEN_KEEP,
        result_max: RESULT_BYTES_MAX,
    })
}

/// Where to begin, as `start_floor` takes it.
pub(crate) fn start(start: laneway_core::StartAt) -> (u8, u64) {
    match start {
        laneway_core::StartAt::Beginning => (0, 0),
        laneway_core::StartAt::End => (1, 0),
        laneway_core::StartAt::Id(id) => (2, id.0),
        laneway_core::StartAt::Time(time) => (3, time.0),
    }
}

fn number_arg(number: JobNumber) -> Arg {
    match number {
        JobNumber::Event(id) => parts![0u8, id],
        JobNumber::Schedule(ticket) => parts![1u8, ticket],
    }
}

fn jobs_call(jobs: Jobs) -> Result<(Shard, Vec<JobNumber>, Arg)> {
    Ok(match jobs {
        Jobs::Get { shard, numbers, results } => {
            Refusal::check_max("jobs", numbers.len(), PAGE_MAX)?;
            let get = Arg::list(numbers.iter().copied().map(number_arg));
            (shard, numbers, place(shard).with("get", get).with("results", results))
        }
        Jobs::Take { shard, number, grace } => {
            (shard, vec![number], place(shard).with("take", number_arg(number)).with("grace", grace))
        }
        Jobs::Forget { shard, number } => {
            (shard, vec![number], place(shard).with("forget", number_arg(number)))
        }
        Jobs::CancelScheduled { shard, ticket } => {
            (shard, vec![JobNumber::Schedule(ticket)], place(shard).with("cancel", ticket))
        }
    })
}

fn job_state(mut from: Reply) -> Result<JobState> {
    Ok(match &from.bytes()?[..] {
        b"unknown" => JobState::Unknown,
        b"gone" => JobState::Gone,
        b"scheduled" => JobState::Scheduled { due: rows::due(&mut from)? },
        b"pending" => JobState::Pending {
            id: from.id()?,
            key: from.optional()?.map(crate::reply::key).transpose()?,
            lane: from.optional()?.map(wire::load).transpose()?,
        },
        b"ended" => {
            let id: EventId = from.id()?;
            let row = rows::end(id, from.list()?)?;
            let result = match from.optional_list()? {
                Some(chunks) => Some(chunks.each(Reply::bytes)?.concat().into()),
                None => None,
            };
            JobState::Ended { end: Box::new(row.end), result, keep_until: row.keep_until }
        }
        b"never" => {
            from.number()?;
            let row = rows::never_joined(from.list()?)?;
            JobState::Ended { end: Box::new(row.end), result: None, keep_until: row.keep_until }
        }
        other => return Err(StoreError::Corrupt { what: format!("job {}", other.escape_ascii()) }),
    })
}
