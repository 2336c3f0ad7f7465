//! A small world: an engine on the memory store, a stream, and a handler that does as the data of its events says.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::{Draft, JobId, Key, Kind, Mode, Status, Store, StreamSettings};
use laneway_embedded::MemoryStore;
use laneway_engine::handler::{LaneAnswer, LaneRun, Retry, Run};
use laneway_engine::job::{JobStatus, Submit};
use laneway_engine::log::Appending;
use laneway_engine::service::TokioClock;
use laneway_engine::{Engine, Env, ProcessorSettings, Stores};
use tokio::sync::mpsc;

use crate::seam;

/// Long enough for anything that is going to happen, in a world without real time.
pub(crate) const SOON: Duration = Duration::from_secs(120);

pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) env: Env,
    pub(crate) ran: mpsc::UnboundedReceiver<Ran>,
    ran_by: mpsc::UnboundedSender<Ran>,
}

/// One event that a handler was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) key: String,
    pub(crate) data: String,
    pub(crate) attempt: u32,
}

impl World {
    pub(crate) async fn new(mode: Mode) -> Self {
        Self::with_partitions(mode, 2).await
    }

    pub(crate) async fn with_partitions(mode: Mode, partitions: u32) -> Self {
        Self::with_settings(StreamSettings { partitions, mode, ..StreamSettings::default() }).await
    }

    pub(crate) async fn with_settings(settings: StreamSettings) -> Self {
        let clock = Arc::new(TokioClock::start());
        let env = Env::seeded(clock.clone(), 7);
        let store = Arc::new(MemoryStore::new(clock));
        let world = Self::on(store, env);
        world.engine.define_stream("orders", settings).await.expect("a new stream");
        world
    }

    fn on(store: Arc<MemoryStore>, env: Env) -> Self {
        Self::through(store.clone(), store, env)
    }

    /// The same through another store, which stands before it.
    pub(crate) fn through(outer: Arc<dyn Store>, store: Arc<MemoryStore>, env: Env) -> Self {
        let stores = Stores { store: outer, documents: store.clone(), wakeups: store.clone() };
        let (ran_by, ran) = mpsc::unbounded_channel();
        Self { engine: Engine::new(stores, env.clone()), store, env, ran, ran_by }
    }

    /// The same store under a new engine, as after a restart.
    pub(crate) fn again(&self) -> Self {
        Self::on(self.store.clone(), self.env.clone())
    }

    /// Runs a processor whose handler reports every event and then does as its data says: `ok`, `fail`, `fail twice`,
    /// `broken` (for good), `panic`, `wait` (until it is cancelled), `slow` (a minute).
    pub(crate) async fn process(&self, settings: ProcessorSettings) {
        self.process_with(settings, obey).await;
    }

    pub(crate) async fn process_with(&self, settings: ProcessorSettings, answer: fn(&LaneRun) -> Answer) {
        let ran_by = self.ran_by.clone();
        let handler = move |run: Run| {
            let ran_by = ran_by.clone();
            async move {
                let mut answers = Vec::new();
                for lane in &run.lanes {
                    for event in &lane.events {
                        let key = event.key.as_ref().map_or(String::new(), ToString::to_string);
                        let data = String::from_utf8_lossy(&event.data).into_owned();
                        ran_by.send(Ran { key, data, attempt: lane.attempt }).expect("the test listens");
                    }
                    answers.push(match answer(lane) {
                        Answer::Now(answer) => answer,
                        Answer::WhenCancelled => {
                            run.cancel.cancelled().await;
                            LaneAnswer::failed("stopped", Retry::ByPolicy)
                        }
                        Answer::After(length) => {
                            seam::wait(length).await;
                            LaneAnswer::all_done(lane)
                        }
                        Answer::FailAfter(length) => {
                            seam::wait(length).await;
                            LaneAnswer::failed("as told", Retry::ByPolicy)
                        }
                    });
                }
                answers
            }
        };
        self.engine.process("charge", "orders", settings, Arc::new(handler)).await.expect("a new processor");
    }

    pub(crate) async fn send(&self, events: &[(&str, &str)]) {
        let drafts = events.iter().map(|(key, data)| draft(key, data)).collect();
        let sent = self.engine.producer().append("orders", Appending { drafts, object: None }).await;
        for sent in sent.expect("the stream exists") {
            sent.receipt.expect("the store takes it");
        }
    }

    pub(crate) async fn submit(&self, key: &str, data: &str) -> JobId {
        let job = Submit { draft: draft(key, data), processor: None, keep: None };
        let submitted = self.engine.jobs().submit("orders", vec![job]).await.expect("the stream exists");
        submitted.into_iter().next().expect("one answer").expect("the store takes it").id
    }

    /// Waits until a job has ended or is parked.
    pub(crate) async fn settled(&self, id: JobId) -> JobStatus {
        let status = self.engine.jobs().wait(id, SOON).await.expect("the job exists").status;
        assert!(status.is_settled(), "job {id} is still {}", status.status());
        status
    }

    pub(crate) async fn status(&self, id: JobId) -> Status {
        self.engine.jobs().get(id).await.expect("the job exists").status.status()
    }

    /// The next event that was run.
    pub(crate) async fn next(&mut self) -> Ran {
        seam::within(10 * SOON, self.ran.recv()).await.expect("the world keeps a sender")
    }

    /// The data of the next runs, in order.
    pub(crate) async fn nexts(&mut self, count: usize) -> Vec<String> {
        let mut data = Vec::new();
        for _ in 0..count {
            data.push(self.next().await.data);
        }
        data
    }
}

pub(crate) enum Answer {
    Now(LaneAnswer),
    WhenCancelled,
    After(Duration),
    FailAfter(Duration),
}

fn obey(lane: &LaneRun) -> Answer {
    let data = String::from_utf8_lossy(&lane.events[0].data).into_owned();
    match data.as_str() {
        "fail" => Answer::Now(LaneAnswer::failed("as told", Retry::ByPolicy)),
        "fail twice" if lane.attempt <= 2 => Answer::Now(LaneAnswer::failed("as told", Retry::ByPolicy)),
        "broken" => Answer::Now(LaneAnswer::failed("broken for good", Retry::Never)),
        "panic" => panic!("as told"),
        "wait" => Answer::WhenCancelled,
        "slow" => Answer::After(Duration::from_secs(60)),
        _ => Answer::Now(LaneAnswer {
            done: lane
                .events
                .iter()
                .map(|event| laneway_engine::handler::Done {
                    result: Some(event.data.clone()),
                    emits: Vec::new(),
                })
                .collect(),
            ..LaneAnswer::default()
        }),
    }
}

pub(crate) fn draft(key: &str, data: &str) -> Draft {
    let key = (!key.is_empty()).then(|| Key::new(key.to_owned()).expect("a short key"));
    Draft::new(key, Kind::default(), data.to_owned())
}

impl World {
    pub(crate) async fn store_query(&self, query: laneway_core::store::Query) -> laneway_core::store::Rows {
        Store::query(&*self.store, query).await.expect("the store answers")
    }
}
