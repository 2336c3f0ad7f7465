//! Puts the parts together; this and `engine/processing.rs` are the only files that know all of them.

mod processing;

use std::sync::Arc;
use std::time::Duration;

use laneway_core::store::Define;
use laneway_core::{
    ConflictReason, Documents, Refusal, Store, StoreError, StreamInfo, StreamSettings, Wakeups,
};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use self::processing::Running;
pub use self::processing::{ProcessorView, Registration};
use crate::cluster::{Cluster, Keeper, Membership, NodeSettings, NodeToken};
use crate::job::Jobs;
use crate::lane::Operator;
use crate::log::{Catalogue, CatalogueError, Producer};
use crate::observe::{Looker, Metered, Nearby, SYSTEM_STREAM, introduce, show_cluster};
use crate::service::{Env, kept_running};
use crate::upkeep::{HeldView, Schedules, held, retain};

/// How many seats a node takes at the same time: enough to share the store's syncs, few enough to take little memory.
const TAKEN_AT_ONCE: usize = 64;

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
    running: Running,
    nearby: Nearby,
    schedules: Schedules,
    upkeep: Arc<Mutex<Vec<JoinHandle<()>>>>,
    /// Keeps this node in the cluster until it owns nothing any more.
    keeping: Arc<Mutex<Option<JoinHandle<()>>>>,
    /// Accused lanes run one at a time, whatever their processor (contract 1.5).
    alone: Arc<Semaphore>,
    /// Bounds how many seats are taken at the same time.
    taking: Arc<Semaphore>,
    /// Its place in the cluster; nothing on a store that nobody else can open.
    membership: Option<Arc<Membership>>,
}

/// Why something could not be defined or started.
#[derive(Debug, thiserror::Error)]
pub enum DefineError {
    /// The settings are out of range; all faults at once.
    #[error("{}", faults(.0))]
    Settings(Vec<Refusal>),
    /// This processor runs here already, or is being started or stopped.
    #[error("processor {0:?} runs on this node already")]
    AlreadyRuns(String),
    /// This processor does not run here, or is being started or stopped.
    #[error("processor {0:?} does not run on this node")]
    NotRunning(String),
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
    /// An engine on these stores, which nobody else uses. Runs nothing yet.
    pub fn new(stores: Stores, env: Env) -> Self {
        Self::with(stores, env, None)
    }

    /// An engine that is one of several nodes on these stores. Runs nothing yet; it joins with
    /// [`start_upkeep`](Self::start_upkeep).
    pub fn in_cluster(stores: Stores, env: Env, node: NodeSettings) -> Result<Self, DefineError> {
        node.check().map_err(DefineError::Settings)?;
        Ok(Self::with(stores, env, Some(Membership::new(node))))
    }

    fn with(stores: Stores, env: Env, membership: Option<Arc<Membership>>) -> Self {
        introduce();
        let env = env.by_clock_of(&stores.store);
        if membership.is_none() {
            show_cluster(1, true);
        }
        let stores = Stores { store: Arc::new(Metered::new(stores.store, env.clone())), ..stores };
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
        let nearby = Nearby::default();
        let looker = Looker::new(&stores, Arc::clone(&catalogue), jobs.clone(), nearby.clone());
        Self {
            env,
            stores,
            catalogue,
            producer,
            jobs,
            operator,
            looker,
            running: Running::default(),
            nearby,
            schedules,
            upkeep: Arc::default(),
            keeping: Arc::default(),
            alone: Arc::new(Semaphore::new(1)),
            taking: Arc::new(Semaphore::new(TAKEN_AT_ONCE)),
            membership,
        }
    }

    /// The cluster, as any node sees it.
    pub fn cluster(&self) -> Cluster {
        Cluster::new(self.env.clone(), self.stores.clone(), Arc::clone(&self.catalogue))
    }

    /// Whether it is one of several nodes on its store.
    pub fn is_in_cluster(&self) -> bool {
        self.membership.is_some()
    }

    /// This node's token while it is in a cluster.
    pub fn node(&self) -> Option<NodeToken> {
        self.membership.as_ref()?.node()
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

    /// Returns what keeps the store from deleting its oldest files.
    ///
    /// # Errors
    /// Fails if the store does not answer.
    pub async fn held(&self) -> Result<Vec<HeldView>, StoreError> {
        held(&*self.stores.store, &self.catalogue).await
    }

    /// Time, chance and tasks.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The store underneath, with the engine's meters around it.
    pub fn stores(&self) -> &Stores {
        &self.stores
    }

    /// Partitions, counted per processor, that this engine owns at this moment.
    pub fn seats_owned(&self) -> usize {
        self.nearby.seats()
    }

    /// Creates a stream, or changes the settings of one that is there. Carried to its end if the caller drops it.
    pub async fn define_stream(
        &self,
        name: &str,
        settings: StreamSettings,
    ) -> Result<Arc<StreamInfo>, DefineError> {
        let (engine, name) = (self.clone(), name.to_owned());
        self.env.finish(async move { engine.define_stream_now(&name, settings).await }).await
    }

    async fn define_stream_now(
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
        let define = Define::Stream { name: name.to_owned(), expect, settings: settings.clone() };
        match self.catalogue.define(define).await {
            Err(StoreError::Conflict(conflict)) => {
                // Nodes that start together make the same stream: whoever is slower finds it as it wants it.
                self.catalogue.refresh().await?;
                let found = self.catalogue.stream(name).await?;
                if found.settings == settings {
                    Ok(found)
                } else {
                    Err(StoreError::Conflict(conflict).into())
                }
            }
            defined => defined?.ok_or_else(|| CatalogueError::NoStream(name.to_owned()).into()),
        }
    }

    /// Removes a stream with everything in it: events, jobs, objects, and its processors with their progress. Those that
    /// run here are drained first, and asked to stop after `within`. Carried to its end if the caller drops it.
    pub async fn remove_stream(&self, name: &str, within: Duration) -> Result<(), DefineError> {
        let (engine, name) = (self.clone(), name.to_owned());
        self.env.finish(async move { engine.remove_stream_now(&name, within).await }).await
    }

    async fn remove_stream_now(&self, name: &str, within: Duration) -> Result<(), DefineError> {
        loop {
            self.catalogue.refresh().await?;
            let info = self.catalogue.stream(name).await?;
            for processor in &info.processors {
                self.stop_if_running(&processor.name, within).await;
            }
            match self.catalogue.define(Define::RemoveStream { stream: info.id, expect: info.version }).await
            {
                // Somebody registered a processor meanwhile.
                Err(StoreError::Conflict(conflict))
                    if matches!(conflict.reason, ConflictReason::Version { actual: Some(_) }) => {}
                removed => return Ok(removed.map(|_| ())?),
            }
        }
    }

    /// Creates the system stream, to which processors that are started afterwards report parked lanes and failed jobs.
    pub async fn start_reports(&self) -> Result<(), DefineError> {
        let settings = StreamSettings { partitions: 1, ..StreamSettings::default() };
        self.define_stream(SYSTEM_STREAM, settings).await.map(|_| ())
    }

    /// Where schedules are kept.
    pub fn schedules(&self) -> &Schedules {
        &self.schedules
    }

    /// Begins to take part in the cluster, to remove what retention allows and to fire what is scheduled, until the engine is
    /// drained.
    pub fn start_upkeep(&self) {
        let (stores, catalogue) = (self.stores.clone(), Arc::clone(&self.catalogue));
        let mut upkeep = self.upkeep.lock();
        if upkeep.is_empty() {
            let (env, schedules) = (self.env.clone(), self.schedules.clone());
            let retention = move || retain(env.clone(), stores.clone(), Arc::clone(&catalogue));
            let firing = move || schedules.clone().keep_firing();
            upkeep.push(self.env.spawn(kept_running(self.env.clone(), "retention", retention)));
            upkeep.push(self.env.spawn(kept_running(self.env.clone(), "schedules", firing)));
            *self.keeping.lock() = self.membership.as_ref().map(|membership| self.keep(membership));
        }
    }

    fn keep(&self, membership: &Arc<Membership>) -> JoinHandle<()> {
        let keeper = Arc::new(Keeper {
            env: self.env.clone(),
            documents: Arc::clone(&self.stores.documents),
            catalogue: Arc::clone(&self.catalogue),
            membership: Arc::clone(membership),
            seats: Arc::new(self.running.clone()),
        });
        let keeping = move || Arc::clone(&keeper).keep();
        self.env.spawn(kept_running(self.env.clone(), "cluster", keeping))
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Engine").field("processors", &self.running.names()).finish_non_exhaustive()
    }
}
