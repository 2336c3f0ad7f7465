//! One life of the engine: started as a program would start it, used by producers, submitters, an operator and a remote
//! worker, all of which die with it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::{Key, Kind, ProcessorId, Seat, Shard, Timestamp};
use laneway_engine::handler::Desk;
use laneway_engine::upkeep::schedule::{CatchUp, Firing, Overlap, Schedule, Spec};
use laneway_engine::{Engine, Env, Stores};
use parking_lot::Mutex;

use super::life::{Life, NodeClock};
use super::net::Net;
use super::options::{PROCESSORS, STREAMS};
use super::record::Record;
use super::world::World;
use super::{clients, handler, operator};

/// A process that runs the engine.
pub(crate) struct Node {
    pub(crate) life: Arc<Life>,
    pub(crate) net: Arc<Net>,
    engine: Arc<Mutex<Option<Engine>>>,
}

/// What the parts of one life share.
#[derive(Clone)]
pub(crate) struct Here {
    pub(crate) world: Arc<World>,
    pub(crate) life: Arc<Life>,
    pub(crate) engine: Engine,
}

impl Here {
    /// Chance of its own for one part of this life.
    pub(crate) fn chance(&self, part: u64) -> fastrand::Rng {
        self.world.chance(u64::from(self.life.number) << 16 | part)
    }

    /// The seat of a processor on one partition of its stream.
    pub(crate) async fn seat(&self, processor: &str, partition: laneway_core::Partition) -> Option<Seat> {
        let (info, id): (_, ProcessorId) = self.engine.catalogue().processor(processor).await.ok()?;
        let shard: Shard = info.shard(partition);
        Some(Seat { shard, processor: id })
    }
}

impl Node {
    /// Starts a process at a place. It may die at any time, also while it starts.
    pub(crate) async fn begin(world: Arc<World>, place: u32, number: u32) -> Self {
        let seed = world.chance(u64::from(number) << 32).u64(..);
        let clock = NodeClock::new(Arc::clone(&world.clock), world.skew(place));
        let (env, mortal) = Env::mortal(clock.clone(), seed);
        let sleeps = world.clock_sleeps();
        let life = Life::new(number, mortal, clock, Arc::clone(&world.log), sleeps);
        let net = Net::new(Arc::clone(&world), Arc::clone(&life), world.below.clone(), seed ^ 1);
        let stores = Stores { store: net.clone(), documents: net.clone(), wakeups: net.clone() };
        let engine = if world.options.is_cluster() {
            Engine::in_cluster(stores, env, world.options.node(place)).expect("settings within their limits")
        } else {
            Engine::new(stores, env)
        };
        let here = Here { world, life: Arc::clone(&life), engine };
        let engine = Arc::new(Mutex::new(None));
        let started = Arc::clone(&engine);
        life.spawn(async move {
            match start(&here).await {
                Ok(desk) => {
                    *started.lock() = Some(here.engine.clone());
                    clients::start(&here, desk);
                    operator::start(&here);
                }
                // A program that cannot start ends, and is started again.
                Err(error) => {
                    here.world.log.push(Record::NotStarted { life: here.life.number, error });
                    here.life.die("it could not start");
                }
            }
        });
        Self { life, net, engine }
    }

    /// Its engine, if it has started and is not about to end.
    pub(crate) fn engine(&self) -> Option<Engine> {
        self.engine.lock().clone()
    }

    /// Stops in good order, if it has started.
    pub(crate) async fn drain(&self, within: Duration) {
        let engine = self.engine.lock().take();
        if let Some(engine) = engine {
            engine.drain(within).await;
        }
    }
}

async fn start(here: &Here) -> Result<Arc<Desk>, String> {
    let engine = &here.engine;
    let text = |error: &dyn std::fmt::Display| error.to_string();
    for (at, name) in STREAMS.iter().enumerate() {
        engine.define_stream(name, here.world.options.stream(at)).await.map_err(|error| text(&error))?;
    }
    engine.start_reports().await.map_err(|error| text(&error))?;
    let mut desk = None;
    for ((name, stream), settings) in PROCESSORS.iter().zip(here.world.options.processors.clone()) {
        if *name == "remote" {
            desk = Some(engine.process_at_desk(name, stream, settings).await.map_err(|error| text(&error))?);
        } else {
            let handler = handler::handler(here.clone());
            engine.process(name, stream, settings, handler).await.map_err(|error| text(&error))?;
        }
    }
    engine.schedules().put(tick()).await.map_err(|error| text(&error))?;
    engine.start_upkeep();
    desk.ok_or_else(|| "no desk".to_owned())
}

/// A schedule that fires every seven seconds.
fn tick() -> Schedule {
    Schedule {
        name: "tick".to_owned(),
        spec: Spec::Every { length: Duration::from_secs(7), anchor: Timestamp(0) },
        overlap: Overlap::Queue,
        catch_up: CatchUp::All { max: 10 },
        paused: false,
        since: Timestamp(0),
        firing: Firing {
            key: Some(Key::new("tick").expect("a short key")),
            kind: Kind::new("tick").expect("a short type"),
            data: Bytes::from_static(b"tick"),
            ..Firing::new("orders")
        },
    }
}
