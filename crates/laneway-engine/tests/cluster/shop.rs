//! A shop with nodes on one memory store. Every run is written down with the node that carried it out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use laneway_core::{
    Clock as _, Document, Documents, Draft, Key, Kind, Partition, Result, Steady, StreamSettings, Timestamp,
};
use laneway_embedded::MemoryStore;
use laneway_engine::cluster::{ClusterView, NodeSettings, NodeToken};
use laneway_engine::handler::{LaneAnswer, Retry, Run};
use laneway_engine::log::Appending;
use laneway_engine::service::{Mortal, TokioClock};
use laneway_engine::{Engine, Env, ProcessorSettings, Stores};
use parking_lot::Mutex;

use crate::seam;

pub(crate) const LEASE: Duration = Duration::from_secs(10);
pub(crate) const PARTITIONS: u32 = 8;
/// Recovery is promised within the lease and this.
pub(crate) const AND_THEN: Duration = Duration::from_secs(2);

/// One event that a handler began, or was done with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) node: &'static str,
    pub(crate) key: String,
    pub(crate) number: u32,
    pub(crate) done: bool,
}

pub(crate) struct Shop {
    clock: Arc<TokioClock>,
    store: Arc<MemoryStore>,
    ran: Arc<Mutex<Vec<Ran>>>,
    seed: u64,
}

pub(crate) struct Node {
    pub(crate) engine: Engine,
    mortal: Mortal,
    /// What the node says about the cluster does not reach the store, and nothing comes back.
    cut: Arc<Cut>,
}

/// Documents that can be cut off.
struct Cut {
    below: Arc<MemoryStore>,
    is_cut: AtomicBool,
    healed: tokio::sync::Notify,
}

impl Cut {
    async fn pass(&self) {
        while self.is_cut.load(Ordering::Relaxed) {
            self.healed.notified().await;
        }
    }
}

#[async_trait]
impl Documents for Cut {
    async fn get(&self, name: &str) -> Result<Option<Document>> {
        self.pass().await;
        self.below.get(name).await
    }

    async fn put(&self, name: &str, expect: Option<u64>, bytes: Bytes) -> Result<u64> {
        self.pass().await;
        self.below.put(name, expect, bytes).await
    }

    async fn delete(&self, name: &str, expect: u64) -> Result<()> {
        self.pass().await;
        self.below.delete(name, expect).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Document>> {
        self.pass().await;
        self.below.list(prefix).await
    }

    async fn clock(&self) -> Result<Option<Timestamp>> {
        self.pass().await;
        Documents::clock(&*self.below).await
    }
}

impl Shop {
    pub(crate) fn open() -> Self {
        let clock = Arc::new(TokioClock::start());
        let store = Arc::new(MemoryStore::new(clock.clone()));
        Self { clock, store, ran: Arc::default(), seed: 0 }
    }

    pub(crate) async fn join(&mut self, name: &'static str) -> Node {
        self.join_as(name, NodeSettings::new(name)).await
    }

    /// A node whose handler takes 100 ms, and a minute for the number 60, unless it is asked to stop.
    pub(crate) async fn join_as(&mut self, name: &'static str, settings: NodeSettings) -> Node {
        self.seed += 1;
        let (env, mortal) = Env::mortal(self.clock.clone(), self.seed);
        let (below, is_cut) = (self.store.clone(), AtomicBool::new(false));
        let cut = Arc::new(Cut { below, is_cut, healed: tokio::sync::Notify::new() });
        let stores =
            Stores { store: self.store.clone(), documents: cut.clone(), wakeups: self.store.clone() };
        let engine = Engine::in_cluster(stores, env, settings).expect("settings within their limits");
        let streams = StreamSettings { partitions: PARTITIONS, ..StreamSettings::default() };
        engine.define_stream("orders", streams).await.expect("the stream can be had");
        let ran = self.ran.clone();
        let handler = move |run: Run| {
            let ran = ran.clone();
            async move {
                let mut answers = Vec::new();
                for lane in &run.lanes {
                    let event = &lane.events[0];
                    let number = String::from_utf8_lossy(&event.data).parse().expect("a number");
                    let key = event.key.as_ref().expect("a key").to_string();
                    let write = |done| ran.lock().push(Ran { node: name, key: key.clone(), number, done });
                    write(false);
                    let length = Duration::from_millis(if number == 60 { 60_000 } else { 100 });
                    answers.push(tokio::select! {
                        () = seam::wait(length) => {
                            write(true);
                            LaneAnswer::all_done(lane)
                        }
                        () = run.cancel.cancelled() => LaneAnswer::failed("stopped", Retry::ByPolicy),
                    });
                }
                answers
            }
        };
        let settings = ProcessorSettings::default();
        engine.process("charge", "orders", settings, Arc::new(handler)).await.expect("the processor runs");
        engine.start_upkeep();
        Node { engine, mortal, cut }
    }

    pub(crate) fn now(&self) -> Steady {
        self.clock.steady()
    }

    /// Everything that was done, in order.
    pub(crate) fn done(&self) -> Vec<Ran> {
        self.ran.lock().iter().filter(|ran| ran.done).cloned().collect()
    }

    pub(crate) fn began(&self) -> Vec<Ran> {
        self.ran.lock().iter().filter(|ran| !ran.done).cloned().collect()
    }

    /// Waits until this many different events are done; each lane's numbers must first be done in their order.
    pub(crate) async fn all_done(&self, count: usize) {
        let different =
            || self.done().iter().map(|ran| (ran.key.clone(), ran.number)).collect::<BTreeSet<_>>();
        until("all events are done", || different().len() == count).await;
        let mut first: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for ran in self.done() {
            let lane = first.entry(ran.key).or_default();
            if !lane.contains(&ran.number) {
                lane.push(ran.number);
            }
        }
        for (key, numbers) in first {
            assert!(numbers.is_sorted(), "lane {key} was done as {numbers:?}");
        }
    }
}

impl Node {
    /// Ends all it does, in the middle of whatever that is.
    pub(crate) fn die(&self) {
        self.mortal.die();
    }

    pub(crate) fn cut_off(&self) {
        self.cut.is_cut.store(true, Ordering::Relaxed);
    }

    pub(crate) fn heal(&self) {
        self.cut.is_cut.store(false, Ordering::Relaxed);
        self.cut.healed.notify_waiters();
    }

    pub(crate) fn token(&self) -> NodeToken {
        self.engine.node().expect("it has a life")
    }

    pub(crate) fn owns(&self) -> usize {
        self.engine.seats_owned()
    }

    pub(crate) async fn cluster(&self) -> ClusterView {
        self.engine.cluster().look().await.expect("the store answers")
    }

    /// Sends ten lanes the numbers of a range, one after the other.
    pub(crate) async fn send(&self, numbers: std::ops::Range<u32>) {
        for number in numbers {
            let drafts = (0..10).map(|lane| draft(&format!("lane-{lane}"), number)).collect();
            self.append(drafts).await;
        }
    }

    pub(crate) async fn send_one(&self, key: &str, number: u32) {
        self.append(vec![draft(key, number)]).await;
    }

    async fn append(&self, drafts: Vec<Draft>) {
        let sent = self.engine.producer().append("orders", Appending { drafts, object: None }).await;
        for sent in sent.expect("the stream exists") {
            sent.receipt.expect("the store takes it");
        }
    }
}

/// A lane in each partition.
pub(crate) fn lane_in_each(name: &str) -> Vec<String> {
    let partition = |key: &String| Key::new(key.clone()).expect("a short key").partition(PARTITIONS);
    let in_it = |wanted: u32| {
        let mut names = (0..).map(|number| format!("{name}-{number}"));
        names.find(|key| partition(key) == Partition(wanted)).expect("names do not end")
    };
    (0..PARTITIONS).map(in_it).collect()
}

fn draft(key: &str, number: u32) -> Draft {
    Draft::new(Some(Key::new(key.to_owned()).expect("a short key")), Kind::default(), number.to_string())
}

/// Waits for something that comes true by itself, looking every few milliseconds of a time that is not real.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..60_000 {
        if is_so() {
            return;
        }
        seam::wait(Duration::from_millis(5)).await;
    }
    panic!("never: {what}");
}
