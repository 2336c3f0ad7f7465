//! Lists of jobs over what is indexed (contract 3.22): scheduled, retrying, parked and ended ones; what waits or runs is
//! found in sidings and in the log above the floor, while it moves, so such a list is marked as partial.
//!
//! A list goes through places one after the other: per partition its schedule, its lanes, its log, its ends. A cursor
//! says in which place to go on, and behind what. One call looks at a bounded number of candidates, so a page may be
//! shorter than asked for, or empty, and still have a next one.

use std::sync::Arc;

use bytes::Bytes;
use laneway_core::store::{Entry, LaneSelect, Lanes, Query, Read, ReadFrom, Rows, SeatView, Ticketed};
use laneway_core::{
    BlockKind, EventId, JobId, JobNumber, Key, LaneName, Partition, ProcessorId, Refusal, Seat, Shard,
    Status, StoreError, StreamInfo, Terminal, Timestamp,
};

use super::batch::BatchId;
use super::error::JobError;
use super::jobs::{Jobs, Results};
use super::status::Detail;
use super::text::{Reader, Writer};
use crate::log::events_of;

const VERSION: u8 = 1;
/// Most jobs of one page.
const LIMIT_MAX: usize = 1_000;
/// Candidates looked at in one go, and in one call.
const CHUNK: usize = 256;
const EXAMINED_MAX: usize = 10_000;

/// Which jobs to list. What is absent does not matter.
///
/// ```
/// use laneway_core::Status;
/// use laneway_engine::job::ListJobs;
/// let parked = ListJobs { stream: Some("orders".into()), status: Some(Status::Parked), ..ListJobs::default() };
/// assert_eq!(parked.limit, 100);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListJobs {
    /// Of this stream. Default: of all.
    pub stream: Option<String>,
    /// Of this lane; looks into one partition per stream. Default: of all.
    pub key: Option<Key>,
    /// Of this type, with `*` for any ending. Default: of all.
    pub kind: Option<String>,
    /// In this status. Default: in any.
    pub status: Option<Status>,
    /// Accepted at this time or later. Default: at any.
    pub since: Option<Timestamp>,
    /// Of this batch. Default: of any.
    pub batch: Option<BatchId>,
    /// Where to go on: what the page before said, with the same filter. Default: from the beginning.
    pub cursor: Option<String>,
    /// How many at most, 1 to 1,000. Default: 100.
    pub limit: usize,
}

impl Default for ListJobs {
    fn default() -> Self {
        Self {
            stream: None,
            key: None,
            kind: None,
            status: None,
            since: None,
            batch: None,
            cursor: None,
            limit: 100,
        }
    }
}

/// A page of jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The jobs, without their results.
    pub items: Vec<Detail>,
    /// The cursor of the next page; nothing when this is the last.
    pub next: Option<String>,
    /// It was gathered from what moves meanwhile: a job that waits or runs may be missing or shown twice.
    pub partial: bool,
}

/// Whose word counts for where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// The store's, which learns of a run only after a while.
    Stored,
    /// The owner's, who is asked later: whatever may turn out to be what is wanted is listed.
    Owners,
}

impl Word {
    fn may_be(self, stored: Status, wanted: Status) -> bool {
        let moves = |status| matches!(status, Status::Waiting | Status::Running | Status::Retrying);
        stored == wanted || self == Self::Owners && moves(stored) && moves(wanted)
    }
}

/// A kind of place where jobs are found, in the order in which they are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Batch,
    Scheduled,
    Retrying,
    Parked,
    Sided,
    Log,
    Ended,
    Tickets,
}

const FOUND: [Found; 8] = [
    Found::Batch,
    Found::Scheduled,
    Found::Retrying,
    Found::Parked,
    Found::Sided,
    Found::Log,
    Found::Ended,
    Found::Tickets,
];

/// One place to look at. The order of the fields is the order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    shard: Shard,
    found: Found,
    processor: ProcessorId,
}

/// How far a place was looked through: a number, or the name of a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
enum After {
    Number(u64),
    Lane(LaneName),
}

/// Jobs that may be wanted, each with how far one is after it.
struct Chunk {
    jobs: Vec<(JobId, After)>,
    examined: usize,
    /// How far one is after all of it; nothing when the place is at its end.
    last: Option<After>,
}

impl Jobs {
    /// Lists jobs by stream, partition and place: what waits first, then what has ended.
    ///
    /// A job whose event went by retention is listed under an id that names the same job with the time of its end.
    ///
    /// # Errors
    /// When the limit is out of range, the stream does not exist, or the cursor belongs to another list.
    pub async fn list(&self, wanted: &ListJobs) -> Result<Listed, JobError> {
        self.list_by(wanted, Word::Stored).await
    }

    /// The same, for somebody who asks the owners afterwards what runs.
    pub(crate) async fn list_by(&self, wanted: &ListJobs, word: Word) -> Result<Listed, JobError> {
        if wanted.limit == 0 || wanted.limit > LIMIT_MAX {
            return Err(Refusal::new("limit", wanted.limit.to_string(), format!("1 to {LIMIT_MAX}")).into());
        }
        let from = wanted.cursor.as_deref().map(|cursor| wanted.read_cursor(cursor)).transpose()?;
        let places = self.places(wanted).await?;
        let partial = places.iter().any(|place| matches!(place.found, Found::Sided | Found::Log));
        let mut page = Listed { items: Vec::new(), next: None, partial };
        let mut examined = 0;
        for place in places {
            let mut after = match &from {
                Some((begin, _)) if place < *begin => continue,
                Some((begin, after)) if place == *begin => Some(after.clone()),
                _ => None,
            };
            loop {
                let chunk = self.chunk(wanted, place, after.as_ref()).await?;
                let ids: Vec<JobId> = chunk.jobs.iter().map(|(id, _)| *id).collect();
                for ((_, behind), detail) in
                    chunk.jobs.into_iter().zip(self.query(&ids, Results::Without).await?)
                {
                    let detail = match detail {
                        // It ended and was forgotten meanwhile.
                        Err(JobError::Gone(_) | JobError::Unknown(_)) => continue,
                        detail => detail?,
                    };
                    if wanted.matches(&detail, word) {
                        page.items.push(detail);
                    }
                    if page.items.len() == wanted.limit {
                        page.next = Some(wanted.cursor_at(place, &behind));
                        return Ok(page);
                    }
                }
                let Some(last) = chunk.last else { break };
                examined += chunk.examined;
                if examined >= EXAMINED_MAX {
                    page.next = Some(wanted.cursor_at(place, &last));
                    return Ok(page);
                }
                after = Some(last);
            }
        }
        Ok(page)
    }

    async fn places(&self, wanted: &ListJobs) -> Result<Vec<Place>, JobError> {
        if let Some(batch) = &wanted.batch {
            let shard = batch.ids().first().map(|id| id.shard()).expect("a batch has jobs");
            return Ok(vec![Place { shard, found: Found::Batch, processor: ProcessorId(0) }]);
        }
        let streams: Vec<Arc<StreamInfo>> = match &wanted.stream {
            Some(name) => vec![self.catalogue.stream(name).await?],
            None => self.catalogue.streams().await?,
        };
        let mut places = Vec::new();
        for info in streams {
            let partitions: Vec<Partition> = match &wanted.key {
                Some(key) => vec![key.partition(info.settings.partitions)],
                None => (0..info.settings.partitions).map(Partition).collect(),
            };
            for shard in partitions.into_iter().map(|partition| info.shard(partition)) {
                for found in FOUND.into_iter().filter(|found| wanted.looks_at(*found)) {
                    if matches!(found, Found::Retrying | Found::Parked | Found::Sided) {
                        let of = |processor| Place { shard, found, processor };
                        places.extend(info.processors.iter().map(|processor| of(processor.id)));
                    } else {
                        places.push(Place { shard, found, processor: ProcessorId(0) });
                    }
                }
            }
        }
        places.sort_unstable();
        Ok(places)
    }

    async fn chunk(&self, wanted: &ListJobs, place: Place, after: Option<&After>) -> Result<Chunk, JobError> {
        let number = match after {
            Some(After::Number(number)) => *number,
            Some(After::Lane(_)) | None => 0,
        };
        let shard = place.shard;
        match place.found {
            Found::Batch => {
                let ids = wanted.batch.as_ref().map(BatchId::ids).unwrap_or_default();
                let rest =
                    ids.into_iter().zip(1..).skip(usize::try_from(number).unwrap_or(usize::MAX)).take(CHUNK);
                Ok(Chunk::of(rest.map(|(id, place)| (Some(id), place)).collect()))
            }
            Found::Scheduled => self.scheduled_chunk(shard, number).await,
            Found::Retrying => self.lane_chunk(place, BlockKind::Retry, after).await,
            Found::Parked => self.lane_chunk(place, BlockKind::Parked, after).await,
            Found::Sided => self.sided_chunk(place, number).await,
            Found::Log => self.log_chunk(shard, number).await,
            Found::Ended => self.ended_chunk(shard, number).await,
            Found::Tickets => self.ticket_chunk(shard, number).await,
        }
    }

    async fn scheduled_chunk(&self, shard: Shard, after: u64) -> Result<Chunk, JobError> {
        let Rows::Scheduled(rows) = self.store.query(Query::Scheduled(shard, after, CHUNK)).await? else {
            return Err(other_list("the schedule"));
        };
        let job = |accepted_at, ticket| JobId::new(accepted_at, shard, JobNumber::Schedule(ticket));
        Ok(Chunk::of(
            rows.into_iter()
                .map(|row| (row.draft.job.map(|_| job(row.accepted_at, row.ticket)), row.ticket))
                .collect(),
        ))
    }

    async fn lane_chunk(
        &self,
        place: Place,
        kind: BlockKind,
        after: Option<&After>,
    ) -> Result<Chunk, JobError> {
        let after = match after {
            Some(After::Lane(lane)) => Some(lane.clone()),
            Some(After::Number(_)) | None => None,
        };
        let seat = Seat { shard: place.shard, processor: place.processor };
        let select = LaneSelect::Blocked { kind: Some(kind), after, limit: CHUNK };
        let views = self.store.lanes(Lanes { seat, select, siding: 1, states: false }).await?;
        let heads: Vec<(EventId, LaneName)> = views
            .iter()
            .filter_map(|view| {
                Some((view.record.head.or(view.siding.first().copied())?, view.record.lane.clone()))
            })
            .collect();
        let marks = self.marks(seat, heads.iter().map(|(id, _)| *id).collect()).await?;
        let jobs = heads.into_iter().filter_map(|(head, lane)| {
            let job = marks.iter().find(|(id, _)| *id == head)?.1;
            Some((job, After::Lane(lane)))
        });
        let last = views.last().map(|view| After::Lane(view.record.lane.clone()));
        Ok(Chunk { jobs: jobs.collect(), examined: views.len(), last })
    }

    async fn sided_chunk(&self, place: Place, after: u64) -> Result<Chunk, JobError> {
        let seat = Seat { shard: place.shard, processor: place.processor };
        let Rows::Sided(rows) = self.store.query(Query::Sided(seat, EventId(after), CHUNK)).await? else {
            return Err(other_list("sidings"));
        };
        let marks = self.marks(seat, rows.iter().map(|(id, _)| *id).collect()).await?;
        let of = |id: EventId| marks.iter().find(|(marked, _)| *marked == id).map(|(_, job)| *job);
        Ok(Chunk::of(rows.into_iter().map(|(id, _)| (of(id), id.0)).collect()))
    }

    /// The jobs among these events that this seat answers.
    async fn marks(&self, seat: Seat, ids: Vec<EventId>) -> Result<Vec<(EventId, JobId)>, JobError> {
        let events = events_of(&*self.store, seat.shard, ids).await?;
        let marks = events.into_iter().filter_map(|event| Some((event.id, event.job?)));
        let ours = marks.filter(|(_, mark)| mark.responder == seat.processor);
        Ok(ours.map(|(id, mark)| (id, mark.id)).collect())
    }

    async fn log_chunk(&self, shard: Shard, after: u64) -> Result<Chunk, JobError> {
        let Rows::Seats(about, seats) = self.store.query(Query::Seats(shard)).await? else {
            return Err(other_list("seats"));
        };
        let Some(floor) = seats.iter().map(|seat| seat.progress.window.floor()).min() else {
            return Ok(Chunk::of(Vec::new()));
        };
        let from = EventId(after).max(floor).max(about.trimmed);
        let read = Read {
            shard,
            from: ReadFrom::After(from),
            limit: CHUNK,
            bytes: usize::MAX,
            processor: None,
            states: false,
        };
        let page = match self.store.read(read).await {
            // Overtaken by a trim: whatever went had ended.
            Err(StoreError::Trimmed { first, .. }) => {
                let last = Some(After::Number(first.0.saturating_sub(1)));
                return Ok(Chunk { jobs: Vec::new(), examined: 1, last });
            }
            page => page?,
        };
        let open = |seats: &[SeatView], entry: &Entry| {
            let mark = match entry {
                Entry::Event(event) => event.job,
                Entry::Superseded { job, .. } => *job,
            }?;
            let seat = seats.iter().find(|seat| seat.processor == mark.responder)?;
            (!seat.progress.window.contains(entry.id())).then_some(mark.id)
        };
        Ok(Chunk::of(page.entries.iter().map(|entry| (open(&seats, entry), entry.id().0)).collect()))
    }

    async fn ended_chunk(&self, shard: Shard, after: u64) -> Result<Chunk, JobError> {
        let Rows::Ended(page) = self.store.query(Query::Ended(shard, EventId(after), CHUNK)).await? else {
            return Err(other_list("ended jobs"));
        };
        let events = events_of(&*self.store, shard, page.ends.iter().map(|end| end.id).collect()).await?;
        let jobs = page.ends.iter().map(|end| {
            let event = events.iter().find(|event| event.id == end.id);
            let known = event.and_then(|event| event.job).map(|mark| mark.id);
            let job = known.unwrap_or_else(|| JobId::new(end.finished_at, shard, JobNumber::Event(end.id)));
            (job, After::Number(end.id.0))
        });
        // The store may have passed over many that cannot be read any more, so a short page counts like a full one.
        Ok(Chunk { jobs: jobs.collect(), examined: CHUNK, last: page.next.map(|next| After::Number(next.0)) })
    }

    /// Jobs that ended before they joined their lane.
    async fn ticket_chunk(&self, shard: Shard, after: u64) -> Result<Chunk, JobError> {
        let Rows::Tickets(rows) = self.store.query(Query::Tickets(shard, after, CHUNK)).await? else {
            return Err(other_list("tickets"));
        };
        let jobs = rows.into_iter().map(|row| match row.became {
            Ticketed::Ended(end) => {
                let accepted_at = row.accepted_at.unwrap_or(end.end.finished_at);
                let job = JobId::new(accepted_at, shard, JobNumber::Schedule(row.ticket));
                (Some(job), row.ticket)
            }
            Ticketed::Joined(_) => (None, row.ticket),
        });
        Ok(Chunk::of(jobs.collect()))
    }
}

impl Chunk {
    fn of(rows: Vec<(Option<JobId>, u64)>) -> Self {
        let (examined, last) = (rows.len(), rows.last().map(|(_, number)| After::Number(*number)));
        let jobs = rows.into_iter().filter_map(|(job, number)| Some((job?, After::Number(number)))).collect();
        Self { jobs, examined, last }
    }
}

impl ListJobs {
    fn looks_at(&self, found: Found) -> bool {
        match found {
            Found::Batch => false,
            Found::Scheduled => matches!(self.status, None | Some(Status::Scheduled)),
            Found::Retrying => self.status == Some(Status::Retrying),
            Found::Parked => self.status == Some(Status::Parked),
            Found::Sided | Found::Log => {
                matches!(self.status, None | Some(Status::Waiting | Status::Running))
            }
            Found::Ended | Found::Tickets => matches!(self.status, None | Some(Status::Ended(_))),
        }
    }

    fn matches(&self, detail: &Detail, word: Word) -> bool {
        let kind = |wanted: &String| {
            detail.kind.as_ref().is_some_and(|kind| match wanted.strip_suffix('*') {
                Some(beginning) => kind.as_str().starts_with(beginning),
                None => kind.as_str() == wanted,
            })
        };
        self.stream.as_ref().is_none_or(|stream| *stream == detail.stream)
            && self.key.as_ref().is_none_or(|key| detail.key.as_ref() == Some(key))
            && self.kind.as_ref().is_none_or(kind)
            && self.status.is_none_or(|status| word.may_be(detail.job.status.status(), status))
            && self.since.is_none_or(|since| detail.created_at >= since)
    }

    /// A number for the filter, so that a cursor of one list is not used for another.
    fn hash(&self) -> u64 {
        let mut said = Writer::new(VERSION);
        let texts = [
            self.stream.as_ref().map(|stream| Bytes::from(stream.clone())),
            self.key.as_ref().map(|key| key.to_bytes()),
            self.kind.as_ref().map(|kind| Bytes::from(kind.clone())),
            self.batch.as_ref().map(|batch| Bytes::from(batch.to_string())),
        ];
        for text in texts {
            said.number(u64::from(text.is_some()));
            said.bytes(&text.unwrap_or_default());
        }
        said.number(self.status.map_or(0, status_code));
        said.number(self.since.map_or(0, |since| since.0.saturating_add(1)));
        said.hash()
    }

    fn cursor_at(&self, place: Place, after: &After) -> String {
        let mut text = Writer::new(VERSION);
        text.number(self.hash());
        text.number(u64::from(place.shard.stream.0));
        text.number(u64::from(place.shard.partition.0));
        text.number(place.found as u64);
        text.number(u64::from(place.processor.0));
        match after {
            After::Number(number) => {
                text.number(0);
                text.number(*number);
            }
            After::Lane(LaneName::Key(key)) => {
                text.number(1);
                text.bytes(key.bytes());
            }
            After::Lane(LaneName::Event(id)) => {
                text.number(2);
                text.number(id.0);
            }
        }
        text.text()
    }

    fn read_cursor(&self, text: &str) -> Result<(Place, After), Refusal> {
        let read = || {
            let mut from = Reader::new(text, VERSION)?;
            (from.number()? == self.hash()).then_some(())?;
            let shard =
                Shard { stream: laneway_core::StreamId(from.small()?), partition: Partition(from.small()?) };
            let found = *FOUND.get(usize::try_from(from.number()?).ok()?)?;
            let processor = ProcessorId(from.small()?);
            let after = match from.number()? {
                0 => After::Number(from.number()?),
                1 => After::Lane(LaneName::Key(Key::new(from.bytes()?).ok()?)),
                2 => After::Lane(LaneName::Event(EventId(from.number()?))),
                _ => return None,
            };
            from.end()?;
            Some((Place { shard, found, processor }, after))
        };
        let limit = "what the page before answered, with the same filter";
        read().ok_or_else(|| Refusal::new("cursor", text, limit))
    }
}

fn status_code(status: Status) -> u64 {
    match status {
        Status::Scheduled => 1,
        Status::Waiting => 2,
        Status::Running => 3,
        Status::Retrying => 4,
        Status::Parked => 5,
        Status::Ended(end) => 6 + Terminal::ALL.iter().position(|known| *known == end).unwrap_or(0) as u64,
    }
}

fn other_list(wanted: &str) -> JobError {
    StoreError::Corrupt { what: format!("the store answered another list than {wanted}") }.into()
}
