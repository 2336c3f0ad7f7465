//! Puts the parts together; the only file that knows all of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::store::Define;
use laneway_core::{
    Documents, Partition, Refusal, Seat, Store, StoreError, StreamInfo, StreamSettings, Wakeups,
};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use crate::dispatch::{Ground, Names, Order, ProcessorSettings, own};
use crate::handler::{Demand, Desk, Handler, Workers};
use crate::job::Jobs;
use crate::lane::Operator;
use crate::log::{Catalogue, CatalogueError, Producer};
use crate::observe::{Looker, Meters, SYSTEM_STREAM};
use crate::service::{Env, kept_running};
use crate::upkeep::{Schedules, retain};

/// The three seams of a store.
#[derive(Clone)]
pub struct Stores {
    /// Events, seats and jobs.
    pub store: Arc<dyn Store>,
    /// Small versioned values.
    pub documents: Arc<dyn Documents>,
    /// Hints that something changed.
    pub wakeups: Arc<dyn Wakeups>,
}

/// A running engine on one node. Cheap to clone; all clones are the same engine.
#[derive(Clone)]
pub struct Engine {
    env: Env,
    stores: Stores,
    catalogue: Arc<Catalogue>,
    producer: Producer,
    jobs: Jobs,
    operator: Operator,
    looker: Looker,
    running: Arc<Mutex<BTreeMap<String, Processing>>>,
    schedules: Schedules,
    upkeep: Arc<Mutex<Vec<JoinHandle<()>>>>,
    /// Accused lanes run one at a time, whatever their processor (contract 1.5).
    alone: Arc<Semaphore>,
}

/// A processor that runs on this node.
struct Processing {
    /// One per seat: who waits for a shared one is woken in an order that nobody can repeat.
    orders: Vec<watch::Sender<Order>>,
    seats: Vec<JoinHandle<()>>,
}

/// Why something could not be defined or started.
#[derive(Debug, thiserror::Error)]
pub enum DefineError {
    /// The settings are out of range; all faults at once.
    #[error("{}", faults(.0))]
    Settings(Vec<Refusal>),
    /// This processor runs here already.
    #[error("processor {0:?} runs on this node already")]
    AlreadyRuns(String),
    /// The stream is not to be had.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn faults(refusals: &[Refusal]) -> String {
    refusals.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl Engine {
    /// An engine on these stores. Runs nothing yet.
    pub fn new(stores: Stores, env: Env) -> Self {
        let catalogue = Arc::new(Catalogue::new(Arc::clone(&stores.store)));
        let producer = Producer::new(env.clone(), Arc::clone(&stores.store), Arc::clone(&catalogue));
        let jobs = Jobs::new(
            env.clone(),
            Arc::clone(&stores.store),
            Arc::clone(&stores.wakeups),
            Arc::clone(&catalogue),
            producer.clone(),
        );
        let operator = Operator::new(
            env.clone(),
            Arc::clone(&stores.store),
            Arc::clone(&stores.wakeups),
            Arc::clone(&catalogue),
        );
        let schedules = Schedules::new(env.clone(), stores.clone(), Arc::clone(&catalogue));
        let looker = Looker::new(Arc::clone(&stores.store), Arc::clone(&catalogue), jobs.clone());
        Self {
            env,
            stores,
            catalogue,
            producer,
            jobs,
            operator,
            looker,
            running: Arc::default(),
            schedules,
            upkeep: Arc::default(),
            alone: Arc::new(Semaphore::new(1)),
        }
    }

    /// Where events are appended.
    pub fn producer(&self) -> &Producer {
        &self.producer
    }

    /// Where jobs are submitted and looked at.
    pub fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// Where lanes and processors are steered.
    pub fn operator(&self) -> &Operator {
        &self.operator
    }

    /// Where lanes and jobs are looked at.
    pub fn looker(&self) -> &Looker {
        &self.looker
    }

    /// The streams there are.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Time, chance and tasks.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The store underneath.
    pub fn stores(&self) -> &Stores {
        &self.stores
    }

    /// Creates a stream, or changes the settings of one that is there.
    pub async fn define_stream(
        &self,
        name: &str,
        settings: StreamSettings,
    ) -> Result<Arc<StreamInfo>, DefineError> {
        settings.check().map_err(|refusal| DefineError::Settings(vec![refusal]))?;
        let expect = match self.catalogue.stream(name).await {
            Ok(info) if info.settings == settings => return Ok(info),
            Ok(info) => Some(info.version),
            Err(CatalogueError::NoStream(_)) => None,
            Err(error) => return Err(error.into()),
        };
        let define = Define::Stream { name: name.to_owned(), expect, settings };
        let defined = self.catalogue.define(define).await?;
        defined.ok_or_else(|| CatalogueError::NoStream(name.to_owned()).into())
    }

    /// Creates the system stream, to which processors that are started afterwards report parked lanes and failed jobs.
    pub async fn start_reports(&self) -> Result<(), DefineError> {
        let settings = StreamSettings { partitions: 1, ..StreamSettings::default() };
        self.define_stream(SYSTEM_STREAM, settings).await.map(|_| ())
    }

    /// Registers a processor and runs it on this node until it is stopped.
    pub async fn process(
        &self,
        name: &str,
        stream: &str,
        settings: ProcessorSettings,
        handler: Arc<dyn Handler>,
    ) -> Result<(), DefineError> {
        let places = Arc::new(Semaphore::new(settings.concurrency));
        self.process_in(name, stream, settings, handler, places, None).await
    }

    /// Registers a processor whose events remote workers claim at a desk, and offers them on this node.
    pub async fn process_at_desk(
        &self,
        name: &str,
        stream: &str,
        settings: ProcessorSettings,
    ) -> Result<Arc<Desk>, DefineError> {
        let (env, operator) = (self.env.clone(), self.operator.clone());
        let desk = Arc::new(Desk::new(env, operator, settings.concurrency));
        let (places, demand) = (desk.places(), Some(desk.demand()));
        let handler = Arc::clone(&desk) as Arc<dyn Handler>;
        self.process_in(name, stream, settings, handler, places, demand).await?;
        Ok(desk)
    }

    async fn process_in(
        &self,
        name: &str,
        stream: &str,
        settings: ProcessorSettings,
        handler: Arc<dyn Handler>,
        places: Arc<Semaphore>,
        demand: Option<Demand>,
    ) -> Result<(), DefineError> {
        settings.check().map_err(DefineError::Settings)?;
        if self.running.lock().contains_key(name) {
            return Err(DefineError::AlreadyRuns(name.to_owned()));
        }
        let info = self.catalogue.stream(stream).await?;
        let define = Define::Processor {
            stream: info.id,
            name: name.to_owned(),
            start: settings.start,
            settings: bytes::Bytes::new(),
        };
        self.catalogue.define(define).await?;
        let (info, processor) = self.catalogue.processor(name).await?;
        let (workers, timeout) = (Workers::new(self.env.clone()), settings.timeout);
        let (stream, name): (Arc<str>, Arc<str>) = (Arc::from(stream), Arc::from(name));
        let ground_of = |partition| Ground {
            env: self.env.clone(),
            store: Arc::clone(&self.stores.store),
            wakeups: Arc::clone(&self.stores.wakeups),
            catalogue: Arc::clone(&self.catalogue),
            handler: Arc::clone(&handler),
            workers: Arc::clone(&workers),
            places: Arc::clone(&places),
            alone: Arc::clone(&self.alone),
            stream: Arc::clone(&stream),
            processor: Arc::clone(&name),
            timeout,
            meters: Meters::new(&stream, &name, partition),
            demand: demand.clone(),
        };
        let system = self.catalogue.stream(SYSTEM_STREAM).await.ok().map(|system| system.id);
        let names = Names {
            stream: Arc::clone(&stream),
            processor: Arc::clone(&name),
            reports_to: system.filter(|system| *system != info.id),
        };
        let settings = Arc::new(settings);
        let (orders, seats) = (0..info.settings.partitions)
            .map(|partition| {
                let (order, orders) = watch::channel(Order::Run);
                let seat = Seat { shard: info.shard(Partition(partition)), processor };
                let (ground, settings) = (Arc::new(ground_of(partition)), Arc::clone(&settings));
                (order, self.env.spawn(own(ground, seat, settings, Arc::clone(&info), names.clone(), orders)))
            })
            .unzip();
        self.running.lock().insert(name.to_string(), Processing { orders, seats });
        Ok(())
    }

    /// Where schedules are kept.
    pub fn schedules(&self) -> &Schedules {
        &self.schedules
    }

    /// Begins to remove what retention allows and to fire what is scheduled, until the engine is drained.
    pub fn start_upkeep(&self) {
        let (store, catalogue) = (Arc::clone(&self.stores.store), Arc::clone(&self.catalogue));
        let mut upkeep = self.upkeep.lock();
        if upkeep.is_empty() {
            let (env, schedules) = (self.env.clone(), self.schedules.clone());
            let retention = move || retain(env.clone(), Arc::clone(&store), Arc::clone(&catalogue));
            let firing = move || schedules.clone().keep_firing();
            upkeep.push(self.env.spawn(kept_running(self.env.clone(), "retention", retention)));
            upkeep.push(self.env.spawn(kept_running(self.env.clone(), "schedules", firing)));
        }
    }

    /// Takes no new turns, lets what runs finish, and after `within` asks the rest to stop.
    ///
    /// Nothing is lost: what did not finish runs again at the next start.
    pub async fn drain(&self, within: Duration) {
        self.upkeep.lock().drain(..).for_each(|task| task.abort());
        let running: Vec<Processing> = std::mem::take(&mut *self.running.lock()).into_values().collect();
        let orders: Vec<_> = running.iter().flat_map(|processing| processing.orders.clone()).collect();
        for order in &orders {
            order.send_replace(Order::Drain);
        }
        let all = async {
            for processing in running {
                for seat in processing.seats {
                    if let Err(error) = seat.await {
                        tracing::error!(%error, "a seat's loop came to a bad end");
                    }
                }
            }
        };
        let late = async {
            self.env.sleep(within).await;
            for order in &orders {
                order.send_replace(Order::Stop);
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = all => {}
            () = late => {}
        }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let running: Vec<String> = self.running.lock().keys().cloned().collect();
        formatter.debug_struct("Engine").field("processors", &running).finish_non_exhaustive()
    }
}
