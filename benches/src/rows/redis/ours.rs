//! The store on the server: appends with the chain, and the engine that runs them in lane order.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{Append, Define, Origin, Query, Rows, Source};
use laneway_core::{Draft, Kind, Partition, StartAt, Store, StreamInfo, StreamSettings, Term};
use laneway_engine::handler::{LaneAnswer, Run};
use laneway_engine::{Engine, Env, ProcessorSettings, Stores};
use laneway_redis::{RedisOptions, RedisStore};

use super::rows::{KEYS, PER_CALL, WORKERS};
use crate::node::Node;
use crate::store::STREAM;
use crate::workload::{PAYLOAD_BYTES, SHARDS, key};
use crate::{Failure, seam};

/// How often it is looked whether something has come about, and how long that may take.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(2);
pub(super) const WITHIN: Duration = Duration::from_secs(600);

/// A store with one stream, and a processor that has not begun.
#[derive(Clone)]
pub(super) struct Ours {
    pub(super) store: RedisStore,
    pub(super) stream: StreamInfo,
}

impl Ours {
    pub(super) async fn open(url: &str, namespace: &str) -> Result<Self, Failure> {
        let store = connect(url, namespace).await?;
        let settings =
            StreamSettings { partitions: SHARDS, keep: Duration::ZERO, ..StreamSettings::default() };
        let define = Define::Stream { name: STREAM.to_owned(), expect: None, settings };
        let stream = store.define(define).await?.stream.ok_or("no stream was made")?;
        let register = Define::Processor {
            stream: stream.id,
            name: Node::PROCESSOR.to_owned(),
            start: StartAt::Beginning,
            settings: Bytes::new(),
        };
        store.define(register).await?;
        Ok(Self { store, stream })
    }

    /// Appends so many events in calls of [`PER_CALL`].
    pub(super) async fn append(&self, events: u64) -> Result<Sent, Failure> {
        append(std::slice::from_ref(self), events).await
    }

    async fn append_from(self, worker: u32, calls: u64) -> Result<(), Failure> {
        let keys = keys_of_shards(KEYS)?;
        let payload = Bytes::from(vec![7; PAYLOAD_BYTES]);
        let mut random = fastrand::Rng::with_seed(u64::from(worker));
        // Numbered, as the engine's producer does it: so that a call whose answer got lost can be repeated.
        let source = Source::Named(Bytes::from(format!("worker/{worker}")));
        let origin = Origin { source, term: Term(1) };
        let mut numbers_at_origin = 1..;
        for call in 0..calls {
            let shard = (call as u32 * WORKERS + worker) % SHARDS;
            let numbers = &keys[shard as usize];
            let drafts = (0..PER_CALL).map(|_| {
                let number = numbers[random.usize(0..numbers.len())];
                let mut draft = Draft::new(Some(key(number)?), Kind::default(), payload.clone());
                draft.origin_seq = numbers_at_origin.next();
                Ok(draft)
            });
            self.append_to(shard, drafts.collect::<Result<_, Failure>>()?, Some(origin.clone())).await?;
        }
        Ok(())
    }

    pub(super) async fn append_to(
        &self,
        shard: u32,
        drafts: Vec<Draft>,
        origin: Option<Origin>,
    ) -> Result<(), Failure> {
        let append = Append {
            shard: self.stream.shard(Partition(shard)),
            incarnation: self.store.about().incarnation,
            layout: self.stream.layout,
            origin,
            drafts,
            object: None,
        };
        self.store.append(append).await?;
        Ok(())
    }

    /// Runs everything through a handler that does nothing; answers the seconds until all is settled.
    pub(super) async fn drain(&self) -> Result<f64, Failure> {
        let engine = Engine::new(self.stores(), Env::system());
        let start = seam::now();
        process(&engine).await?;
        self.until_settled().await?;
        let seconds = seam::seconds_since(start);
        engine.drain(Node::DRAIN).await;
        Ok(seconds)
    }

    pub(super) fn stores(&self) -> Stores {
        let shared = Arc::new(self.store.clone());
        Stores { store: shared.clone(), documents: shared.clone(), wakeups: shared }
    }

    /// Waits until everything that was appended is settled.
    pub(super) async fn until_settled(&self) -> Result<(), Failure> {
        let start = seam::now();
        while let Some(open) = self.open_shard().await? {
            if seam::now().duration_since(start) > WITHIN {
                return Err(format!("{open} after {WITHIN:?}").into());
            }
            seam::pause(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// A shard where something is not settled, in words.
    async fn open_shard(&self) -> Result<Option<String>, Failure> {
        for partition in 0..SHARDS {
            let shard = self.stream.shard(Partition(partition));
            let Rows::Seats(about, seats) = self.store.query(Query::Seats(shard)).await? else {
                return Err("the store answered another list than seats".into());
            };
            let floor = seats.first().ok_or("the seat is gone")?.progress.window.floor();
            if floor != about.head {
                return Ok(Some(format!("shard {shard} is settled up to {floor} of {}", about.head)));
            }
        }
        Ok(None)
    }
}

/// What was appended, and how long that took.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    pub(super) events: u64,
    pub(super) seconds: f64,
}

impl Sent {
    /// Events per second.
    pub(super) fn rate(self) -> f64 {
        self.events as f64 / self.seconds
    }
}

/// Appends so many events, or a few more, through these stores, to each with as many callers.
pub(super) async fn append(stores: &[Ours], events: u64) -> Result<Sent, Failure> {
    let start = seam::now();
    let callers = u32::try_from(stores.len())? * WORKERS;
    let calls = events.div_ceil(PER_CALL as u64 * u64::from(callers));
    let workers: Vec<_> = stores
        .iter()
        .cycle()
        .zip(0..callers)
        .map(|(store, worker)| seam::spawn(store.clone().append_from(worker, calls)))
        .collect();
    for worker in workers {
        worker.await??;
    }
    let events = calls * PER_CALL as u64 * u64::from(callers);
    Ok(Sent { events, seconds: seam::seconds_since(start) })
}

/// A store with connections of its own.
pub(super) async fn connect(url: &str, namespace: &str) -> Result<RedisStore, Failure> {
    let options = RedisOptions { namespace: namespace.to_owned(), ..RedisOptions::new(url) };
    Ok(RedisStore::open(options).await?)
}

/// Has an engine run everything with a handler that does nothing.
pub(super) async fn process(engine: &Engine) -> Result<(), Failure> {
    let handler = |run: Run| {
        let answers = run.lanes.iter().map(|_| LaneAnswer::done(None)).collect();
        std::future::ready(answers)
    };
    let settings = ProcessorSettings { uses_state: false, ..ProcessorSettings::default() };
    engine.process(Node::PROCESSOR, STREAM, settings, Arc::new(handler)).await?;
    Ok(())
}

/// Numbers of keys by the shard that they belong to.
pub(super) fn keys_of_shards(keys: u32) -> Result<Vec<Vec<u32>>, Failure> {
    let mut by_shard = vec![Vec::new(); SHARDS as usize];
    for number in 0..keys {
        by_shard[key(number)?.partition(SHARDS).0 as usize].push(number);
    }
    Ok(by_shard)
}
