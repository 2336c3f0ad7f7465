//! Where a job stands, and everything else that can be told of it.

use bytes::Bytes;
use laneway_core::store::{JobEnd, JobState, JobView};
use laneway_core::{Block, Due, EventId, JobId, Key, Kind, LaneRecord, Ref, Status, Timestamp};

use super::error::JobError;

/// A job as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// Where it stands.
    pub status: JobStatus,
}

/// Where a job stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobStatus {
    /// Not yet in its lane.
    Scheduled {
        /// When it joins.
        due: Due,
    },
    /// In its lane and not ended.
    Pending {
        /// Its event.
        event: EventId,
        /// Its lane.
        key: Option<Key>,
        /// What is known of its lane, if it is the head of one that is not plain.
        lane: Option<LaneRecord>,
    },
    /// Ended.
    Ended {
        /// How.
        end: Box<JobEnd>,
        /// What the handler returned.
        result: Option<Bytes>,
        /// Until when it can be read.
        keep_until: Timestamp,
    },
}

/// A job with everything that can be told of it. What hangs on its event is absent once that went by retention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detail {
    /// Its id and where it stands.
    pub job: Job,
    /// Name of its stream.
    pub stream: String,
    /// The one name of its event, once it has joined its lane.
    pub reference: Option<Ref>,
    /// Its lane.
    pub key: Option<Key>,
    /// Its type.
    pub kind: Option<Kind>,
    /// Name of the processor that answers it.
    pub processor: Option<String>,
    /// When it was accepted, to the millisecond.
    pub created_at: Timestamp,
    /// Who submitted it.
    pub caller: Option<String>,
    /// The job that it runs again.
    pub retry_of: Option<JobId>,
}

impl JobStatus {
    /// The one word for it.
    pub fn status(&self) -> Status {
        match self {
            Self::Scheduled { .. } => Status::Scheduled,
            Self::Pending { lane, .. } => lane_status(lane.as_ref()),
            Self::Ended { end, .. } => Status::Ended(end.end),
        }
    }

    /// Whether somebody who waits for the job should be told: it has ended, or it is parked and will not go on by itself.
    pub fn is_settled(&self) -> bool {
        let status = self.status();
        status.is_terminal() || status == Status::Parked
    }

    /// Attempts so far, the one that runs included, as far as they are known: a first run shows after a second.
    pub fn attempts(&self) -> u32 {
        match self {
            Self::Scheduled { .. } => 0,
            Self::Pending { lane, .. } => lane.as_ref().map_or(0, |lane| {
                let runs = matches!(lane.block, Some(Block::Running { .. } | Block::Claimed(_)));
                lane.attempts + u32::from(runs)
            }),
            Self::Ended { end, .. } => end.attempts,
        }
    }

    /// When its last run began, if it is known.
    pub fn started_at(&self) -> Option<Timestamp> {
        match self {
            Self::Scheduled { .. } => None,
            Self::Pending { lane, .. } => match lane.as_ref()?.block.as_ref()? {
                Block::Running { since, .. } if since.0 > 0 => Some(*since),
                _ => None,
            },
            Self::Ended { end, .. } => end.started_at,
        }
    }

    /// When it ended.
    pub fn finished_at(&self) -> Option<Timestamp> {
        match self {
            Self::Ended { end, .. } => Some(end.finished_at),
            Self::Scheduled { .. } | Self::Pending { .. } => None,
        }
    }

    /// When it joins its lane or is tried again.
    pub fn due(&self) -> Option<Due> {
        match self {
            Self::Scheduled { due } => Some(*due),
            Self::Pending { lane, .. } => match lane.as_ref()?.block.as_ref()? {
                Block::Retry { due, .. } | Block::Hold { due } => Some(*due),
                _ => None,
            },
            Self::Ended { .. } => None,
        }
    }

    /// What its handler last said of its progress, while it runs.
    pub fn progress(&self) -> Option<&Bytes> {
        let Self::Pending {
            lane: Some(LaneRecord { block: Some(Block::Running { progress, .. }), .. }), ..
        } = self
        else {
            return None;
        };
        (!progress.is_empty()).then_some(progress)
    }

    /// What went wrong last.
    pub fn error(&self) -> Option<String> {
        let error = match self {
            Self::Scheduled { .. } => return None,
            Self::Pending { lane, .. } => match lane.as_ref()?.block.as_ref()? {
                Block::Retry { cause, .. } | Block::Parked { cause, .. } => cause,
                _ => return None,
            },
            Self::Ended { end, .. } => &end.error,
        };
        (!error.is_empty()).then(|| String::from_utf8_lossy(error).into_owned())
    }

    /// What its handler returned, if it was asked for.
    pub fn result(&self) -> Option<&Bytes> {
        match self {
            Self::Ended { result, .. } => result.as_ref(),
            Self::Scheduled { .. } | Self::Pending { .. } => None,
        }
    }

    /// Its event, once it has joined its lane.
    pub(crate) fn event(&self) -> Option<EventId> {
        match self {
            Self::Scheduled { .. } => None,
            Self::Pending { event, .. } => Some(*event),
            Self::Ended { end, .. } => (end.id.0 > 0).then_some(end.id),
        }
    }
}

/// The status of the event that is the head of a lane with this record.
fn lane_status(lane: Option<&LaneRecord>) -> Status {
    match lane.and_then(|lane| lane.block.as_ref()) {
        Some(Block::Retry { .. }) => Status::Retrying,
        Some(Block::Parked { .. }) => Status::Parked,
        Some(Block::Running { .. } | Block::Claimed(_)) => Status::Running,
        Some(Block::Hold { .. } | Block::Paused { .. } | Block::Diverting { .. }) | None => Status::Waiting,
    }
}

/// A job from what the store says of it.
pub(super) fn job_of(id: JobId, view: JobView) -> Result<Job, JobError> {
    let status = match view.state {
        JobState::Unknown => return Err(JobError::Unknown(id)),
        JobState::Gone => return Err(JobError::Gone(id)),
        JobState::Scheduled { due } => JobStatus::Scheduled { due },
        JobState::Pending { id, key, lane } => JobStatus::Pending { event: id, key, lane },
        JobState::Ended { end, result, keep_until } => JobStatus::Ended { end, result, keep_until },
    };
    Ok(Job { id, status })
}
