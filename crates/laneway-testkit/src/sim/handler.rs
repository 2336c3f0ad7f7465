//! The handler of every processor: does what the event's data says, and writes down what it does.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::{Draft, Event, EventId, Key, Kind, LaneName};
use laneway_engine::handler::{
    Done, Emission, Failure, Handler, LaneAnswer, LaneRun, Retry, Run, Running, StateChange,
};

use super::node::Here;
use super::plan::{Plan, Way};
use super::record::{LaneStart, Record};
use crate::seam;

struct Obedient {
    here: Here,
}

/// The handler of one life.
pub(crate) fn handler(here: Here) -> Arc<dyn Handler> {
    Arc::new(Obedient { here })
}

/// Writes the end of a run down, also when it is dropped.
struct Ending {
    here: Here,
    run: u64,
    how: Option<String>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let how = self.how.take().unwrap_or_else(|| "dropped".to_owned());
        self.here.world.log.push(Record::End { run: self.run, how });
    }
}

impl Handler for Obedient {
    fn call(&self, run: Run) -> Running {
        let here = self.here.clone();
        Box::pin(async move {
            let number = here.world.number();
            let mut ending = Ending { here: here.clone(), run: number, how: None };
            let Some(seat) = here.seat(&run.processor, run.partition).await else {
                return run.lanes.iter().map(|_| LaneAnswer::failed("no seat", Retry::NotRun)).collect();
            };
            let lanes = run.lanes.iter().map(start_of).collect();
            let remote = false;
            here.world.log.push(Record::Start { life: here.life.number, run: number, seat, lanes, remote });
            let mut answers = Vec::new();
            for lane in &run.lanes {
                answers.push(answer(&here, number, lane).await);
            }
            let done: Vec<_> = answers.iter().map(|answer| (answer.done.len(), &answer.failure)).collect();
            ending.how = Some(format!("{done:?}"));
            answers
        })
    }
}

/// A lane's run as it is written down.
pub(crate) fn start_of(lane: &LaneRun) -> LaneStart {
    let first = &lane.events[0];
    LaneStart {
        lane: first.key.clone().map_or(LaneName::Event(first.id), LaneName::Key),
        ids: lane.events.iter().map(|event| event.id).collect(),
        attempt: lane.attempt,
        fence: lane.fence,
        state: lane.state.as_ref().map(|state| (state.version, state.bytes.clone())),
    }
}

/// What is answered for one lane: done up to the first event that fails.
async fn answer(here: &Here, run: u64, lane: &LaneRun) -> LaneAnswer {
    let mut answer = LaneAnswer::default();
    let mut state = None;
    for (at, event) in lane.events.iter().enumerate() {
        let plan = Plan::of(&event.data);
        let attempt = if at == 0 { lane.attempt } else { 1 };
        seam::pass(Duration::from_millis(plan.take_ms)).await;
        if attempt <= plan.fails
            && let Some(failure) = fail(here, plan.way).await
        {
            answer.failure = Some(failure);
            break;
        }
        if plan.state {
            state = Some(Bytes::from(format!("run {run} event {}", event.id)));
        }
        answer.done.push(done(run, event, &plan));
    }
    if let Some(state) = state.filter(|_| !answer.done.is_empty()) {
        answer.state = StateChange::Set(state);
    }
    answer
}

async fn fail(here: &Here, way: Way) -> Option<Failure> {
    let failure = |retry| Some(Failure { error: "as planned".to_owned(), retry });
    match way {
        Way::Error => failure(Retry::ByPolicy),
        Way::Later => failure(Retry::After(Duration::from_millis(700))),
        Way::Broken => failure(Retry::Never),
        // Without the hook that prints, because this is no fault of the test's.
        Way::Panic => resume_unwind(Box::new("as planned")),
        Way::Hang => std::future::pending().await,
        Way::Kill => {
            here.life.die("a handler ended the process");
            std::future::pending().await
        }
    }
}

/// The result and the emits of an event, which name their run: whoever finds one knows whose commit it needs.
pub(crate) fn done(run: u64, event: &Event, plan: &Plan) -> Done {
    let mut result = format!("r{run}.{}.", event.id).into_bytes();
    result.resize(plan.result.max(result.len()), b'.');
    let emits = (0..plan.emits).map(|at| {
        let name = format!("e{run}.{}.{at}", event.id);
        let plan = Plan { name, fails: u32::from(at == 2), take_ms: 5, ..Plan::default() };
        let key = match at {
            0 => event.key.clone(),
            1 => Some(Key::new(format!("o{}", event.id.0 % 5)).expect("a short key")),
            _ => None,
        };
        Emission { stream: "out".to_owned(), draft: Draft::new(key, Kind::default(), plan.to_string()) }
    });
    Done { result: (plan.result > 0).then(|| Bytes::from(result)), emits: emits.collect() }
}

/// The run and the event that made a result or an emit.
pub(crate) fn maker(text: &[u8]) -> Option<(u64, EventId)> {
    let text = std::str::from_utf8(&text[..text.len().min(60)]).ok()?;
    let mut parts = text.get(1..)?.split('.');
    Some((parts.next()?.parse().ok()?, EventId(parts.next()?.parse().ok()?)))
}
