//! A job with everything that is known of it.

use laneway::core::store::{Entry, Read, ReadFrom};
use laneway::core::{Block, Event, JobId, ProcessorId, StreamInfo};
use laneway::engine::job::{Job, JobStatus};
use laneway::{EventId, Timestamp};
use laneway_client::wire;

use super::error::Result;
use super::wire as convert;
use crate::node::Node;

/// A job as it goes over the wire.
pub(super) async fn told(node: &Node, job: Job) -> Result<wire::Job> {
    let shard = job.id.shard();
    let info = node.engine().catalogue().stream_of(shard.stream).await?;
    let event = match &job.status {
        JobStatus::Scheduled { .. } => None,
        JobStatus::Pending { event, .. } => Some(*event),
        JobStatus::Ended { end, .. } => Some(end.id),
    };
    let stored = match event {
        Some(event) => stored(node, &info, job.id, event).await?,
        None => None,
    };
    let named = convert::named(stored.as_ref().and_then(|event| event.key.as_ref()));
    let responder = stored.as_ref().and_then(|event| event.job).map(|mark| mark.responder);
    let mut told = wire::Job {
        id: job.id.to_string(),
        reference: event.map(|event| convert::reference(&info.name, shard.partition, event)),
        stream: info.name.clone(),
        key: named.key,
        key_b64: named.key_b64,
        kind: stored.as_ref().and_then(|event| convert::kind(&event.kind)),
        processor: responder.and_then(|id| processor_name(&info, id)),
        status: job.status.status().to_string(),
        attempt: 0,
        created_at: convert::date_of(created_at(job.id)),
        started_at: None,
        finished_at: None,
        keep_until: None,
        progress: None,
        result: None,
        result_b64: None,
        error: None,
        why: None,
    };
    match job.status {
        JobStatus::Ended { end, result, keep_until } => {
            told.attempt = end.attempts;
            told.started_at = end.started_at.map(convert::date_of);
            told.finished_at = Some(convert::date_of(end.finished_at));
            told.keep_until = Some(convert::date_of(keep_until));
            told.error = Some(text(&end.error)).filter(|error| !error.is_empty());
            (told.result, told.result_b64) =
                result.map(|result| convert::payload(&result)).unwrap_or_default();
        }
        JobStatus::Pending { lane, .. } => {
            told.attempt = lane.as_ref().map_or(0, |lane| lane.attempts);
            match lane.and_then(|lane| lane.block) {
                Some(Block::Retry { cause, .. } | Block::Parked { cause, .. }) => {
                    told.error = Some(text(&cause))
                }
                Some(Block::Running { since, progress }) => {
                    told.started_at = Some(convert::date_of(since));
                    told.progress = Some(progress)
                        .filter(|words| !words.is_empty())
                        .and_then(|words| convert::payload(&words).0);
                }
                _ => {}
            }
            told.why = Some(convert::why(&node.engine().looker().why_job(job.id).await?));
        }
        JobStatus::Scheduled { .. } => {
            told.why = Some(convert::why(&node.engine().looker().why_job(job.id).await?))
        }
    }
    Ok(told)
}

/// Its event, as long as retention keeps it.
async fn stored(node: &Node, info: &StreamInfo, id: JobId, event: EventId) -> Result<Option<Event>> {
    let shard = info.shard(id.shard().partition);
    let from = ReadFrom::Ids(vec![event]);
    let read = Read { shard, from, limit: 1, bytes: usize::MAX, processor: None, states: false };
    let page = match node.engine().stores().store.read(read).await {
        Err(laneway::core::StoreError::Trimmed { .. }) => return Ok(None),
        page => page?,
    };
    Ok(page.entries.into_iter().find_map(|entry| match entry {
        Entry::Event(event) => Some(event),
        Entry::Superseded { .. } => None,
    }))
}

fn processor_name(info: &StreamInfo, id: ProcessorId) -> Option<String> {
    info.processors.iter().find(|processor| processor.id == id).map(|processor| processor.name.clone())
}

/// A job's id begins with the time of its making, in milliseconds.
fn created_at(id: JobId) -> Timestamp {
    let millis = u64::try_from(id.bits() >> 80).unwrap_or(u64::MAX);
    Timestamp(millis.saturating_mul(1_000))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
