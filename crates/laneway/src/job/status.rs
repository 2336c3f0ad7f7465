//! Where a job stands.

use laneway_core::{Block, Status};
use laneway_engine::job::JobStatus as EngineStatus;

use super::progress::Progress;

/// Where a job stands; see [`JobHandle::status`](crate::JobHandle::status).
///
/// ```
/// use laneway::prelude::*;
/// use laneway::testing::App;
/// use laneway::{Status, Terminal};
/// # #[derive(Job, Serialize, Deserialize)]
/// # #[job(key = "account", output = "u64")]
/// # struct MakeStatement { account: String }
///
/// async fn make(Job(_): Job<MakeStatement>, ctx: Ctx) -> Result<u64> {
///     ctx.progress(3, 120, "pages");
///     ctx.cancel().cancelled().await; // here a printer would be at work
///     Err(Error::permanent("stopped"))
/// }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<()> {
/// # let app = App::new();
/// # let statements = app.stream::<MakeStatement>("statements");
/// # app.processor("make", &statements, make);
/// # app.start().await?;
/// let ask = MakeStatement { account: "a1".to_owned() };
/// let (job, next) = (statements.submit(&ask).await?, statements.submit(&ask).await?);
/// app.advance(secs(5)).await;
/// let told = job.status().await?;
/// assert_eq!((told.status, told.progress.unwrap().to_string()), (Status::Running, "3 of 120: pages".to_owned()));
/// assert_eq!(next.why().await?, "event 1 of its lane runs");
///
/// job.cancel().await?;
/// app.advance(secs(1)).await;
/// let told = job.status().await?;
/// assert_eq!(told.status, Status::Ended(Terminal::Cancelled));
/// job.forget().await?;
/// assert!(job.status().await.is_err(), "it is gone");
/// # Ok(()) }
/// ```
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
