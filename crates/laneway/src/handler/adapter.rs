//! From what the engine hands in to calls of handlers, and from their answers to what the engine settles.
//!
//! Lanes of one run go side by side, events of one lane one after the other: whoever takes single events gets them one
//! at a time also when the processor asked for batches, and saves commits. Whoever takes the heads of several lanes gets
//! those of one run in one call.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::join_all;
use laneway_core::{Event, Partition, Steady};
use laneway_engine::handler::{
    CancelToken, Done, Handler as EngineHandler, LaneAnswer, LaneRun, Retry, Run, Running, StateChange,
};

use super::function::Handler;
use crate::error::{Error, Result};
use crate::extract::{Ground, HeadBatch, OneByOne, Said, Scope, ScopeParts};
use crate::record::Record;

/// A handler whose type is forgotten.
pub(crate) type Erased = Arc<dyn Fn(Vec<LaneCall>) -> Running + Send + Sync>;

/// Events of one lane to run.
#[doc(hidden)]
pub struct LaneCall {
    ground: Arc<Ground>,
    partition: Partition,
    lane: LaneRun,
    cancel: CancelToken,
    deadline: Option<Steady>,
}

/// The handlers of one processor, by the type of event they take.
pub(crate) struct Adapter {
    pub(crate) ground: Arc<Ground>,
    pub(crate) routes: Vec<(&'static str, Erased)>,
}

/// Forgets the type of a handler.
pub(crate) fn erase<T: Record, Arguments, H: Handler<T, Arguments>>(handler: H) -> Erased {
    Arc::new(move |calls| {
        let handler = handler.clone();
        Box::pin(async move { handler.run(calls).await })
    })
}

impl EngineHandler for Adapter {
    fn call(&self, run: Run) -> Running {
        let routed = run.lanes.into_iter().map(|mut lane| {
            let kind = lane.events[0].kind.clone();
            // Another type behind it is for another handler: it comes again as the lane's head.
            let same = lane.events.iter().take_while(|event| event.kind == kind).count();
            lane.events.truncate(same);
            let call = LaneCall {
                ground: Arc::clone(&self.ground),
                partition: run.partition,
                lane,
                cancel: run.cancel.clone(),
                deadline: run.deadline,
            };
            (self.route(kind.as_str()), call)
        });
        let (routes, calls): (Vec<Option<usize>>, Vec<LaneCall>) = routed.unzip();
        match routes[0] {
            // Nearly always: nothing has to be taken apart and put together again.
            Some(route) if routes.iter().all(|other| *other == Some(route)) => (self.routes[route].1)(calls),
            _ => self.call_several(&routes, calls),
        }
    }
}

impl Adapter {
    fn route(&self, kind: &str) -> Option<usize> {
        let named = self.routes.iter().position(|(name, _)| *name == kind);
        // A single handler takes whatever its processor lets through.
        named.or_else(|| (self.routes.len() == 1).then_some(0))
    }

    /// Calls every handler with its lanes; the answers are in the order of the lanes.
    fn call_several(&self, routes: &[Option<usize>], calls: Vec<LaneCall>) -> Running {
        let mut shares: BTreeMap<Option<usize>, (Vec<usize>, Vec<LaneCall>)> = BTreeMap::new();
        for (place, (route, call)) in routes.iter().zip(calls).enumerate() {
            let (places, calls) = shares.entry(*route).or_default();
            places.push(place);
            calls.push(call);
        }
        let running = shares.into_iter().map(|(route, (places, calls))| {
            let running = match route {
                Some(route) => (self.routes[route].1)(calls),
                None => no_route(&calls),
            };
            async move { places.into_iter().zip(running.await).collect::<Vec<_>>() }
        });
        let running = join_all(running.collect::<Vec<_>>());
        Box::pin(async move {
            let mut answers: Vec<(usize, LaneAnswer)> = running.await.into_iter().flatten().collect();
            answers.sort_unstable_by_key(|(place, _)| *place);
            answers.into_iter().map(|(_, answer)| answer).collect()
        })
    }
}

fn no_route(calls: &[LaneCall]) -> Running {
    let answers = calls.iter().map(|call| {
        let kind = call.lane.events[0].kind.as_str();
        LaneAnswer::failed(format!("no handler for events of type {kind:?}"), Retry::Never)
    });
    Box::pin(std::future::ready(answers.collect()))
}

impl LaneCall {
    fn scope(&self, event: Event, attempt: u32, state: Option<Bytes>) -> Arc<Scope> {
        let parts = ScopeParts {
            ground: Arc::clone(&self.ground),
            partition: self.partition,
            event,
            attempt,
            fence: self.lane.fence,
            last_done: self.lane.last_done.clone(),
            progress: self.lane.progress.clone(),
            cancel: self.cancel.clone(),
            deadline: self.deadline,
        };
        Arc::new(Scope::new(parts, state))
    }
}

/// Runs lanes side by side.
pub(super) async fn side_by_side<A>(calls: Vec<LaneCall>, run: impl Fn(LaneCall) -> A) -> Vec<LaneAnswer>
where
    A: Future<Output = LaneAnswer>,
{
    join_all(calls.into_iter().map(run)).await
}

/// Runs the heads of several lanes in one call. `run` gets the runs of all of them for its other arguments.
pub(super) async fn together<T, F, A>(calls: Vec<LaneCall>, run: F) -> Vec<LaneAnswer>
where
    T: Record,
    F: FnOnce(Arc<Said>, HeadBatch<T>) -> A,
    A: Future<Output = Result<Option<Bytes>>>,
{
    let mut heads: Vec<(T, Arc<Scope>)> = Vec::with_capacity(calls.len());
    // Bytes that are no record fail alone.
    let fit: Vec<Option<LaneAnswer>> = calls
        .into_iter()
        .map(|mut call| {
            let head = call.lane.events.swap_remove(0);
            let state = call.lane.state.take().map(|state| state.bytes);
            let scope = call.scope(head, call.lane.attempt, state);
            scope
                .record()
                .map(|record| heads.push((record, scope)))
                .map_err(|error| failed(Vec::new(), error))
                .err()
        })
        .collect();
    let mut answers = Vec::new();
    if !heads.is_empty() {
        let is_one = heads.len() == 1;
        let (batch, said) = HeadBatch::new(heads);
        let returned = unless_panics(run(Arc::clone(&said), batch)).await;
        answers = said.into_answers(returned.map_err(|error| if is_one { error.of_one() } else { error }));
    }
    let mut answers = answers.into_iter();
    let answer = |unfit: Option<LaneAnswer>| unfit.or_else(|| answers.next()).expect("one answer per record");
    fit.into_iter().map(answer).collect()
}

/// Runs the events of a lane one after the other, each with the state that the one before left, until one fails.
pub(super) async fn each<F, A>(mut call: LaneCall, run: F) -> LaneAnswer
where
    F: Fn(Arc<Scope>) -> A,
    A: Future<Output = Result<Option<Bytes>>>,
{
    let mut state = call.lane.state.take().map(|state| state.bytes);
    let mut answer = LaneAnswer::default();
    for (index, event) in std::mem::take(&mut call.lane.events).into_iter().enumerate() {
        if index > 0 && call.cancel.is_cancelled() {
            break;
        }
        let attempt = if index == 0 { call.lane.attempt } else { 1 };
        let scope = call.scope(event, attempt, state.clone());
        match unless_panics(run(Arc::clone(&scope))).await.and_then(|result| scope.finish(result)) {
            Ok(finished) => {
                answer.done.push(finished.done);
                match &finished.state {
                    StateChange::Keep => continue,
                    StateChange::Set(bytes) => state = Some(bytes.clone()),
                    StateChange::Remove => state = None,
                }
                answer.state = finished.state;
            }
            Err(error) => {
                answer.failure = Some(error.of_one().into_failure());
                break;
            }
        }
    }
    answer
}

/// Runs the events of a lane in one call. `said` is what the handler says of them one by one.
pub(super) async fn whole<T, F, A>(mut call: LaneCall, said: &OneByOne, run: F) -> LaneAnswer
where
    T: Record,
    F: FnOnce(Arc<Scope>, Vec<T>) -> A,
    A: Future<Output = Result<Option<Bytes>>>,
{
    let events = std::mem::take(&mut call.lane.events);
    let state = call.lane.state.take().map(|state| state.bytes);
    let scope = call.scope(events[0].clone(), call.lane.attempt, state);
    let mut records = Vec::with_capacity(events.len());
    for event in &events {
        match crate::format::decode("the event's data", &event.data) {
            Ok(record) => records.push(record),
            Err(error) if records.is_empty() => return failed(Vec::new(), Error::permanent(error)),
            // It fails when it comes again as the lane's head; those before it are fine.
            Err(_) => break,
        }
    }
    let count = records.len();
    match unless_panics(run(Arc::clone(&scope), records)).await.and_then(|result| scope.finish(result)) {
        Ok(finished) => {
            let done = said.take_done(count, finished.done.result.as_ref());
            let mut answer = LaneAnswer { done, state: finished.state, ..LaneAnswer::default() };
            if let Some(last) = answer.done.last_mut() {
                last.emits = finished.done.emits;
            }
            answer
        }
        Err(error) => {
            let done = if scope.is_untouched() { said.done().min(count) } else { 0 };
            let error = if count - done <= 1 { error.of_one() } else { error };
            failed(said.take_done(done, None), error)
        }
    }
}

/// A panic is an error of the handler like any other. Which of the events of the call it was about, nobody knows; whoever
/// hands in a single one does.
async fn unless_panics<R>(running: impl Future<Output = Result<R>>) -> Result<R> {
    let ended = AssertUnwindSafe(running).catch_unwind().await;
    ended.unwrap_or_else(|panic| Err(Error::panicked(&*panic)))
}

fn failed(done: Vec<Done>, error: Error) -> LaneAnswer {
    LaneAnswer { done, failure: Some(error.into_failure()), ..LaneAnswer::default() }
}
