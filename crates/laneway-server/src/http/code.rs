//! The codes of errors: stable names, each with its status. They are listed in `docs/reference/errors.md`.

use axum::http::StatusCode;

macro_rules! codes {
    ($($name:ident $text:literal $status:ident $retryable:literal $title:literal,)*) => {
        /// What kind of error it is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Code {
            $($name,)*
        }

        impl Code {
            /// All of them.
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its stable name.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The status it is answered with.
            pub(crate) fn status(self) -> StatusCode {
                match self { $(Self::$name => StatusCode::$status,)* }
            }

            /// Whether the same call may succeed later.
            pub(crate) fn is_retryable(self) -> bool {
                match self { $(Self::$name => $retryable,)* }
            }

            /// The kind in a few words.
            pub(crate) fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* }
            }
        }
    };
}

codes! {
    InvalidJson "invalid_json" BAD_REQUEST false "the body is no JSON",
    JsonTooDeep "json_too_deep" BAD_REQUEST false "the body is nested too deeply",
    UnknownField "unknown_field" BAD_REQUEST false "a field is not known",
    InvalidValue "invalid_value" BAD_REQUEST false "a value cannot be used",
    InvalidEncoding "invalid_encoding" BAD_REQUEST false "the body cannot be unpacked",
    ProcessorRequired "processor_required" BAD_REQUEST false "the processor must be named",
    TokenRequired "token_required" UNAUTHORIZED false "the call needs a valid token",
    ScopeRequired "scope_required" FORBIDDEN false "the token is not good for this call",
    ReadOnly "read_only" FORBIDDEN false "nothing may be changed here",
    HostNotAllowed "host_not_allowed" FORBIDDEN false "the request is for another host",
    OriginNotAllowed "origin_not_allowed" FORBIDDEN false "the request comes from a foreign page",
    NoRoute "no_route" NOT_FOUND false "there is no such call",
    StreamNotFound "stream_not_found" NOT_FOUND false "the stream does not exist",
    ProcessorNotFound "processor_not_found" NOT_FOUND false "the processor does not exist",
    EventNotFound "event_not_found" NOT_FOUND false "the event does not exist",
    JobNotFound "job_not_found" NOT_FOUND false "the job does not exist",
    ScheduleNotFound "schedule_not_found" NOT_FOUND false "the schedule does not exist",
    NodeNotFound "node_not_found" NOT_FOUND false "the node does not exist",
    LeaseNotFound "lease_not_found" NOT_FOUND false "the lease does not exist",
    DeadLetterNotFound "dead_letter_not_found" NOT_FOUND false "the event is no dead letter",
    MethodNotAllowed "method_not_allowed" METHOD_NOT_ALLOWED false "the call has another method",
    BodyTimeout "body_timeout" REQUEST_TIMEOUT true "the body does not come",
    StreamConflict "stream_conflict" CONFLICT false "the stream cannot be changed so",
    NodeConflict "node_conflict" CONFLICT false "no other node could take its work",
    ProcessorConflict "processor_conflict" CONFLICT false "the processor cannot be changed so",
    DedupConflict "dedup_conflict" CONFLICT false "the dedup id has another body",
    IdempotencyConflict "idempotency_conflict" CONFLICT false "the idempotency key has another body",
    PrevConflict "prev_conflict" CONFLICT false "the lane's last event is another one",
    ObjectConflict "object_conflict" CONFLICT false "the object has another version",
    StaleGeneration "stale_generation" CONFLICT false "a newer generation was accepted before",
    AlreadyFinished "already_finished" CONFLICT false "the job has ended",
    JobUnfinished "job_unfinished" CONFLICT true "the job has not ended",
    NothingWaits "nothing_waits" CONFLICT false "nothing waits in the lane",
    EventRunning "event_running" CONFLICT true "the event runs",
    ProcessorStopped "processor_stopped" CONFLICT true "the processor is paused or halted",
    SuccessorsDone "successors_done" CONFLICT false "later events of the lane are done",
    EarlierDead "earlier_dead" CONFLICT false "an earlier event of the lane is a dead letter",
    WholeLane "whole_lane" CONFLICT false "the lane comes back as a whole",
    HeadersFull "headers_full" CONFLICT false "the event has no room for another header",
    BackupUnavailable "backup_unavailable" CONFLICT false "the server makes no backups",
    BackupExists "backup_exists" CONFLICT false "the name of the backup is taken",
    BackupRunning "backup_running" CONFLICT true "another backup is being made",
    NotPull "not_pull" CONFLICT false "no worker can claim from this processor",
    ClaimLost "claim_lost" CONFLICT false "the claim is not the worker's any more",
    JobGone "job_gone" GONE false "the job is forgotten",
    EventTrimmed "event_trimmed" GONE false "the event is gone by retention",
    PreconditionFailed "precondition_failed" PRECONDITION_FAILED false "it is not as the caller wants it to be",
    BodyTooLarge "body_too_large" PAYLOAD_TOO_LARGE false "the body is too long",
    TooManyEvents "too_many_events" PAYLOAD_TOO_LARGE false "there are too many events in one call",
    UrlTooLong "url_too_long" URI_TOO_LONG false "path and query are too long",
    UnsupportedMediaType "unsupported_media_type" UNSUPPORTED_MEDIA_TYPE false "the body has another media type",
    UnsupportedEncoding "unsupported_encoding" UNSUPPORTED_MEDIA_TYPE false "the body is packed in another way",
    StreamFull "stream_full" TOO_MANY_REQUESTS true "the stream is full",
    RateLimited "rate_limited" TOO_MANY_REQUESTS true "the token calls too often",
    HeadersTooLarge "headers_too_large" REQUEST_HEADER_FIELDS_TOO_LARGE false "the headers are too many or too long",
    Internal "internal" INTERNAL_SERVER_ERROR false "something is broken here",
    BackupFailed "backup_failed" INTERNAL_SERVER_ERROR false "the backup could not be made",
    Overloaded "overloaded" SERVICE_UNAVAILABLE true "too much is under way",
    ShuttingDown "shutting_down" SERVICE_UNAVAILABLE true "the server is about to end",
    ClaimUndecided "claim_undecided" SERVICE_UNAVAILABLE true "nobody has decided about the claim yet",
    TooManyFollowers "too_many_followers" SERVICE_UNAVAILABLE true "too many follow events here",
    StoreUnavailable "store_unavailable" SERVICE_UNAVAILABLE true "the store gives no answer",
    StoreDown "store_down" SERVICE_UNAVAILABLE false "the store needs mending",
    StoreFull "store_full" INSUFFICIENT_STORAGE true "the store is full",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_has_every_code_with_its_status() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/errors.md");
        let text = std::fs::read_to_string(path).unwrap();
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| `")).collect();
        assert_eq!(rows.len(), Code::ALL.len());
        for (code, row) in Code::ALL.iter().zip(rows) {
            let retryable = if code.is_retryable() { "yes" } else { "no" };
            let (name, status, title) = (code.name(), code.status().as_u16(), code.title());
            assert!(
                row.starts_with(&format!("| `{name}` | {status} | {retryable} | {title} |")),
                "{code:?}: {row}"
            );
        }
    }
}
