//! What a handler returned, checked before any of it counts: names become numbers, sizes are held against their limits,
//! and a result that is too large for a commit is stashed.
//!
//! A commit may then fail by its fence or by the store, never by what a handler gave (contract 1.15). So what must be
//! committed in one step, an event with its emits or all events of an answer that changes the state, is held to a share of
//! what a commit may carry.

use std::sync::Arc;

use bytes::Bytes;
use laneway_core::limits::{
    CAUSE_BYTES_MAX, CHUNK_BYTES_MAX, COMMIT_BYTES_MAX, EMITS_PER_COMMIT_MAX, HOLD_MAX, RESULT_BYTES_MAX,
    RESULT_INLINE_BYTES_MAX, VALUE_BYTES_MAX,
};
use laneway_core::store::{Emit, JobResult, Stash};
use laneway_core::{
    Delay, DelayMode, Draft, Event, Headers, Mode, Refusal, Shard, StartAfter, Store, StoreError, Timestamp,
};

use super::gather::emit_bytes;
use crate::handler::{Done, Emission, Failure, LaneAnswer, Retry, StateChange, WhenDurable, check_carried};
use crate::job::headers::is_of_user;
use crate::lane::Waiting;
use crate::log::{Catalogue, check_priority};
use crate::observe::{carried_on, caused_by};
use crate::service::Env;

/// Name of the header that counts how often an event was emitted by the handling of another.
pub(crate) const HOPS: &str = "laneway-hops";
/// Emits after emits after emits end here.
const HOPS_MAX: u32 = 32;
/// Emits that are committed in one step.
const EMITS_MAX: usize = EMITS_PER_COMMIT_MAX / 2;
/// Their bytes, headers included.
const EMIT_BYTES_MAX: usize = COMMIT_BYTES_MAX / 4;
/// Bytes of the results that go into the commit with a state; the others are stashed, however small.
const INLINE_BYTES_MAX: usize = COMMIT_BYTES_MAX / 12;

/// An answer that can be committed as it is.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) done: Vec<PreparedDone>,
    pub(crate) state: StateChange,
    pub(crate) failure: Option<Failure>,
    pub(crate) when_durable: WhenDurable,
}

#[derive(Debug)]
pub(crate) struct PreparedDone {
    pub(crate) result: JobResult,
    pub(crate) emits: Vec<Emit>,
}

/// Prepares the answer for one lane's events. What cannot be committed fails its event, with the reason.
///
/// Most answers need nothing from anybody; the others are looked after in a box of their own, so that they do not make
/// every run large.
pub(crate) async fn prepare(
    env: &Env,
    store: &dyn Store,
    catalogue: &Catalogue,
    shard: Shard,
    events: &[Arc<Waiting>],
    mut answer: LaneAnswer,
) -> Prepared {
    if let Some(failure) = &mut answer.failure {
        shorten(&mut failure.error);
    }
    if let StateChange::Set(bytes) = &answer.state
        && let Err(refusal) = Refusal::check_max("state bytes", bytes.len(), VALUE_BYTES_MAX)
    {
        return failed(Vec::new(), &refusal.to_string(), Retry::Never, answer.when_durable);
    }
    if answer.done.iter().all(is_plain) && (!is_whole(&answer) || inline_bytes(&answer) <= INLINE_BYTES_MAX) {
        return plain(events, answer);
    }
    Box::pin(prepare_done(env, store, catalogue, shard, events, answer)).await
}

/// Whether all events of an answer must be committed in one step: its state is that after all of them.
fn is_whole(answer: &LaneAnswer) -> bool {
    !matches!(answer.state, StateChange::Keep)
}

fn inline_bytes(answer: &LaneAnswer) -> usize {
    answer.done.iter().flat_map(|done| &done.result).map(Bytes::len).sum()
}

/// Whether a result goes into the commit as it is and nothing is emitted.
fn is_plain(done: &Done) -> bool {
    done.emits.is_empty() && done.result.as_ref().is_none_or(|bytes| bytes.len() <= RESULT_INLINE_BYTES_MAX)
}

fn plain(events: &[Arc<Waiting>], answer: LaneAnswer) -> Prepared {
    let inline = |(waiting, done): (&Arc<Waiting>, Done)| {
        let result = wanted(&waiting.event, done.result).map_or(JobResult::None, JobResult::Inline);
        PreparedDone { result, emits: Vec::new() }
    };
    Prepared {
        done: events.iter().zip(answer.done).map(inline).collect(),
        state: answer.state,
        failure: answer.failure,
        when_durable: answer.when_durable,
    }
}

/// Nobody asks for the result of an event that is no job.
fn wanted(event: &Event, result: Option<Bytes>) -> Option<Bytes> {
    result.filter(|_| event.job.is_some())
}

async fn prepare_done(
    env: &Env,
    store: &dyn Store,
    catalogue: &Catalogue,
    shard: Shard,
    events: &[Arc<Waiting>],
    answer: LaneAnswer,
) -> Prepared {
    let whole = is_whole(&answer);
    let LaneAnswer { done, state, failure, when_durable } = answer;
    let mut prepared = Vec::with_capacity(done.len());
    let (mut together, mut inline) = (Together::default(), 0);
    for (waiting, done) in events.iter().zip(done) {
        let event = &waiting.event;
        let emits = match emits(env, catalogue, event, done.emits).await {
            Ok(emits) => emits,
            Err(error) => return failed(prepared, &error, Retry::Never, when_durable),
        };
        if whole && let Err(refusal) = together.add(&emits) {
            // None of them, because no state that was given belongs to a part of them.
            return failed(Vec::new(), &refusal.to_string(), Retry::Never, when_durable);
        }
        let room = if whole { INLINE_BYTES_MAX - inline } else { RESULT_INLINE_BYTES_MAX };
        let result = match wanted(event, done.result) {
            None => JobResult::None,
            Some(bytes) if bytes.len() <= room.min(RESULT_INLINE_BYTES_MAX) => {
                inline += bytes.len();
                JobResult::Inline(bytes)
            }
            Some(bytes) => match stash(env, store, shard, event, bytes).await {
                Ok(stashed) => stashed,
                Err(StoreError::Refused(refusal)) => {
                    return failed(prepared, &refusal.to_string(), Retry::Never, when_durable);
                }
                Err(error) => {
                    let error = format!("could not keep the result: {error}");
                    return failed(prepared, &error, Retry::ByPolicy, when_durable);
                }
            },
        };
        prepared.push(PreparedDone { result, emits });
    }
    Prepared { done: prepared, state, failure, when_durable }
}

/// The emits of an answer that changes the state.
#[derive(Default)]
struct Together {
    count: usize,
    bytes: usize,
}

impl Together {
    fn add(&mut self, emits: &[Emit]) -> Result<(), Refusal> {
        self.count += emits.len();
        self.bytes += emits.iter().map(emit_bytes).sum::<usize>();
        Refusal::check_max("emits of an answer with a state", self.count, EMITS_MAX)?;
        Refusal::check_max("bytes of the emits of an answer with a state", self.bytes, EMIT_BYTES_MAX)
    }
}

/// The events before the faulty one are done all the same, but without the state that was meant to go with all of them.
fn failed(done: Vec<PreparedDone>, error: &str, retry: Retry, when_durable: WhenDurable) -> Prepared {
    let mut error = error.to_owned();
    shorten(&mut error);
    Prepared { done, state: StateChange::Keep, failure: Some(Failure { error, retry }), when_durable }
}

/// Cuts a text to what is kept of causes and reasons.
pub(crate) fn shorten(error: &mut String) {
    let mut end = error.len().min(CAUSE_BYTES_MAX);
    while !error.is_char_boundary(end) {
        end -= 1;
    }
    error.truncate(end);
}

async fn emits(
    env: &Env,
    catalogue: &Catalogue,
    cause: &Event,
    emissions: Vec<Emission>,
) -> Result<Vec<Emit>, String> {
    if emissions.is_empty() {
        return Ok(Vec::new());
    }
    Refusal::check_max("emits of one event", emissions.len(), EMITS_MAX)
        .map_err(|refusal| refusal.to_string())?;
    let hops = hops_of(&cause.headers) + 1;
    if hops > HOPS_MAX {
        return Err(format!("emits after emits: {hops} hops, at most {HOPS_MAX}"));
    }
    let context = caused_by(cause);
    let mut emits = Vec::with_capacity(emissions.len());
    for Emission { stream, mut draft } in emissions {
        let info = catalogue.stream(&stream).await.map_err(|error| format!("emit to {stream}: {error}"))?;
        let own = draft
            .headers
            .iter()
            .filter(|(name, _)| is_of_user(name))
            .map(|(name, value)| (name.to_owned(), value.to_vec()));
        let headers: Vec<_> = own.chain([(HOPS.to_owned(), hops.to_string().into_bytes())]).collect();
        let headers = Headers::new(headers).map_err(|refusal| format!("emit to {stream}: {refusal}"))?;
        draft.headers = carried_on(context.as_ref(), headers);
        check_emit(&draft, info.settings.mode, env.now().calendar)
            .map_err(|refusal| format!("emit to {stream}: {refusal}"))?;
        emits.push(Emit { stream: info.id, draft });
    }
    let bytes = emits.iter().map(emit_bytes).sum();
    Refusal::check_max("bytes of the emits of one event", bytes, EMIT_BYTES_MAX)
        .map_err(|refusal| refusal.to_string())?;
    Ok(emits)
}

/// Whatever its stream could refuse is refused here: later it would hold up all emits of its seat.
fn check_emit(draft: &Draft, mode: Mode, now: Timestamp) -> Result<(), Refusal> {
    draft.check()?;
    check_priority(draft)?;
    check_carried(draft)?;
    if mode == Mode::Latest && draft.key.is_none() {
        return Err(Refusal::new("key", "absent", "set in a stream of mode latest"));
    }
    if let Some(Delay { until: StartAfter::At(at), mode: DelayMode::Hold }) = draft.delay
        && at > now.after(HOLD_MAX)
    {
        let limit = format!("at most {HOLD_MAX:?} from now with delay_mode hold");
        return Err(Refusal::new("run_at", at.0.to_string(), limit));
    }
    Ok(())
}

fn hops_of(headers: &Headers) -> u32 {
    let text = headers.get(HOPS).and_then(|value| std::str::from_utf8(value).ok());
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

async fn stash(
    env: &Env,
    store: &dyn Store,
    shard: Shard,
    event: &Event,
    bytes: Bytes,
) -> Result<JobResult, StoreError> {
    Refusal::check_max("result bytes", bytes.len(), RESULT_BYTES_MAX)?;
    let nonce = env.nonce();
    let mut chunks = 0;
    for start in (0..bytes.len()).step_by(CHUNK_BYTES_MAX) {
        let chunk = bytes.slice(start..bytes.len().min(start + CHUNK_BYTES_MAX));
        store.stash(Stash { shard, id: event.id, nonce, index: chunks, bytes: chunk }).await?;
        chunks += 1;
    }
    Ok(JobResult::Stashed { nonce, chunks })
}
