//! Firing: schedules are kept as documents, and whatever is due is appended to their streams, once per due time.
//!
//! Any node may do it, several at once: the due time numbers the append, so the second one is a duplicate. What was
//! fired is remembered after the append; forgetting it only asks the store again.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use laneway_core::store::{Append, JobState, Jobs as JobsCall, Origin, Query, Receipt, Rows};
use laneway_core::{Document, JobDraft, JobId, Partition, Refusal, StoreError, StreamInfo, Term, Timestamp};
use tokio::sync::Notify;

use super::schedule::{DecodeError, LastJob, Past, Plan, Schedule, Timetable, pass_over, plan};
use crate::engine::Stores;
use crate::log::{Catalogue, CatalogueError, events_of};
use crate::service::Env;

/// How often the schedules are looked at, whatever they say themselves: other nodes change them too.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Events of a schedule's lane among which its last job is looked for: others may append to it too.
const LOOK_BACK_MAX: usize = 100;

const PREFIX: &str = "schedule/";
const PAST_PREFIX: &str = "schedule-past/";

/// The schedules of a store. Cheap to clone.
#[derive(Clone)]
pub struct Schedules {
    env: Env,
    stores: Stores,
    catalogue: Arc<Catalogue>,
    changed: Arc<Notify>,
}

/// Why nothing was scheduled.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// The schedule could never be.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// There is none of this name.
    #[error("schedule {0:?} does not exist")]
    NotFound(String),
    /// It is not as it was expected to be: somebody was faster.
    #[error("schedule {0:?} was changed by somebody else")]
    Changed(String),
    /// What is stored makes no sense.
    #[error("a stored schedule cannot be read: {0}")]
    Stored(#[from] DecodeError),
    /// Its stream or processor is not to be had.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A schedule as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleStanding {
    /// What was asked for.
    pub schedule: Schedule,
    /// Grows with every change of it.
    pub version: u64,
    /// The newest due time that was fired or passed over.
    pub last_due: Option<Timestamp>,
    /// The last job it made by its time table, if it makes jobs.
    pub last_job: Option<JobId>,
    /// The next due times, the earliest first; none while it is paused.
    pub next: Vec<Timestamp>,
}

/// A firing besides the time table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fire {
    /// What the store says of the event.
    pub receipt: Receipt,
    /// Its partition.
    pub partition: Partition,
}

/// What somebody wants to be there before a schedule is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Whatever is there.
    Anything,
    /// This version; nothing when it must not be there.
    Version(Option<u64>),
}

/// What a schedule has behind it, as stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Fired {
    last_due: Option<Timestamp>,
    last_job: Option<JobId>,
}

impl Schedules {
    pub(crate) fn new(env: Env, stores: Stores, catalogue: Arc<Catalogue>) -> Self {
        Self { env, stores, catalogue, changed: Arc::default() }
    }

    /// Creates a schedule or changes one. A new time table begins now: nothing that lies behind is caught up.
    pub async fn put(&self, schedule: Schedule) -> Result<(), ScheduleError> {
        self.write(schedule, Expect::Anything, |_, _| {}).await
    }

    /// [`put`](Self::put), only if what is there is as expected.
    ///
    /// # Errors
    /// `Changed` when it is not.
    pub async fn put_if(&self, schedule: Schedule, expect: Expect) -> Result<(), ScheduleError> {
        self.write(schedule, expect, |_, _| {}).await
    }

    /// [`put`](Self::put) for a program that says again at every start what it wants: one that somebody paused stays
    /// paused.
    pub async fn declare(&self, schedule: Schedule) -> Result<(), ScheduleError> {
        self.write(schedule, Expect::Anything, |schedule, known| schedule.paused = known.paused).await
    }

    async fn write(
        &self,
        mut schedule: Schedule,
        wanted: Expect,
        take_over: impl Fn(&mut Schedule, &Schedule),
    ) -> Result<(), ScheduleError> {
        schedule.check()?;
        let info = self.catalogue.stream(&schedule.firing.stream).await?;
        if let Some(processor) = &schedule.firing.processor {
            self.responder(&info, processor).await?;
        }
        let name = document(&schedule.name);
        loop {
            let before = self.stores.documents.get(&name).await?;
            let version = before.as_ref().map(|before| before.version);
            if matches!(wanted, Expect::Version(wanted) if wanted != version) {
                return Err(ScheduleError::Changed(schedule.name));
            }
            let known = before.as_ref().map(|before| Schedule::decode(before.bytes.clone())).transpose()?;
            if let Some(known) = &known {
                take_over(&mut schedule, known);
            }
            let same = known.filter(|known| known.spec == schedule.spec && known.paused == schedule.paused);
            schedule.since = same.map_or(self.env.now().calendar, |known| known.since);
            match self.stores.documents.put(&name, version, schedule.encode()).await {
                Err(StoreError::Conflict(_)) => {}
                written => {
                    written?;
                    self.changed.notify_waiters();
                    return Ok(());
                }
            }
        }
    }

    /// One schedule.
    pub async fn get(&self, name: &str) -> Result<Schedule, ScheduleError> {
        let found = self.stores.documents.get(&document(name)).await?;
        let found = found.ok_or_else(|| ScheduleError::NotFound(name.to_owned()))?;
        Ok(Schedule::decode(found.bytes)?)
    }

    /// One schedule with the next `count` times it is due.
    pub async fn standing(&self, name: &str, count: usize) -> Result<ScheduleStanding, ScheduleError> {
        let found = self.stores.documents.get(&document(name)).await?;
        self.stands(found.ok_or_else(|| ScheduleError::NotFound(name.to_owned()))?, count).await
    }

    /// All schedules, by name, each with the next `count` times it is due.
    pub async fn standings(&self, count: usize) -> Result<Vec<ScheduleStanding>, ScheduleError> {
        let mut standings = Vec::new();
        for found in self.stores.documents.list(PREFIX).await? {
            standings.push(self.stands(found, count).await?);
        }
        Ok(standings)
    }

    async fn stands(&self, found: Document, count: usize) -> Result<ScheduleStanding, ScheduleError> {
        let (version, schedule) = (found.version, Schedule::decode(found.bytes)?);
        let past = self.stores.documents.get(&past_document(&schedule.name)).await?;
        let Fired { last_due, last_job } = past.as_ref().map_or_else(Fired::default, Fired::decode);
        let timetable = Timetable::new(&schedule.spec)?;
        let now = self.env.now().calendar;
        let begin = last_due.map_or(now, |last| last.max(now));
        let times = std::iter::successors(timetable.after(begin), |due| timetable.after(*due));
        let next = if schedule.paused { Vec::new() } else { times.take(count).collect() };
        Ok(ScheduleStanding { schedule, version, last_due, last_job, next })
    }

    /// All schedules, by name.
    pub async fn list(&self) -> Result<Vec<Schedule>, ScheduleError> {
        let documents = self.stores.documents.list(PREFIX).await?;
        documents.into_iter().map(|found| Ok(Schedule::decode(found.bytes)?)).collect()
    }

    /// Removes a schedule; what it fired stays. Carried to its end if the caller drops it.
    pub async fn remove(&self, name: &str) -> Result<(), ScheduleError> {
        let (schedules, name) = (self.clone(), name.to_owned());
        self.env.finish(async move { schedules.remove_now(&name).await }).await
    }

    async fn remove_now(&self, name: &str) -> Result<(), ScheduleError> {
        for document in [document(name), past_document(name)] {
            if let Some(found) = self.stores.documents.get(&document).await? {
                self.stores.documents.delete(&document, found.version).await?;
            } else if document.starts_with(PREFIX) {
                return Err(ScheduleError::NotFound(name.to_owned()));
            }
        }
        Ok(())
    }

    /// Copies all schedules of another store, with when they were last due, and compares them. Nobody may work on either
    /// meanwhile. Answers how many there are.
    pub async fn copy_from(&self, source: &Self) -> Result<usize, ScheduleError> {
        let mut copied = 0;
        // What was fired comes first: without it a schedule would fire again.
        for prefix in [PAST_PREFIX, PREFIX] {
            let documents = source.stores.documents.list(prefix).await?;
            for found in &documents {
                self.stores.documents.put(&found.name, None, found.bytes.clone()).await?;
            }
            copied = documents.len();
            let content = |found: Document| (found.name, found.bytes);
            let copies = self.stores.documents.list(prefix).await?.into_iter().map(content);
            if !copies.eq(documents.into_iter().map(content)) {
                let what = format!("schedules under {prefix} are not what was copied");
                return Err(StoreError::Corrupt { what }.into());
            }
        }
        Ok(copied)
    }

    /// Fires a schedule now, besides its time table: an event like any other, without a due time as its number.
    pub async fn run(&self, name: &str) -> Result<Fire, ScheduleError> {
        let schedule = self.get(name).await?;
        let info = self.catalogue.stream(&schedule.firing.stream).await?;
        let partition = schedule.partition(info.settings.partitions);
        Ok(Fire { receipt: self.fire_one(&schedule, None).await?, partition })
    }

    /// Fires what is due again and again. Never ends.
    pub(crate) async fn keep_firing(self) {
        loop {
            let changed = self.changed.notified();
            let next = self.fire_due().await;
            let now = self.env.now();
            let until_next = Duration::from_micros(next.0.saturating_sub(now.calendar.0));
            tokio::select! {
                biased;
                () = changed => {}
                () = self.env.sleep(until_next.min(LOOK_EVERY)) => {}
            }
        }
    }

    /// Fires what is due now; answers when the next one is.
    async fn fire_due(&self) -> Timestamp {
        let documents = match self.stores.documents.list(PREFIX).await {
            Ok(documents) => documents,
            Err(error) => {
                tracing::warn!(%error, "the schedules could not be listed");
                return Timestamp(u64::MAX);
            }
        };
        let mut next = Timestamp(u64::MAX);
        for document in documents {
            match self.fire(document.bytes).await {
                Ok(due) => next = next.min(due),
                // One that cannot fire, or be read, must not hold up the others.
                Err(error) => tracing::warn!(schedule = document.name, %error, "a schedule could not fire"),
            }
        }
        next
    }

    async fn fire(&self, stored: Bytes) -> Result<Timestamp, ScheduleError> {
        let schedule = &Schedule::decode(stored)?;
        let stored = self.stores.documents.get(&past_document(&schedule.name)).await?;
        let fired = stored.as_ref().map_or_else(Fired::default, Fired::decode);
        let past = Past { since: schedule.since, last_due: fired.last_due };
        let timetable = Timetable::new(&schedule.spec)?;
        let now = self.env.now().calendar;
        let planned = if schedule.paused {
            pass_over(&timetable, past, now)
        } else {
            let planned = plan(&timetable, schedule.catch_up, past, now);
            if planned.fire.is_empty() {
                planned
            } else {
                schedule.overlap.admit(planned, self.last_job(fired).await?)
            }
        };
        let Plan { fire, last_due, next } = planned;
        let mut last_job = fired.last_job;
        for due in fire {
            let job = match self.fire_one(schedule, Some(due)).await? {
                Receipt::New { job, .. } => job,
                // Whoever appended it may have come to an end before that was remembered.
                Receipt::Duplicate { .. } => self.job_in_lane(schedule).await?,
                Receipt::Scheduled { .. } | Receipt::Stale { .. } => None,
            };
            last_job = job.or(last_job);
        }
        let after = Fired { last_due, last_job };
        if after != fired {
            let expect = stored.map(|stored| stored.version);
            match self.stores.documents.put(&past_document(&schedule.name), expect, after.encode()).await {
                // Another node was faster, and has remembered the same.
                Ok(_) | Err(StoreError::Conflict(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(next)
    }

    /// Appends one firing. A due time that was appended before is a duplicate.
    async fn fire_one(&self, schedule: &Schedule, due: Option<Timestamp>) -> Result<Receipt, ScheduleError> {
        let info = self.catalogue.stream(&schedule.firing.stream).await?;
        let mut draft = schedule.draft(due.unwrap_or_default());
        draft.origin_seq = due.map(|due| due.0);
        if let Some(processor) = &schedule.firing.processor {
            let responder = self.responder(&info, processor).await?;
            draft.job = Some(JobDraft { responder, keep: info.settings.job_keep() });
        }
        let append = Append {
            shard: info.shard(schedule.partition(info.settings.partitions)),
            incarnation: self.catalogue.life(),
            layout: info.layout,
            origin: due.map(|_| Origin { source: schedule.source(), term: Term(1) }),
            drafts: vec![draft],
            object: None,
        };
        let store = &self.stores.store;
        let sent = |incarnation| store.append(Append { incarnation, ..append.clone() });
        let appended = self.catalogue.in_this_life(sent).await?;
        let receipt = appended.receipts.into_iter().next();
        receipt.ok_or_else(|| StoreError::Corrupt { what: "an append without a receipt".to_owned() }.into())
    }

    /// The last job that a schedule has made, looked for at the end of its lane.
    async fn job_in_lane(&self, schedule: &Schedule) -> Result<Option<JobId>, ScheduleError> {
        let info = self.catalogue.stream(&schedule.firing.stream).await?;
        let (Some(processor), Some(key)) = (&schedule.firing.processor, schedule.draft(Timestamp(0)).key)
        else {
            return Ok(None);
        };
        let responder = self.responder(&info, processor).await?;
        let shard = info.shard(schedule.partition(info.settings.partitions));
        let store = &*self.stores.store;
        let Rows::Lane(tail) = store.query(Query::Lane(shard, key)).await? else {
            return Err(StoreError::Corrupt {
                what: "the store answered another list than a lane".to_owned(),
            }
            .into());
        };
        let mut next = tail.map(|tail| tail.id);
        for _ in 0..LOOK_BACK_MAX {
            let Some(id) = next else { break };
            let Some(event) = events_of(store, shard, vec![id]).await?.pop() else { break };
            let same = event.kind == schedule.firing.kind && event.data == schedule.firing.data;
            if let Some(job) = event.job.filter(|job| same && job.responder == responder) {
                return Ok(Some(job.id));
            }
            next = event.prev;
        }
        Ok(None)
    }

    async fn responder(
        &self,
        info: &StreamInfo,
        name: &str,
    ) -> Result<laneway_core::ProcessorId, CatalogueError> {
        let (stream, processor) = self.catalogue.processor(name).await?;
        if stream.id == info.id { Ok(processor) } else { Err(CatalogueError::NoProcessor(name.to_owned())) }
    }

    async fn last_job(&self, fired: Fired) -> Result<LastJob, ScheduleError> {
        let Some(id) = fired.last_job else { return Ok(LastJob::Ended) };
        let get = JobsCall::Get { shard: id.shard(), numbers: vec![id.number()], results: false };
        let views = self.stores.store.jobs(get).await?;
        let open = views
            .iter()
            .any(|view| matches!(view.state, JobState::Pending { .. } | JobState::Scheduled { .. }));
        Ok(if open { LastJob::Unended } else { LastJob::Ended })
    }
}

fn document(name: &str) -> String {
    format!("{PREFIX}{name}")
}

fn past_document(name: &str) -> String {
    format!("{PAST_PREFIX}{name}")
}

impl Fired {
    fn encode(self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(24);
        bytes.put_u64(self.last_due.map_or(0, |due| due.0));
        bytes.put_u128(self.last_job.map_or(0, JobId::bits));
        bytes.freeze()
    }

    fn decode(document: &Document) -> Self {
        let mut bytes = document.bytes.clone();
        if bytes.len() != 24 {
            return Self::default();
        }
        let (due, job) = (bytes.get_u64(), bytes.get_u128());
        Self { last_due: (due > 0).then_some(Timestamp(due)), last_job: JobId::from_bits(job) }
    }
}

impl std::fmt::Debug for Schedules {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Schedules").finish_non_exhaustive()
    }
}
