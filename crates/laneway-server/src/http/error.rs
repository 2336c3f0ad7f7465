//! The only map from errors to answers: every error of ours becomes a [`Failure`], and every failure is answered as
//! RFC 9457 has it.

use axum::http::HeaderValue;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::response::{IntoResponse, Response};
use laneway::core::{Conflict, ConflictReason, FullReason, Refusal, StoreError};
use laneway::engine::DefineError;
use laneway::engine::job::JobError;
use laneway::engine::lane::{OperateError, Refused};
use laneway::engine::log::{AppendError, CatalogueError};
use laneway::engine::observe::LookError;
use laneway::engine::upkeep::ScheduleError;
use laneway_client::{Problem, wire};

use super::answer;
use super::code::Code;

/// Answer of every call.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a call was not done.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(super) code: Code,
    pub(crate) detail: String,
    /// What became of each, when a call was about several and nothing came of any.
    pub(super) each: Option<Each>,
}

/// What became of each of several things that a call was about.
#[derive(Debug, Clone, serde::Serialize)]
#[serde(untagged)]
pub(super) enum Each {
    Events { events: Vec<wire::EventReceipt> },
    DeadLetters(wire::DeadAnswers),
}

/// Seconds after which a caller may try again.
const RETRY_AFTER_SECS: u32 = 1;

impl Failure {
    pub(super) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), each: None }
    }

    /// A value that cannot be used: names field, value and limit.
    pub(super) fn value(field: &str, value: impl std::fmt::Display, limit: impl std::fmt::Display) -> Self {
        Self::new(Code::InvalidValue, format!("{field} is {value}, must be {limit}"))
    }

    /// The failure of one event of several.
    pub(super) fn at(self, index: usize) -> Self {
        Self { detail: format!("event {index}: {}", self.detail), ..self }
    }

    /// Streams of that name are written by Laneway itself: what is read there must be true.
    pub(super) fn own_stream(field: &str, stream: &str) -> Result<()> {
        if stream.starts_with('_') {
            return Err(Self::value(field, format!("{stream:?}"), "a name that does not begin with _"));
        }
        Ok(())
    }

    /// Nobody could be named.
    pub(super) fn no_processor(stream: &str) -> Self {
        let detail = format!(
            "stream {stream:?} has no processor; register one: PUT /v1/processors/NAME with \
             {{\"stream\":{stream:?},\"pull\":true}}"
        );
        Self::new(Code::ProcessorRequired, detail)
    }

    /// Something of ours that should not be: logged, and told without its inside.
    fn internal(error: &(dyn std::error::Error + 'static)) -> Self {
        tracing::error!(error = %chain(error), "a call failed for a reason of our own");
        Self::new(Code::Internal, "the server's log says more")
    }

    /// As it goes over the wire.
    pub(super) fn problem(&self) -> Problem {
        Problem {
            kind: format!("urn:laneway:error:{}", self.code.name()),
            title: self.code.title().to_owned(),
            status: self.code.status().as_u16(),
            detail: self.detail.clone(),
            code: self.code.name().to_owned(),
            retryable: self.code.is_retryable(),
        }
    }
}

/// A whole answer for a connection that gets no place.
pub(crate) fn no_place_left() -> Vec<u8> {
    let detail = "all connections (http.connections_max) are taken by calls under way";
    let failure = Failure::new(Code::Overloaded, detail);
    let body = answer::line(&failure.problem());
    let head = format!(
        "HTTP/1.1 {}\r\ncontent-type: application/problem+json\r\nretry-after: {RETRY_AFTER_SECS}\r\nconnection: \
         close\r\ncontent-length: {}\r\n\r\n",
        failure.code.status(),
        body.len()
    );
    [head.into_bytes(), body].concat()
}

/// An error and its causes, in one line.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut told: Vec<String> = causes.map(ToString::to_string).collect();
    told.dedup();
    told.join(": ")
}

/// A problem, and what became of each.
#[derive(serde::Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    problem: Problem,
    #[serde(flatten)]
    each: &'a Option<Each>,
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let told = Told { problem: self.problem(), each: &self.each };
        let mut response = (self.code.status(), answer::line(&told)).into_response();
        response.extensions_mut().insert(self.code);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.code.is_retryable() {
            headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECS));
        }
        if self.code == Code::TokenRequired {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"laneway\""));
        }
        response
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::new(Code::InvalidValue, refusal.to_string())
    }
}

impl From<&StoreError> for Failure {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::Conflict(conflict) => Self::new(code_of(conflict), conflict.to_string()),
            StoreError::Trimmed { first, .. } => {
                Self::new(Code::EventTrimmed, format!("the first event still there is {first}"))
            }
            StoreError::Full(full @ FullReason::Pending { .. }) => {
                Self::new(Code::StreamFull, full.to_string())
            }
            StoreError::Full(full @ FullReason::Store { .. }) => Self::new(Code::StoreFull, full.to_string()),
            StoreError::Unknown { .. }
            | StoreError::Fenced { .. }
            | StoreError::Moved { .. }
            | StoreError::Adopt { .. } => {
                tracing::warn!(error = %chain(error), "the store gave no answer");
                Self::new(Code::StoreUnavailable, "the call may or may not have happened: repeat it")
            }
            StoreError::Down { reason } => Self::new(Code::StoreDown, reason.clone()),
            StoreError::Refused(refusal) => refusal.clone().into(),
            StoreError::NotFound { .. } | StoreError::Corrupt { .. } => Self::internal(error),
        }
    }
}

fn code_of(conflict: &Conflict) -> Code {
    match conflict.reason {
        ConflictReason::DedupBody { .. } => Code::DedupConflict,
        ConflictReason::Prev { .. } => Code::PrevConflict,
        ConflictReason::ObjectVersion { .. } => Code::ObjectConflict,
        ConflictReason::Version { .. } => Code::StreamConflict,
        ConflictReason::AlreadyDue => Code::AlreadyFinished,
        ConflictReason::Unfinished => Code::JobUnfinished,
        ConflictReason::OriginTerm { .. } => Code::Internal,
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::from(&error)
    }
}

impl From<CatalogueError> for Failure {
    fn from(error: CatalogueError) -> Self {
        match error {
            CatalogueError::NoStream(name) => Self::new(
                Code::StreamNotFound,
                format!(
                    "stream {name:?} does not exist; create it: PUT /v1/streams/{name} with {{\"partitions\":16}}"
                ),
            ),
            CatalogueError::NoProcessor(name) => Self::new(
                Code::ProcessorNotFound,
                format!(
                    "processor {name:?} does not exist; create it: PUT /v1/processors/{name} with \
                     {{\"stream\":\"orders\",\"pull\":true}}"
                ),
            ),
            CatalogueError::Store(error) => error.into(),
        }
    }
}

impl From<AppendError> for Failure {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Refused { .. } => Self::new(Code::InvalidValue, error.to_string()),
            AppendError::Catalogue(error) => error.into(),
        }
    }
}

impl From<DefineError> for Failure {
    fn from(error: DefineError) -> Self {
        match error {
            DefineError::Settings(_) => Self::new(Code::InvalidValue, error.to_string()),
            DefineError::AlreadyRuns(_) | DefineError::NotRunning(_) => {
                Self::new(Code::ProcessorConflict, error.to_string())
            }
            DefineError::Catalogue(error) => error.into(),
            DefineError::Store(error) => error.into(),
        }
    }
}

impl From<JobError> for Failure {
    fn from(error: JobError) -> Self {
        let code = match error {
            JobError::Unknown(_) => Code::JobNotFound,
            JobError::Gone(_) => Code::JobGone,
            JobError::AlreadyFinished(_) => Code::AlreadyFinished,
            JobError::Unfinished(_) => Code::JobUnfinished,
            JobError::NotRetryable { .. } => Code::JobUnfinished,
            JobError::EventGone(_) => Code::JobGone,
            JobError::OtherBody { .. } => Code::DedupConflict,
            JobError::ProcessorRequired { stream, processors } if processors.is_empty() => {
                return Self::no_processor(&stream);
            }
            JobError::ProcessorRequired { .. } => Code::ProcessorRequired,
            JobError::NoResponder { .. } => Code::ProcessorNotFound,
            JobError::NoSuchProcessor { .. } => Code::ProcessorNotFound,
            JobError::NotMade(_) => Code::StaleGeneration,
            JobError::Refused(refusal) => return refusal.into(),
            JobError::Append(error) => return error.into(),
            JobError::Store(error) => return error.into(),
            JobError::Shared(error) => return Self::from(&*error),
        };
        Self::new(code, error.to_string())
    }
}

impl From<LookError> for Failure {
    fn from(error: LookError) -> Self {
        match error {
            LookError::Catalogue(error) => error.into(),
            LookError::Job(error) => error.into(),
            LookError::Store(error) => error.into(),
        }
    }
}

impl From<OperateError> for Failure {
    fn from(error: OperateError) -> Self {
        match error {
            OperateError::Catalogue(error) => error.into(),
            OperateError::Store(error) => error.into(),
        }
    }
}

impl From<ScheduleError> for Failure {
    fn from(error: ScheduleError) -> Self {
        match error {
            ScheduleError::NotFound(name) => {
                let detail = format!(
                    "schedule {name:?} does not exist; create it: PUT /v1/schedules/{name} with \
                     {{\"stream\":\"orders\",\"every\":\"10m\"}}"
                );
                Self::new(Code::ScheduleNotFound, detail)
            }
            ScheduleError::Changed(_) => Self::new(Code::PreconditionFailed, error.to_string()),
            ScheduleError::Refused(refusal) => refusal.into(),
            ScheduleError::Catalogue(error) => error.into(),
            ScheduleError::Store(error) => error.into(),
            ScheduleError::Stored(_) => Self::internal(&error),
        }
    }
}

impl From<Refused> for Failure {
    fn from(why: Refused) -> Self {
        let code = match why {
            Refused::Running => Code::EventRunning,
            Refused::ClaimLost => Code::ClaimLost,
            Refused::SuccessorsDone => Code::SuccessorsDone,
            Refused::EarlierDead => Code::EarlierDead,
            Refused::WholeLane => Code::WholeLane,
            Refused::Trimmed => Code::EventTrimmed,
            Refused::Stale => Code::StaleGeneration,
            Refused::HeadersFull => Code::HeadersFull,
            // What this program files it can read.
            Refused::Malformed => Code::Internal,
        };
        Self::new(code, why.reason())
    }
}

#[cfg(test)]
mod tests {
    use laneway::core::{EventId, Partition, Shard, StreamId};

    use super::*;

    fn check(error: StoreError, code: Code, says: &str) {
        let failure = Failure::from(error);
        assert!(failure.code == code && failure.detail.contains(says), "{failure:?}");
    }

    /// What no call can cause from outside.
    #[test]
    fn faults_of_the_store_have_codes_of_their_own() {
        let shard = Shard { stream: StreamId(1), partition: Partition(2) };
        check(StoreError::Trimmed { shard, first: EventId(7) }, Code::EventTrimmed, "is 7");
        let full = FullReason::Store { reason: "no space left on the disk".to_owned() };
        check(StoreError::Full(full), Code::StoreFull, "no space left");
        check(StoreError::Down { reason: "a sync failed".to_owned() }, Code::StoreDown, "a sync failed");
        let source = Box::new(std::io::Error::other("secret path"));
        check(
            StoreError::Unknown { action: "append", source },
            Code::StoreUnavailable,
            "may or may not have happened",
        );
        check(StoreError::conflict(ConflictReason::Unfinished), Code::JobUnfinished, "has not ended");
    }

    #[test]
    fn the_inside_of_a_fault_is_not_told() {
        let failure = Failure::from(StoreError::Corrupt { what: "secret path".to_owned() });
        assert!(failure.code == Code::Internal && !failure.detail.contains("secret"), "{failure:?}");
    }
}
