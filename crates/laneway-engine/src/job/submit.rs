//! Submit: drafts become jobs, one or many, safely repeatable by the caller's own key.

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes};
use laneway_core::event::{Dedup, TRACE_HEADERS};
use laneway_core::store::Receipt;
use laneway_core::{
    ConflictReason, DelayMode, Draft, Headers, JobDraft, JobId, Partition, ProcessorId, Refusal, StartAfter,
    StoreError, StreamInfo,
};
use xxhash_rust::xxh3::xxh3_128;

use super::batch::{BatchId, JOBS_MAX};
use super::error::JobError;
use super::headers;
use super::jobs::Jobs;
use crate::log::{Appending, Sent};

/// Longest idempotency key in bytes: with the caller and an index it fits into a dedup id.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 128;
/// Longest name of a caller in bytes.
pub const CALLER_BYTES_MAX: usize = 100;

/// A job to be.
#[derive(Debug, Clone)]
pub struct Submit {
    /// The event; what it says of a job is set here.
    pub draft: Draft,
    /// Which processor answers. Default: the stream's only one.
    pub processor: Option<String>,
    /// How long its end is kept. Default: as its stream says (`keep_done`).
    pub keep: Option<Duration>,
}

/// Who submits, and under which name of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct By {
    /// Who, as the front end knows it; handlers read it in the header `laneway-caller`. Default: nobody.
    pub caller: Option<String>,
    /// The caller's name for this submission: the same again is the same job, also while it runs, as long as the stream
    /// remembers it (`dedup_window` and `dedup_max`), and another body is refused. It counts per stream, caller and lane. Default: none.
    pub idempotency_key: Option<Bytes>,
}

/// A job that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    /// Its id.
    pub id: JobId,
    /// What the store says of its event.
    pub receipt: Receipt,
    /// Its partition.
    pub partition: Partition,
}

/// What became of many jobs.
#[derive(Debug)]
pub struct Submissions {
    /// One answer each, in order.
    pub jobs: Vec<Result<Submitted, JobError>>,
    /// Names all that were accepted; nothing if none was.
    pub batch: Option<BatchId>,
}

impl Jobs {
    /// Submits jobs to a stream; one answer each, in order.
    ///
    /// # Errors
    /// When one of them could never be accepted: then none was.
    pub async fn submit(
        &self,
        stream: &str,
        jobs: Vec<Submit>,
    ) -> Result<Vec<Result<Submitted, JobError>>, JobError> {
        Ok(self.submit_many(stream, jobs, &By::default()).await?.jobs)
    }

    /// Submits one job.
    pub async fn submit_one(&self, stream: &str, job: Submit, by: &By) -> Result<Submitted, JobError> {
        by.check()?;
        headers::check(&job.draft.headers)?;
        let info = self.catalogue.stream(stream).await?;
        let responder = self.responder(&info, job.processor.as_deref()).await?;
        let draft = self.draft(&info, job, responder, by, None)?;
        let submitted = self.append(stream, vec![draft]).await?.into_iter().next();
        submitted.unwrap_or_else(|| Err(JobError::NotMade("the store answered nothing".to_owned())))
    }

    /// Submits many jobs under one batch id, at most 10,000 and at most 1,000 of one partition. An idempotency key gets
    /// the index of each job appended.
    ///
    /// # Errors
    /// When one of them could never be accepted: then none was.
    pub async fn submit_many(
        &self,
        stream: &str,
        jobs: Vec<Submit>,
        by: &By,
    ) -> Result<Submissions, JobError> {
        by.check()?;
        Refusal::check_max("jobs", jobs.len(), JOBS_MAX)?;
        let mut drafts = Vec::with_capacity(jobs.len());
        let info = self.catalogue.stream(stream).await?;
        let mut found: Option<(Option<String>, ProcessorId)> = None;
        for (index, job) in jobs.into_iter().enumerate() {
            headers::check(&job.draft.headers)?;
            // Mostly all of them are for one processor.
            let responder = match &found {
                Some((processor, responder)) if *processor == job.processor => *responder,
                _ => {
                    let responder = self.responder(&info, job.processor.as_deref()).await?;
                    found = Some((job.processor.clone(), responder));
                    responder
                }
            };
            drafts.push(self.draft(&info, job, responder, by, Some(index))?);
        }
        let jobs = self.append(stream, drafts).await?;
        let batch = BatchId::of(jobs.iter().flatten().map(|submitted| submitted.id));
        Ok(Submissions { jobs, batch })
    }

    fn draft(
        &self,
        info: &StreamInfo,
        job: Submit,
        responder: ProcessorId,
        by: &By,
        index: Option<usize>,
    ) -> Result<Draft, JobError> {
        let keep = job.keep.unwrap_or_else(|| info.settings.job_keep());
        self.made(job.draft, responder, keep, by, index, None)
    }

    /// A draft with everything that makes it a job.
    pub(super) fn made(
        &self,
        mut draft: Draft,
        responder: ProcessorId,
        keep: Duration,
        by: &By,
        index: Option<usize>,
        retry_of: Option<JobId>,
    ) -> Result<Draft, JobError> {
        if let Some(key) = &by.idempotency_key {
            if draft.dedup.is_some() {
                return Err(Refusal::new("dedup_id", "set", "absent beside an idempotency key").into());
            }
            let body = body(&draft, responder);
            let id = by.dedup_id(key, index, retry_of);
            // As long as the stream says.
            draft.dedup = Some(Dedup { id, body, window: Duration::ZERO });
        }
        draft.headers = headers::with(&draft.headers, by.caller.as_deref(), retry_of)?;
        draft.job = Some(JobDraft { responder, keep });
        Ok(draft)
    }

    pub(super) async fn append(
        &self,
        stream: &str,
        drafts: Vec<Draft>,
    ) -> Result<Vec<Result<Submitted, JobError>>, JobError> {
        let sent = self.producer.append_own(stream, Appending { drafts, object: None }).await?;
        Ok(sent.into_iter().map(submitted).collect())
    }

    async fn responder(&self, info: &Arc<StreamInfo>, name: Option<&str>) -> Result<ProcessorId, JobError> {
        let find = |info: &StreamInfo| match name {
            Some(name) => {
                info.processors.iter().find(|processor| processor.name == name).map(|found| found.id)
            }
            None => match (&info.settings.responder, &info.processors[..]) {
                (Some(responder), all) => all.iter().find(|one| one.name == *responder).map(|one| one.id),
                (None, [only]) => Some(only.id),
                (None, _) => None,
            },
        };
        if let Some(found) = find(info) {
            return Ok(found);
        }
        // It may have been registered since.
        self.catalogue.refresh().await?;
        let info = self.catalogue.stream(&info.name).await?;
        let stream = info.name.clone();
        find(&info).ok_or_else(|| match (name, info.settings.responder.clone()) {
            (Some(processor), _) => JobError::NoSuchProcessor { processor: processor.to_owned(), stream },
            (None, Some(responder)) => JobError::NoResponder { responder, stream },
            (None, None) => JobError::ProcessorRequired {
                stream,
                processors: info.processors.iter().map(|processor| processor.name.clone()).collect(),
            },
        })
    }
}

impl By {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        if let Some(key) = &self.idempotency_key {
            if key.is_empty() {
                return Err(Refusal::new("idempotency key", "\"\"", "1 to 128 bytes"));
            }
            Refusal::check_max("idempotency key bytes", key.len(), IDEMPOTENCY_KEY_BYTES_MAX)?;
        }
        Refusal::check_max("caller bytes", self.caller.as_ref().map_or(0, String::len), CALLER_BYTES_MAX)
    }

    /// Told apart from dedup ids of producers by its beginning, and from those of other callers by the length before
    /// the name: no caller can spell the id of another.
    fn dedup_id(&self, key: &Bytes, index: Option<usize>, retry_of: Option<JobId>) -> Bytes {
        let caller = self.caller.as_deref().unwrap_or_default().as_bytes();
        let mut id = b"job\0".to_vec();
        id.put_u8(u8::try_from(caller.len()).expect("checked above"));
        id.extend_from_slice(caller);
        id.put_u8(u8::try_from(key.len()).expect("checked above"));
        id.extend_from_slice(key);
        if let Some(index) = index {
            id.extend_from_slice(format!("/{index}").as_bytes());
        }
        if let Some(retry_of) = retry_of {
            id.extend_from_slice(&retry_of.bits().to_be_bytes());
        }
        Bytes::from(id)
    }
}

/// A number for everything that a submitter says of a job besides its lane.
fn body(draft: &Draft, responder: ProcessorId) -> u128 {
    let mut said = Vec::with_capacity(draft.data.len() + 128);
    let headers = without_trace(&draft.headers);
    for bytes in [draft.kind.bytes(), headers.bytes(), &draft.data] {
        said.put_u64_le(bytes.len() as u64);
        said.extend_from_slice(bytes);
    }
    said.put_u32_le(responder.0);
    said.put_u8(draft.priority);
    said.put_u8(u8::from(draft.delete));
    said.put_u64_le(draft.incarnation);
    for number in [draft.generation, draft.ttl.map(|ttl| u64::try_from(ttl.as_micros()).unwrap_or(u64::MAX))]
    {
        said.put_u8(u8::from(number.is_some()));
        said.put_u64_le(number.unwrap_or(0));
    }
    if let Some(delay) = draft.delay {
        let (kind, until) = match delay.until {
            StartAfter::Delay(length) => (1, u64::try_from(length.as_micros()).unwrap_or(u64::MAX)),
            StartAfter::At(time) => (2, time.0),
        };
        said.put_u8(kind);
        said.put_u8(u8::from(delay.mode == DelayMode::Hold));
        said.put_u64_le(until);
    }
    xxh3_128(&said)
}

/// Two tries of one submission may belong to two traces.
fn without_trace(headers: &Headers) -> Headers {
    let said = headers.iter().filter(|(name, _)| !TRACE_HEADERS.contains(name));
    Headers::new(said).expect("no more than were taken before")
}

fn submitted(sent: Sent) -> Result<Submitted, JobError> {
    let receipt = sent.receipt.map_err(|error| match &*error {
        StoreError::Conflict(conflict) => match conflict.reason {
            ConflictReason::DedupBody { first } => JobError::OtherBody { first },
            _ => JobError::Shared(error),
        },
        _ => JobError::Shared(error),
    })?;
    let id = match &receipt {
        Receipt::New { job, .. } | Receipt::Scheduled { job, .. } => *job,
        Receipt::Duplicate { first: Some(first) } => match &**first {
            Receipt::New { job, .. } | Receipt::Scheduled { job, .. } => *job,
            _ => None,
        },
        Receipt::Duplicate { first: None } => None,
        Receipt::Stale { newest, generation } => {
            let reason = format!("event {newest} has generation {generation}, which is newer");
            return Err(JobError::NotMade(reason));
        }
    };
    let id =
        id.ok_or_else(|| JobError::NotMade("the event was appended before, and not as a job".to_owned()))?;
    Ok(Submitted { id, receipt, partition: sent.partition })
}
