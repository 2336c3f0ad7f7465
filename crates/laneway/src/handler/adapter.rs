//! From what the engine hands in to calls of handlers, and from their answers to what the engine settles.
//!
//! Lanes of one run go side by side, events of one lane one after the other: whoever takes single events gets them one
//! at a time also when the processor asked for batches, and saves commits.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::future::join_all;
use laneway_core::{Event, Partition, Steady};
use laneway_engine::handler::{
    CancelToken, Done, Handler as EngineHandler, LaneAnswer, LaneRun, Retry, Run, Running, StateChange,
};

use super::function::Handler;
use crate::error::{Error, Result};
use crate::extract::{Ground, Scope, ScopeParts};
use crate::record::Record;

/// A handler whose type is forgotten.
pub(crate) type Erased =
    Arc<dyn Fn(LaneCall) -> Pin<Box<dyn Future<Output = LaneAnswer> + Send>> + Send + Sync>;

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
    Arc::new(move |call| {
        let handler = handler.clone();
        Box::pin(async move { handler.run_lane(call).await })
    })
}

impl EngineHandler for Adapter {
    fn call(&self, run: Run) -> Running {
        let lanes = run.lanes.into_iter().map(|mut lane| {
            let kind = lane.events[0].kind.clone();
            // Another type behind it is for another handler: it comes again as the lane's head.
            let same = lane.events.iter().take_while(|event| event.kind == kind).count();
            lane.events.truncate(same);
            let named = self.routes.iter().find(|(name, _)| *name == kind.as_str());
            // A single handler takes whatever its processor lets through.
            let route = named.or_else(|| self.routes.first().filter(|_| self.routes.len() == 1));
            let call = LaneCall {
                ground: Arc::clone(&self.ground),
                partition: run.partition,
                lane,
                cancel: run.cancel.clone(),
                deadline: run.deadline,
            };
            route.map_or_else(|| no_route(kind.as_str()), |(_, handler)| handler(call))
        });
        Box::pin(join_all(lanes.collect::<Vec<_>>()))
    }
}

fn no_route(kind: &str) -> Pin<Box<dyn Future<Output = LaneAnswer> + Send>> {
    let answer = LaneAnswer::failed(format!("no handler for events of type {kind:?}"), Retry::Never);
    Box::pin(std::future::ready(answer))
}

impl LaneCall {
    fn scope(&self, event: Event, attempt: u32, state: Option<Bytes>) -> Arc<Scope> {
        let parts = ScopeParts {
            ground: Arc::clone(&self.ground),
            partition: self.partition,
            event,
            attempt,
            fence: self.lane.fence,
            last_done: self.lane.last_done,
            progress: self.lane.progress.clone(),
            cancel: self.cancel.clone(),
            deadline: self.deadline,
        };
        Arc::new(Scope::new(parts, state))
    }
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
        match run(Arc::clone(&scope)).await.and_then(|result| scope.finish(result)) {
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
                answer.failure = Some(error.into_failure());
                break;
            }
        }
    }
    answer
}

/// Runs the events of a lane in one call. `done` is what the handler says it has done when it fails.
pub(super) async fn whole<T, F, A>(mut call: LaneCall, done: &AtomicUsize, run: F) -> LaneAnswer
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
            Err(error) if records.is_empty() => return failed(0, Error::permanent(error)),
            // It fails when it comes again as the lane's head; those before it are fine.
            Err(_) => break,
        }
    }
    let count = records.len();
    match run(Arc::clone(&scope), records).await.and_then(|result| scope.finish(result)) {
        Ok(finished) => {
            let result = finished.done.result;
            let each = Done { result, emits: Vec::new() };
            let mut answer =
                LaneAnswer { done: vec![each; count], state: finished.state, ..LaneAnswer::default() };
            if let Some(last) = answer.done.last_mut() {
                last.emits = finished.done.emits;
            }
            answer
        }
        Err(error) if scope.is_untouched() => failed(done.load(Ordering::Relaxed).min(count), error),
        Err(error) => failed(0, error),
    }
}

fn failed(done: usize, error: Error) -> LaneAnswer {
    LaneAnswer {
        done: vec![Done::default(); done],
        failure: Some(error.into_failure()),
        ..LaneAnswer::default()
    }
}
