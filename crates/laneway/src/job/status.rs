//! Where a job stands.

use laneway_core::{Block, Status};
use laneway_engine::job::JobStatus as EngineStatus;

use super::progress::Progress;

/// Where a job stands; see [`JobHandle::status`](crate::JobHandle::status).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobStatus {
    /// The one word for it.
    pub status: Status,
    /// Attempts so far, as far as they are known: a first run that has taken less than a second is not.
    pub attempts: u32,
    /// How far its handler says it is; only while it runs.
    pub progress: Option<Progress>,
    /// What went wrong last.
    pub error: Option<String>,
}

impl JobStatus {
    pub(super) fn of(status: &EngineStatus) -> Self {
        let mut told = Self { status: status.status(), attempts: 0, progress: None, error: None };
        match status {
            EngineStatus::Scheduled { .. } => {}
            EngineStatus::Pending { lane, .. } => {
                told.attempts = lane.as_ref().map_or(0, |lane| lane.attempts);
                match lane.as_ref().and_then(|lane| lane.block.as_ref()) {
                    Some(Block::Running { progress, .. }) => told.progress = Progress::of(progress),
                    Some(Block::Retry { cause, .. } | Block::Parked { cause, .. }) => {
                        told.error = Some(String::from_utf8_lossy(cause).into_owned());
                    }
                    _ => {}
                }
            }
            EngineStatus::Ended { end, .. } => {
                told.attempts = end.attempts;
                let error = String::from_utf8_lossy(&end.error).into_owned();
                told.error = (!error.is_empty()).then_some(error);
            }
        }
        told
    }
}
