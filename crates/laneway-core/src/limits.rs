//! Every limit of the model, named, with the reason for its value. A caller that passes one gets a
//! [`crate::Refusal`] which names the field, the value and the limit, before anything has an effect.

use std::time::Duration;

use crate::clock::Timestamp;

/// Longest key in bytes: long enough for a path-like name, short enough to sit in an index page.
pub const KEY_BYTES_MAX: usize = 512;
/// Longest event type in bytes.
pub const KIND_BYTES_MAX: usize = 128;
/// Longest name of a stream or processor in bytes.
pub const NAME_BYTES_MAX: usize = 128;
/// Longest payload of one event in bytes.
pub const DATA_BYTES_MAX: usize = 1 << 20;
/// Most headers of one event.
pub const HEADERS_MAX: usize = 64;
/// Longest sum of names and values of the headers of one event in bytes.
pub const HEADERS_BYTES_MAX: usize = 16 << 10;
/// Most events in one append.
pub const EVENTS_PER_APPEND_MAX: usize = 1_000;
/// Most payload bytes in one append.
pub const APPEND_BYTES_MAX: usize = 16 << 20;
/// Longest dedup id in bytes.
pub const DEDUP_ID_BYTES_MAX: usize = 256;
/// Longest time for which a stream remembers dedup ids.
pub const DEDUP_WINDOW_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);
/// Most dedup ids that a partition may be asked to remember: each costs some 200 bytes.
pub const DEDUP_IDS_MAX: u64 = 100_000_000;
/// Longest name of an origin at which events have positions, in bytes.
pub const ORIGIN_BYTES_MAX: usize = 256;
/// Longest object or state value in bytes.
pub const VALUE_BYTES_MAX: usize = 1 << 20;
/// Longest state as a store keeps it: the handler's own, and where the newest wins the event done last beside it.
pub const STATE_STORED_BYTES_MAX: usize = VALUE_BYTES_MAX + DATA_BYTES_MAX + 64;
/// Most emits of one commit.
pub const EMITS_PER_COMMIT_MAX: usize = 10_000;
/// Most bytes of everything in one commit together.
pub const COMMIT_BYTES_MAX: usize = 24 << 20;
/// Longest result that a commit may carry inside; longer ones are stashed in chunks first.
pub const RESULT_INLINE_BYTES_MAX: usize = 1 << 20;
/// Longest result of a job in bytes.
pub const RESULT_BYTES_MAX: usize = 16 << 20;
/// Longest chunk of a stashed result in bytes.
pub const CHUNK_BYTES_MAX: usize = 1 << 20;
/// Longest text of a cause, reason or error kept with an event.
pub const CAUSE_BYTES_MAX: usize = 16 << 10;
/// Most streams ever created in one store: what a job id has room for. Numbers are never given again, because job ids
/// carry them. At one new stream a second they last half a year.
pub const STREAMS_MAX: u32 = (1 << 24) - 1;
/// Most partitions of one stream: what a job id has room for.
pub const PARTITIONS_MAX: u32 = 1 << 12;
/// Highest event id or schedule number: what a job id has room for.
pub const NUMBER_MAX: u64 = (1 << 48) - 1;
/// How far the ids of a shard jump when its store turns out to have lost a tail (contract 1.4) and the clock is no help.
pub const ADOPTION_JUMP: u64 = 1 << 20;
/// From when on the clock counts for that jump: the first of January 2026.
pub const ADOPTION_SINCE: Timestamp = Timestamp(1_767_225_600_000_000);
/// Ids that every millisecond counts for then: more than a shard on a server gives in one.
pub const CLOCK_IDS_PER_MILLI: u64 = 256;
/// Ids beyond which the clock counts no further, in the year 2052 or when it is wrong: a quarter of all ids is left to give.
pub const CLOCK_IDS_MAX: u64 = NUMBER_MAX / 4 * 3;
/// How many ids above the floor a seat may have settled out of order (contract 1.9).
pub const WINDOW_IDS: u64 = 65_536;
/// Most entries of a page of any list.
pub const PAGE_MAX: usize = 10_000;
/// Most payload bytes in one page of a read, so that a page is bounded whatever the events are.
pub const PAGE_BYTES_MAX: usize = 8 << 20;
/// Longest note that the owner of a seat keeps with it: who paused it, and a few numbers.
pub const NOTE_BYTES_MAX: usize = CAUSE_BYTES_MAX + 64;
/// Most urgent an event can be. 0 is the usual, 1 goes before it and 2 before that.
pub const PRIORITY_MAX: u8 = 2;
/// Longest answer to a request that is remembered with its token: a word and a reason.
pub const ANSWER_BYTES_MAX: usize = 1 << 10;
/// How long a request's token is remembered after it was applied.
pub const TOKEN_KEEP: Duration = Duration::from_secs(24 * 60 * 60);
/// How long `take` leaves a result readable (contract 1.12).
pub const TAKE_GRACE: Duration = Duration::from_secs(10 * 60);
/// Longest time an event with `delay_mode = "hold"` may hold up its lane (contract 1.10).
pub const HOLD_MAX: Duration = Duration::from_secs(60 * 60);
/// Longest delay: ten years, so that a mistyped unit is noticed.
pub const DELAY_MAX: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);
/// Most attempts at one event. More than a lane makes in a decade at the usual longest wait, so a number beyond it is a
/// mistake; whoever means "for ever" says this one.
pub const ATTEMPTS_MAX: u32 = 1_000_000;
/// Longest wait before the next attempt that a handler, a worker or a policy may ask for: a mistyped unit is noticed.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);
/// Longest time for which the end of a job is kept. Ends lie in the log, so what is kept holds back disk space for
/// everybody; what must last longer belongs into a system of record.
pub const JOB_KEEP_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);
/// Longest time for which a stream keeps events, dead letters or the ends of idle lanes: a century stands for "for ever".
pub const KEEP_MAX: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);
/// Longest life of a stashed chunk that no commit has named.
pub const CHUNK_KEEP: Duration = Duration::from_secs(60 * 60);
/// Longest name of a document in bytes.
pub const DOCUMENT_NAME_BYTES_MAX: usize = 256;
