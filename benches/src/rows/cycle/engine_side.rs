//! The cycle on the engine: producers submit jobs, an empty handler answers each with a result, the engine settles them.
//!
//! An event counts when its handler has run; a round ends with everything settled, and says so if not.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use laneway_engine::handler::{Done, LaneAnswer, LaneRun, Run};
use laneway_engine::job::Submit;
use laneway_engine::{Engine, ProcessorSettings};

use super::flow::Flow;
use crate::Failure;
use crate::measured::{Measured, Times, window};
use crate::node::Node;
use crate::producers::{Producers, Target};
use crate::store::{BenchStore, STREAM};
use crate::workload::{Keys, RESULT_BYTES, Sender};

/// The engine on its store, from round to round.
pub(super) struct EngineSide {
    pub(super) node: Node,
    keep: Duration,
}

impl EngineSide {
    pub(super) fn new(store: BenchStore, keep: Duration) -> Self {
        Self { node: Node::new(store), keep }
    }

    pub(super) async fn round(&mut self, keys: &Arc<Keys>, times: Times) -> Result<Measured, Failure> {
        let flow = Flow::new();
        let (of_handler, result) = (flow.clone(), Bytes::from(vec![7; RESULT_BYTES]));
        let handler = move |run: Run| {
            let events = run.lanes.iter().map(|lane| lane.events.len()).sum();
            of_handler.count(events);
            let answers = run.lanes.iter().map(|lane| answer(lane, &result)).collect();
            std::future::ready(answers)
        };
        let settings = ProcessorSettings { uses_state: false, ..ProcessorSettings::default() };
        self.node.process(settings, handler).await?;
        let target = SubmitTarget { engine: self.node.engine.clone(), keep: self.keep };
        let producers = Producers::start(&target, keys, &flow.round);
        let counts = || self.node.counts_with(flow.settled.load(Ordering::Relaxed));
        let mut measured = window(&flow.round.phase, times, counts).await;
        measured.calls = producers.join().await?;
        flow.close().await?;
        self.node.stop().await;
        if let Some(open) = self.node.open(None).await? {
            return Err(open.into());
        }
        Ok(measured)
    }
}

fn answer(lane: &LaneRun, result: &Bytes) -> LaneAnswer {
    let done = Done { result: Some(result.clone()), emits: Vec::new() };
    LaneAnswer { done: vec![done; lane.events.len()], ..LaneAnswer::default() }
}

/// The engine, given jobs.
#[derive(Clone)]
struct SubmitTarget {
    engine: Engine,
    keep: Duration,
}

impl Target for SubmitTarget {
    async fn append(&self, sender: &mut Sender, count: usize) -> Result<(), Failure> {
        let shard = sender.shard();
        let drafts = sender.drafts(shard, count, None)?;
        let submit = |draft| Submit { draft, processor: None, keep: Some(self.keep) };
        for submitted in self.engine.jobs().submit(STREAM, drafts.into_iter().map(submit).collect()).await? {
            submitted.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}
