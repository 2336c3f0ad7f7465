//! Samples of every family: round trips, and any bytes at all. Only compiled for tests.

use std::time::Duration;

use laneway_core::event::Dedup;
use laneway_core::limits::NUMBER_MAX;
use laneway_core::store::{
    DeadLetter, Emit, Ending, JobEnd, JobResult, Receipt, RedriveTo, RequestOp, Reset, SeatStatus,
};
use laneway_core::{
    Block, Bytes, Claim, CommitId, Delay, DelayMode, Draft, Due, Event, EventId, Fence, Headers, Incarnation,
    JobDraft, JobId, JobMark, JobNumber, Key, Kind, LaneName, LaneRecord, Mode, Nonce, Partition, Passed,
    ProcessorId, ProcessorInfo, Seq, Shard, ShardInfo, StartAfter, StartAt, Steady, StreamId, StreamInfo,
    StreamSettings, Term, Terminal, Timestamp, TokenId, Window,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::{Chunk, Filed, Numbered, Remembered, ScheduledJob, Seen, Token, Value, Waiting};
use crate::machine::{SeatHead, SeatState, StoredEnd};

pub(super) fn bytes() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..40).prop_map(Bytes::from)
}

pub(super) fn key() -> impl Strategy<Value = Key> {
    // Few different bytes, zero and its escape among them, so that names collide when they can.
    let byte = prop_oneof![Just(0u8), Just(1), Just(0xff), any::<u8>()];
    vec(byte, 1..12).prop_map(|bytes| Key::new(bytes).unwrap())
}

pub(super) fn id() -> impl Strategy<Value = EventId> {
    (0..=NUMBER_MAX).prop_map(EventId)
}

fn time() -> impl Strategy<Value = Timestamp> {
    any::<u64>().prop_map(Timestamp)
}

fn duration() -> impl Strategy<Value = Duration> {
    any::<u64>().prop_map(Duration::from_micros)
}

pub(super) fn due() -> impl Strategy<Value = Due> {
    prop_oneof![
        any::<u64>().prop_map(|due| Due::Steady(Steady(due))),
        any::<u64>().prop_map(|due| Due::Calendar(Timestamp(due))),
    ]
}

fn text() -> impl Strategy<Value = String> {
    vec(any::<char>(), 0..8).prop_map(String::from_iter)
}

fn headers() -> impl Strategy<Value = Headers> {
    vec((text(), vec(any::<u8>(), 0..10)), 0..3).prop_map(|pairs| Headers::new(pairs).unwrap())
}

fn kind() -> impl Strategy<Value = Kind> {
    text().prop_map(|text| Kind::new(text).unwrap())
}

pub(super) fn shard() -> impl Strategy<Value = Shard> {
    (0u32..1 << 24, 0u32..1 << 12)
        .prop_map(|(stream, partition)| Shard { stream: StreamId(stream), partition: Partition(partition) })
}

fn job() -> impl Strategy<Value = JobId> {
    let number = prop_oneof![id().prop_map(JobNumber::Event), (0..=NUMBER_MAX).prop_map(JobNumber::Schedule)];
    (time(), shard(), number).prop_map(|(time, shard, number)| JobId::new(time, shard, number))
}

fn terminal() -> impl Strategy<Value = Terminal> {
    prop::sample::select(Terminal::ALL.to_vec())
}

pub(super) fn event() -> impl Strategy<Value = Event> {
    let chain =
        (1..=NUMBER_MAX).prop_flat_map(|id| (Just(EventId(id)), option::of((0..id).prop_map(EventId))));
    let names = (option::of(key()), kind(), bytes(), headers());
    let version = (option::of(any::<u64>()), any::<u64>(), any::<bool>());
    let times = (time(), option::of(time()), option::of(due()));
    let mark = (job(), any::<u32>(), duration()).prop_map(|(id, responder, keep)| JobMark {
        id,
        responder: ProcessorId(responder),
        keep,
    });
    let rest = (option::of(any::<u64>().prop_map(Seq)), any::<u8>(), option::of(mark));
    (chain, names, version, times, rest).prop_map(|(chain, names, version, times, rest)| Event {
        id: chain.0,
        prev: chain.1,
        seq: rest.0,
        key: names.0,
        kind: names.1,
        data: names.2,
        headers: names.3,
        time: times.0,
        generation: version.0,
        incarnation: version.1,
        delete: version.2,
        priority: rest.1,
        expires_at: times.1,
        hold_until: times.2,
        job: rest.2,
    })
}

fn delay() -> impl Strategy<Value = Delay> {
    let until = prop_oneof![duration().prop_map(StartAfter::Delay), time().prop_map(StartAfter::At)];
    let mode = prop_oneof![Just(DelayMode::Join), Just(DelayMode::Hold)];
    (until, mode).prop_map(|(until, mode)| Delay { until, mode })
}

pub(super) fn draft() -> impl Strategy<Value = Draft> {
    let names = (option::of(key()), kind(), bytes(), headers());
    let version = (option::of(any::<u64>()), any::<u64>(), any::<bool>());
    let times = (option::of(delay()), any::<u8>(), option::of(duration()));
    let dedup =
        (bytes(), any::<u128>(), duration()).prop_map(|(id, body, window)| Dedup { id, body, window });
    let wish = (any::<u32>(), duration())
        .prop_map(|(responder, keep)| JobDraft { responder: ProcessorId(responder), keep });
    let rest = (option::of(dedup), option::of(option::of(id())), option::of(any::<u64>()), option::of(wish));
    (names, version, times, rest).prop_map(|(names, version, times, rest)| {
        let mut draft = Draft::new(names.0, names.1, names.2);
        draft.headers = names.3;
        (draft.generation, draft.incarnation, draft.delete) = version;
        (draft.delay, draft.priority, draft.ttl) = times;
        (draft.dedup, draft.expect_prev, draft.origin_seq, draft.job) = rest;
        draft
    })
}

pub(super) fn lane_name() -> impl Strategy<Value = LaneName> {
    prop_oneof![key().prop_map(LaneName::Key), id().prop_map(LaneName::Event)]
}

fn block() -> impl Strategy<Value = Block> {
    let claim = (any::<u128>(), bytes(), id(), any::<u64>()).prop_map(|(nonce, worker, through, expires)| {
        Block::Claimed(Claim { nonce: Nonce(nonce), worker, through, expires: Steady(expires) })
    });
    prop_oneof![
        (due(), bytes()).prop_map(|(due, cause)| Block::Retry { due, cause }),
        due().prop_map(|due| Block::Hold { due }),
        (bytes(), time()).prop_map(|(by, at)| Block::Paused { by, at }),
        (bytes(), time()).prop_map(|(cause, at)| Block::Parked { cause, at }),
        id().prop_map(|since| Block::Diverting { since }),
        (time(), bytes()).prop_map(|(since, progress)| Block::Running { since, progress }),
        claim,
    ]
}

fn record() -> impl Strategy<Value = LaneRecord> {
    let counts = (any::<u32>(), any::<u32>(), any::<bool>());
    (lane_name(), option::of(block()), option::of(id()), counts, option::of(id())).prop_map(
        |(lane, block, head, (attempts, crashes, started), ahead)| LaneRecord {
            lane,
            block,
            head,
            attempts,
            crashes,
            started,
            ahead,
        },
    )
}

fn reset() -> impl Strategy<Value = Reset> {
    let start = prop_oneof![
        Just(StartAt::Beginning),
        Just(StartAt::End),
        id().prop_map(StartAt::Id),
        time().prop_map(StartAt::Time),
    ];
    (start, any::<[bool; 2]>()).prop_map(|(start, [clear_states, quiet])| Reset {
        start,
        clear_states,
        quiet,
    })
}

fn op() -> impl Strategy<Value = RequestOp> {
    let to = prop_oneof![Just(RedriveTo::Place), Just(RedriveTo::Tail)];
    prop_oneof![
        id().prop_map(|id| RequestOp::Cancel { id }),
        (option::of(lane_name()), bytes()).prop_map(|(lane, by)| RequestOp::Pause { lane, by }),
        option::of(lane_name()).prop_map(|lane| RequestOp::Resume { lane }),
        (lane_name(), id()).prop_map(|(lane, id)| RequestOp::Retry { lane, id }),
        (lane_name(), id()).prop_map(|(lane, id)| RequestOp::Skip { lane, id }),
        (option::of(id()), lane_name(), to).prop_map(|(id, lane, to)| RequestOp::Redrive { id, lane, to }),
        reset().prop_map(RequestOp::Reset),
        (bytes(), bytes()).prop_map(|(claim, answer)| RequestOp::Settle { claim, answer }),
        (bytes(), duration()).prop_map(|(claim, lease)| RequestOp::Extend { claim, lease }),
        (option::of(id()), lane_name()).prop_map(|(id, lane)| RequestOp::Discard { id, lane }),
    ]
}

fn stored_end() -> impl Strategy<Value = StoredEnd> {
    let result = prop_oneof![
        Just(JobResult::None),
        bytes().prop_map(JobResult::Inline),
        (any::<u128>(), any::<u32>())
            .prop_map(|(nonce, chunks)| JobResult::Stashed { nonce: Nonce(nonce), chunks }),
    ];
    let times = (option::of(time()), time(), duration(), option::of(time()));
    (id(), terminal(), bytes(), any::<u32>(), times, result).prop_map(
        |(id, end, error, attempts, (started_at, finished_at, keep, kept), result)| StoredEnd {
            keep_until: kept.unwrap_or(finished_at.after(keep)),
            end: JobEnd { id, end, error, attempts, started_at, finished_at, result, keep },
        },
    )
}

fn receipt() -> impl Strategy<Value = Receipt> {
    let seq = option::of(any::<u64>().prop_map(Seq));
    prop_oneof![
        (id(), option::of(id()), seq, option::of(job())).prop_map(|(id, prev, seq, job)| Receipt::New {
            id,
            prev,
            seq,
            job
        }),
        (any::<u64>(), due(), time(), option::of(job()))
            .prop_map(|(ticket, due, due_at, job)| Receipt::Scheduled { ticket, due, due_at, job }),
    ]
}

fn seat_head() -> impl Strategy<Value = SeatHead> {
    let fence = (any::<u64>(), any::<u128>(), any::<u64>(), any::<u32>()).prop_map(
        |(term, nonce, version, adoptions)| Fence {
            term: Term(term),
            nonce: Nonce(nonce),
            version,
            adoptions,
        },
    );
    let status = prop_oneof![Just(SeatStatus::Run), Just(SeatStatus::Paused), Just(SeatStatus::Halted)];
    let marks = (any::<bool>(), any::<bool>(), option::of(any::<u128>().prop_map(CommitId)), status);
    (fence, [bytes(), bytes()], marks, any::<[u64; 4]>(), any::<[u32; 2]>()).prop_map(
        |(fence, [node, note], (was_clean, clean, last_commit, status), numbers, lives)| SeatHead {
            fence,
            node,
            was_clean,
            clean,
            last_commit,
            request_no: numbers[0],
            requests_applied: numbers[1],
            emitted: numbers[2],
            forwarded: numbers[3],
            status,
            note,
            incarnation: lives[0],
            states_life: lives[1],
        },
    )
}

fn window() -> impl Strategy<Value = Window> {
    (0..NUMBER_MAX, vec(1u64..70_000, 0..20)).prop_map(|(floor, above)| {
        let mut window = Window::at(EventId(floor));
        let ids: Passed = above.into_iter().map(|id| EventId(floor + id)).collect();
        window.pass(&ids, &[]);
        window
    })
}

fn stream() -> impl Strategy<Value = StreamInfo> {
    let settings = (
        any::<u32>(),
        any::<bool>(),
        [duration(), duration(), duration(), duration()],
        option::of(duration()),
        option::of(any::<u64>()),
        any::<u64>(),
        option::of(text()),
    )
        .prop_map(
            |(
                partitions,
                latest,
                [keep, dead_keep, keep_done, dedup_window],
                forget_lanes_after,
                max_pending,
                dedup_max,
                responder,
            )| {
                StreamSettings {
                    partitions,
                    mode: if latest { Mode::Latest } else { Mode::Queue },
                    keep,
                    max_pending,
                    dedup_max,
                    dedup_window,
                    dead_keep,
                    keep_done,
                    responder,
                    forget_lanes_after,
                }
            },
        );
    let processor = (any::<u32>(), text(), bytes()).prop_map(|(id, name, settings)| ProcessorInfo {
        id: ProcessorId(id),
        name,
        settings,
    });
    (any::<u32>(), text(), any::<u64>(), settings, any::<u32>(), vec(processor, 0..4)).prop_map(
        |(id, name, version, settings, layout, processors)| StreamInfo {
            id: StreamId(id),
            name,
            version,
            settings,
            layout,
            processors,
        },
    )
}

fn shard_info() -> impl Strategy<Value = ShardInfo> {
    let ids = (id(), id(), id(), any::<u64>(), any::<u64>());
    let flags = (any::<u128>(), any::<u32>(), any::<u32>(), any::<bool>());
    (flags, ids, time(), vec((id(), id()), 0..3)).prop_map(|(flags, ids, time, gaps)| ShardInfo {
        incarnation: Incarnation(flags.0),
        adoptions: flags.1,
        layout: flags.2,
        sealed: flags.3,
        first_id: ids.0,
        head: ids.1,
        trimmed: ids.2,
        first_term: Term(ids.3),
        scheduled: ids.4,
        time,
        gaps,
    })
}

/// One test per family: what is written is read back, and other bytes are refused or read, without a panic.
macro_rules! families {
    ($($name:ident: $family:ty = $sample:expr;)*) => {
        $(mod $name {
            use super::*;
            use crate::machine::codec::Stored;

            proptest! {
                #[test]
                fn reads_back_as_written(value in $sample) {
                    let row = value.to_row();
                    prop_assert_eq!(<$family>::from_row(row.clone().into()).unwrap(), value);
                    let mut longer = row.clone();
                    longer.push(0);
                    prop_assert!(<$family>::from_row(longer.into()).is_err());
                    let mut newer = row;
                    newer[0] += 1;
                    prop_assert!(<$family>::from_row(newer.into()).is_err());
                }

                #[test]
                fn any_bytes_are_read_or_refused(
                    value in $sample,
                    flips in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
                    noise in vec(any::<u8>(), 0..60),
                ) {
                    let mut row = value.to_row();
                    for (at, byte) in flips {
                        let at = at.index(row.len());
                        row[at] = byte;
                    }
                    drop(<$family>::from_row(row.into()));
                    drop(<$family>::from_row([vec![1], noise].concat().into()));
                }
            }
        })*
    };
}

families! {
    drafts: Draft = draft();
    waiting: Waiting = (due(), time(), draft())
        .prop_map(|(due, accepted_at, draft)| Waiting { due, accepted_at, draft });
    emits: Emit = (any::<u32>(), draft()).prop_map(|(stream, draft)| Emit { stream: StreamId(stream), draft });
    lane_names: LaneName = lane_name();
    lane_records: LaneRecord = record();
    requests: Filed = (any::<u128>(), op()).prop_map(|(token, op)| Filed { token: TokenId(token), op });
    tokens: Token = (any::<u64>(), option::of(time()), bytes())
        .prop_map(|(number, until, answer)| Token { number, until, answer });
    job_ends: StoredEnd = stored_end();
    scheduled_jobs: ScheduledJob =
        prop_oneof![
            id().prop_map(ScheduledJob::Joined),
            (stored_end(), option::of(time()))
                .prop_map(|(end, accepted_at)| ScheduledJob::Ended { end, accepted_at }),
        ];
    endings: Ending = (id(), terminal(), bytes(), option::of(id()))
        .prop_map(|(id, end, reason, winner)| Ending { id, end, reason, winner });
    dead_letters: DeadLetter = (event(), bytes(), any::<u32>(), time())
        .prop_map(|(event, cause, attempts, at)| DeadLetter { event, cause, attempts, at });
    remembered: Remembered = (receipt(), any::<u128>(), time(), option::of(id()))
        .prop_map(|(receipt, body, until, event)| Remembered { receipt, body, until, event });
    numbers: Numbered = any::<u64>().prop_map(Numbered);
    values: Value = (any::<u64>(), option::of(bytes())).prop_map(|(version, bytes)| Value { version, bytes });
    sources: Seen = any::<[u64; 2]>().prop_map(|[term, number]| Seen { term: Term(term), number });
    chunks: Chunk = (time(), bytes()).prop_map(|(until, bytes)| Chunk { until, bytes });
    streams: StreamInfo = stream();
    shards: ShardInfo = shard_info();
    seat_heads: SeatHead = seat_head();
    seats: SeatState = (seat_head(), window()).prop_map(|(head, window)| SeatState { head, window });
    passed: Passed = vec(id(), 0..30).prop_map(Passed::from_iter);
}
