//! Processors on this node: registered, started, changed, stopped one by one or all together.
//!
//! A name is taken from the moment somebody begins to start or stop it until that is over, so that two callers cannot
//! start one processor twice, and one that is being stopped is not started over its own end.
//!
//! Every change of several steps runs through [`Env::finish`](crate::Env::finish): a caller that goes away halfway leaves
//! no processor that is registered and stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use laneway_core::store::Define;
use laneway_core::{Partition, ProcessorId, Seat, StreamId, StreamInfo};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use super::{DefineError, Engine};
use crate::cluster::{Abilities, NodeToken, Plan, Standing};
use crate::dispatch::{
    Ground, Names, Order, ProcessorSettings, SettingsError, StoredProcessor, Workers, own,
};
use crate::handler::{Desk, Handler};
use crate::log::CatalogueError;
use crate::observe::{Meters, Places, SYSTEM_STREAM};

/// A processor to be registered: what the store keeps of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// Its name, unique in the store.
    pub name: String,
    /// The stream it processes.
    pub stream: String,
    /// How it runs its events.
    pub settings: ProcessorSettings,
    /// What kind of handler it has, in words of the caller; the engine does not read it. Default: empty.
    pub handler: Bytes,
}

impl Registration {
    /// A processor with default settings.
    pub fn new(name: impl Into<String>, stream: impl Into<String>) -> Self {
        let settings = ProcessorSettings::default();
        Self { name: name.into(), stream: stream.into(), settings, handler: Bytes::new() }
    }

    /// What the store keeps of it.
    fn encode(&self) -> Bytes {
        StoredProcessor { settings: self.settings.clone(), handler: self.handler.clone() }.encode()
    }
}

/// A processor as it is registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessorView {
    /// Its name.
    pub name: String,
    /// Its number.
    pub id: ProcessorId,
    /// The stream it processes.
    pub stream: String,
    /// Settings and description, or why this program cannot read them.
    pub stored: Result<StoredProcessor, SettingsError>,
    /// Whether it runs on this node.
    pub runs_here: bool,
}

/// The processors that run on this node. `None` while one is being started or stopped.
#[derive(Clone, Default)]
pub(super) struct Running(Arc<Mutex<BTreeMap<String, Option<Processing>>>>);

/// How long ago remote workers may have asked for a processor's events for it to count as wanted here.
const ASKED_WITHIN: Duration = Duration::from_secs(30);
/// The share of a processor's places that one seat waits for at a time: a quarter.
const PLACES_SHARE: usize = 4;

/// A processor that runs on this node.
struct Processing {
    id: ProcessorId,
    /// One per seat: who waits for a shared one is woken in an order that nobody can repeat.
    orders: Vec<watch::Sender<Order>>,
    seats: Vec<JoinHandle<()>>,
    work: Work,
    /// As it was stored when it was started.
    stored: Bytes,
}

impl Processing {
    /// Where remote workers claim its events.
    fn desk(&self) -> Option<Arc<Desk>> {
        match &self.work {
            Work::Desk(desk) => Some(Arc::clone(desk)),
            Work::Handler(_) => None,
        }
    }
}

/// Who runs the events.
#[derive(Clone)]
enum Work {
    Handler(Arc<dyn Handler>),
    /// Remote workers.
    Desk(Arc<Desk>),
}

/// What the store says of a processor that is about to start.
struct Prepared {
    info: Arc<StreamInfo>,
    processor: ProcessorId,
    reports_to: Option<StreamId>,
}

/// A name that nobody else can start or stop meanwhile.
struct Reserved {
    running: Running,
    name: String,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut running = self.running.0.lock();
        if running.get(&self.name).is_some_and(Option::is_none) {
            running.remove(&self.name);
        }
    }
}

impl Running {
    pub(super) fn names(&self) -> Vec<String> {
        let running = self.0.lock();
        running.iter().filter(|(_, runs)| runs.is_some()).map(|(name, _)| name.clone()).collect()
    }

    /// How each was stored when it was started here.
    fn stored(&self) -> BTreeMap<String, Bytes> {
        let running = self.0.lock();
        let here =
            running.iter().filter_map(|(name, runs)| Some((name.clone(), runs.as_ref()?.stored.clone())));
        here.collect()
    }

    fn reserve(&self, name: &str) -> Result<Reserved, DefineError> {
        let mut running = self.0.lock();
        if running.contains_key(name) {
            return Err(DefineError::AlreadyRuns(name.to_owned()));
        }
        running.insert(name.to_owned(), None);
        Ok(Reserved { running: self.clone(), name: name.to_owned() })
    }

    /// Takes a processor out to stop it.
    fn take(&self, name: &str) -> Option<(Reserved, Processing)> {
        let processing = self.0.lock().get_mut(name)?.take()?;
        Some((Reserved { running: self.clone(), name: name.to_owned() }, processing))
    }
}

impl Abilities for Running {
    fn abilities(&self) -> (BTreeSet<ProcessorId>, BTreeSet<ProcessorId>) {
        let running = self.0.lock();
        let here = || running.values().flatten();
        let runs = here().map(|processing| processing.id).collect();
        let asked = here().filter(|processing| processing.is_asked_for()).map(|processing| processing.id);
        (runs, asked.collect())
    }

    fn follow(&self, plan: &Plan, node: NodeToken) {
        self.order(
            |processor, partition| {
                if plan.node_of(processor, partition) == Some(node) { Order::Run } else { Order::Rest }
            },
        );
    }

    fn rest(&self) {
        self.order(|_, _| Order::Rest);
    }
}

impl Running {
    /// Orders every seat of this node to do this. What is being stopped is not among them.
    fn order(&self, order_of: impl Fn(ProcessorId, Partition) -> Order) {
        for processing in self.0.lock().values().flatten() {
            for (partition, sender) in (0..).map(Partition).zip(&processing.orders) {
                let order = order_of(processing.id, partition);
                sender.send_if_modified(|known| std::mem::replace(known, order) != order);
            }
        }
    }
}

impl Processing {
    fn is_asked_for(&self) -> bool {
        match &self.work {
            Work::Handler(_) => false,
            Work::Desk(desk) => desk.was_asked_within(ASKED_WITHIN),
        }
    }
}

impl Reserved {
    fn runs(self, processing: Processing) {
        self.running.0.lock().insert(self.name.clone(), Some(processing));
    }
}

impl Engine {
    /// Registers a processor, or changes what is stored of it, without running it here.
    pub async fn register(&self, registration: &Registration) -> Result<(), DefineError> {
        let (engine, registration) = (self.clone(), registration.clone());
        self.env.finish(async move { engine.write(&registration).await.map(|_| ()) }).await
    }

    /// Registers a processor and runs it on this node until it is stopped.
    pub async fn process(
        &self,
        name: &str,
        stream: &str,
        settings: ProcessorSettings,
        handler: Arc<dyn Handler>,
    ) -> Result<(), DefineError> {
        let registration = Registration { settings, ..Registration::new(name, stream) };
        self.process_as(registration, handler).await
    }

    /// [`process`](Self::process), with a description of the handler that the store keeps.
    pub async fn process_as(
        &self,
        registration: Registration,
        handler: Arc<dyn Handler>,
    ) -> Result<(), DefineError> {
        let reserved = self.running.reserve(&registration.name)?;
        self.start_whole(reserved, registration, Work::Handler(handler)).await
    }

    /// Registers a processor whose events remote workers claim at a desk, and offers them on this node.
    pub async fn process_at_desk(
        &self,
        name: &str,
        stream: &str,
        settings: ProcessorSettings,
    ) -> Result<Arc<Desk>, DefineError> {
        self.process_at_desk_as(Registration { settings, ..Registration::new(name, stream) }).await
    }

    /// [`process_at_desk`](Self::process_at_desk), with a description that the store keeps.
    pub async fn process_at_desk_as(&self, registration: Registration) -> Result<Arc<Desk>, DefineError> {
        let reserved = self.running.reserve(&registration.name)?;
        let desk = self.new_desk(&registration.settings);
        self.start_whole(reserved, registration, Work::Desk(Arc::clone(&desk))).await?;
        Ok(desk)
    }

    async fn start_whole(
        &self,
        reserved: Reserved,
        registration: Registration,
        work: Work,
    ) -> Result<(), DefineError> {
        let engine = self.clone();
        let starting = async move {
            let prepared = engine.prepare(&registration).await?;
            engine.start(reserved, &registration, work, prepared);
            Ok(())
        };
        self.env.finish(starting).await
    }

    /// The desk where remote workers claim the events of a processor that runs here.
    pub fn desk(&self, processor: &str) -> Option<Arc<Desk>> {
        self.running.0.lock().get(processor)?.as_ref()?.desk()
    }

    fn new_desk(&self, settings: &ProcessorSettings) -> Arc<Desk> {
        Arc::new(Desk::new(self.env.clone(), self.operator.clone(), settings.concurrency))
    }

    /// Changes the settings of a processor that runs here: it is drained and goes on with the new ones, and nothing is
    /// lost or run twice. Runs that take longer than `within` are asked to stop and run again afterwards.
    ///
    /// A processor at a desk gets a new desk, see [`desk`](Self::desk); claims that are open after `within` are lost.
    /// Where the processor began (`start`) is history and stays as it was.
    ///
    /// A change that fails leaves the processor running as it was. Carried to its end if the caller drops it.
    pub async fn change_processor(
        &self,
        registration: Registration,
        within: Duration,
    ) -> Result<(), DefineError> {
        let engine = self.clone();
        self.env.finish(async move { engine.change_now(registration, None, within).await }).await
    }

    /// [`change_processor`](Self::change_processor), and from then on another handler has the runs. It gets none before
    /// those of the old one have ended.
    pub async fn change_handler(
        &self,
        registration: Registration,
        handler: Arc<dyn Handler>,
        within: Duration,
    ) -> Result<(), DefineError> {
        let engine = self.clone();
        self.env.finish(async move { engine.change_now(registration, Some(handler), within).await }).await
    }

    async fn change_now(
        &self,
        registration: Registration,
        handler: Option<Arc<dyn Handler>>,
        within: Duration,
    ) -> Result<(), DefineError> {
        let name = registration.name.clone();
        let not_running = || DefineError::NotRunning(name.clone());
        if !self.running.names().contains(&name) {
            return Err(not_running());
        }
        // From the moment it is drained nothing may fail, or it would stand still and nobody would start it again.
        let prepared = self.prepare(&registration).await?;
        let (reserved, processing) = self.running.take(&name).ok_or_else(not_running)?;
        let work = match (handler, &processing.work) {
            (Some(handler), _) => Work::Handler(handler),
            (None, Work::Handler(handler)) => Work::Handler(Arc::clone(handler)),
            (None, Work::Desk(_)) => Work::Desk(self.new_desk(&registration.settings)),
        };
        self.end(vec![processing], within).await;
        self.start(reserved, &registration, work, prepared);
        Ok(())
    }

    /// Takes over what other nodes were told to change about processors that run here: each is drained, and goes on with what is
    /// stored. One with another kind of handler is only stopped: whoever knows handlers starts it again.
    pub async fn follow_changes(&self, within: Duration) -> Result<(), DefineError> {
        let streams = self.catalogue.streams().await?;
        let running = self.running.stored();
        for (stream, processor) in streams.iter().flat_map(|stream| {
            stream.processors.iter().map(move |processor| (stream.name.clone(), processor.clone()))
        }) {
            let Some(here) = running.get(&processor.name).filter(|here| **here != processor.settings) else {
                continue;
            };
            // What a newer Laneway wrote stays as it was understood here.
            let Ok(stored) = StoredProcessor::decode(processor.settings) else { continue };
            let is_same_kind =
                StoredProcessor::decode(here.clone()).is_ok_and(|here| here.handler == stored.handler);
            if is_same_kind {
                let registration = Registration {
                    settings: stored.settings,
                    handler: stored.handler,
                    ..Registration::new(processor.name, stream)
                };
                self.change_processor(registration, within).await?;
            } else {
                self.stop_if_running(&processor.name, within).await;
            }
        }
        Ok(())
    }

    /// Drains one processor on this node while the others run; after `within` its runs are asked to stop.
    ///
    /// It stays registered, and what did not finish runs again when it is next started. Carried to its end if the caller
    /// drops it: until then its name cannot be started.
    pub async fn stop_processor(&self, name: &str, within: Duration) -> Result<(), DefineError> {
        if self.stop_if_running(name, within).await {
            return Ok(());
        }
        Err(DefineError::NotRunning(name.to_owned()))
    }

    pub(super) async fn stop_if_running(&self, name: &str, within: Duration) -> bool {
        let Some((reserved, processing)) = self.running.take(name) else { return false };
        let engine = self.clone();
        let stopping = async move {
            engine.end(vec![processing], within).await;
            drop(reserved);
        };
        self.env.finish(stopping).await;
        true
    }

    /// Removes a processor with its progress, lane states and dead letters; it is drained here first. Jobs that only it
    /// would have answered wait for ever and say so. Carried to its end if the caller drops it.
    pub async fn remove_processor(&self, name: &str, within: Duration) -> Result<(), DefineError> {
        let (engine, name) = (self.clone(), name.to_owned());
        self.env.finish(async move { engine.remove_processor_now(&name, within).await }).await
    }

    async fn remove_processor_now(&self, name: &str, within: Duration) -> Result<(), DefineError> {
        self.catalogue.refresh().await?;
        let (_, processor) = self.catalogue.processor(name).await?;
        self.stop_if_running(name, within).await;
        self.catalogue.define(Define::RemoveProcessor { processor }).await?;
        Ok(())
    }

    /// All processors of the store, by name.
    pub async fn processors(&self) -> Result<Vec<ProcessorView>, DefineError> {
        let here = self.running.names();
        let streams = self.catalogue.streams().await?;
        let of_stream = |stream: &Arc<StreamInfo>| {
            let name = stream.name.clone();
            let processors = stream.processors.clone().into_iter();
            processors.map(move |processor| (name.clone(), processor))
        };
        let mut views: Vec<ProcessorView> = streams
            .iter()
            .flat_map(of_stream)
            .map(|(stream, processor)| ProcessorView {
                runs_here: here.contains(&processor.name),
                name: processor.name,
                id: processor.id,
                stream,
                stored: StoredProcessor::decode(processor.settings),
            })
            .collect();
        views.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(views)
    }

    /// Takes no new turns, lets what runs finish, and after `within` asks the rest to stop.
    ///
    /// Nothing is lost: what did not finish runs again at the next start. Carried to its end if the caller drops it.
    pub async fn drain(&self, within: Duration) {
        let engine = self.clone();
        self.env.finish(async move { engine.drain_now(within).await }).await;
    }

    async fn drain_now(&self, within: Duration) {
        self.upkeep.lock().drain(..).for_each(|task| task.abort());
        if let Some(membership) = &self.membership {
            membership.leave();
        }
        let names = self.running.names();
        let taken: Vec<_> = names.iter().filter_map(|name| self.running.take(name)).collect();
        let (_reserved, running): (Vec<_>, Vec<_>) = taken.into_iter().unzip();
        self.end(running, within).await;
        // The lease was needed until here.
        if let Some(keeping) = self.keeping.lock().take() {
            keeping.abort();
        }
        if let Some(membership) = &self.membership
            && let Err(error) = membership.depart(&*self.stores.documents).await
        {
            tracing::warn!(%error, "the cluster was not told that this node goes: others wait for its lease to end");
        }
    }

    async fn end(&self, running: Vec<Processing>, within: Duration) {
        running.iter().for_each(|processing| self.nearby.stopped(processing.id));
        let orders: Vec<_> = running.iter().flat_map(|processing| processing.orders.clone()).collect();
        let desks: Vec<_> = running.iter().filter_map(Processing::desk).collect();
        tell(&orders, Order::Drain);
        let all = async {
            let seats = running.into_iter().flat_map(|processing| processing.seats);
            for ended in join_all(seats).await {
                if let Err(error) = ended {
                    tracing::error!(%error, "a seat's loop came to a bad end");
                }
            }
        };
        let late = async {
            self.env.sleep(within).await;
            tell(&orders, Order::Stop);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = all => {}
            () = late => {}
        }
        desks.iter().for_each(|desk| desk.close());
    }

    fn standing(&self) -> Standing {
        self.membership.as_ref().map_or(Standing::Alone, |membership| membership.standing())
    }

    fn grace(&self) -> Duration {
        self.membership.as_ref().map_or(Duration::ZERO, |membership| membership.settings.grace)
    }

    /// What can run here has changed.
    fn tell_others(&self) {
        if let Some(membership) = &self.membership {
            membership.look_again();
        }
    }

    async fn write(
        &self,
        registration: &Registration,
    ) -> Result<(Arc<StreamInfo>, ProcessorId), DefineError> {
        let Registration { name, stream, settings, handler: _ } = registration;
        settings.check().map_err(DefineError::Settings)?;
        let info = self.catalogue.stream(stream).await?;
        let stored = registration.encode();
        let known = info.processors.iter().find(|processor| processor.name == *name);
        if known.is_none_or(|known| known.settings != stored) {
            let define = Define::Processor {
                stream: info.id,
                name: name.clone(),
                start: settings.start,
                settings: stored,
            };
            self.catalogue.define(define).await?;
        }
        Ok(self.catalogue.processor(name).await?)
    }

    /// Where the seats of a stream report to.
    async fn reports_of(&self, stream: StreamId) -> Result<Option<StreamId>, DefineError> {
        match self.catalogue.stream(SYSTEM_STREAM).await {
            // A report about the system stream would cause the next report.
            Ok(system) => Ok((system.id != stream).then_some(system.id)),
            // Nobody wants reports. Any other error would end them for good without a word.
            Err(CatalogueError::NoStream(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Does everything of a start that can fail. What is stored comes last: a caller that tries again after a failure
    /// finds it as it was.
    async fn prepare(&self, registration: &Registration) -> Result<Prepared, DefineError> {
        let stream = self.catalogue.stream(&registration.stream).await?;
        let reports_to = self.reports_of(stream.id).await?;
        let (info, processor) = self.write(registration).await?;
        Ok(Prepared { info, processor, reports_to })
    }

    fn start(&self, reserved: Reserved, registration: &Registration, work: Work, prepared: Prepared) {
        let Prepared { info, processor, reports_to } = prepared;
        let stored = registration.encode();
        let Registration { name, stream, settings, .. } = registration;
        let (handler, places) = match &work {
            Work::Handler(handler) => (Arc::clone(handler), Arc::new(Semaphore::new(settings.concurrency))),
            Work::Desk(desk) => (Arc::clone(desk) as Arc<dyn Handler>, desk.places()),
        };
        let concurrency = settings.concurrency;
        let (places_here, demand, places_at_once) = match &work {
            Work::Handler(_) => {
                (Places::Here { concurrency, free: Arc::clone(&places) }, None, concurrency / PLACES_SHARE)
            }
            // Workers outside ask for one lane each.
            Work::Desk(desk) => {
                (Places::Desk { concurrency, desk: Arc::clone(desk) }, Some(desk.demand()), 1)
            }
        };
        let (workers, timeout) = (Workers::new(self.env.clone()), settings.timeout);
        let (stream, name): (Arc<str>, Arc<str>) = (Arc::from(stream.as_str()), Arc::from(name.as_str()));
        let ground_of = |partition| Ground {
            env: self.env.clone(),
            store: Arc::clone(&self.stores.store),
            documents: Arc::clone(&self.stores.documents),
            wakeups: Arc::clone(&self.stores.wakeups),
            catalogue: Arc::clone(&self.catalogue),
            handler: Arc::clone(&handler),
            workers: Arc::clone(&workers),
            places: Arc::clone(&places),
            places_at_once: places_at_once.max(1),
            alone: Arc::clone(&self.alone),
            taking: Arc::clone(&self.taking),
            // Texts of its own: every run shares them, and seats run on different threads.
            stream: Arc::from(&*stream),
            processor: Arc::from(&*name),
            timeout,
            meters: Meters::new(&stream, &name, partition),
            nearby: self.nearby.clone(),
            demand: demand.clone(),
            standing: self.standing(),
            grace: self.grace(),
        };
        // In a cluster the plan says which seats are ours.
        let at_first = if self.membership.is_some() { Order::Rest } else { Order::Run };
        let names = Names { stream: Arc::clone(&stream), processor: Arc::clone(&name), reports_to };
        let settings = Arc::new(settings.clone());
        let (orders, seats) = (0..info.settings.partitions)
            .map(|partition| {
                let (order, orders) = watch::channel(at_first);
                let seat = Seat { shard: info.shard(Partition(partition)), processor };
                let (ground, settings) = (Arc::new(ground_of(partition)), Arc::clone(&settings));
                (order, self.env.spawn(own(ground, seat, settings, Arc::clone(&info), names.clone(), orders)))
            })
            .unzip();
        self.nearby.runs(processor, places_here);
        reserved.runs(Processing { id: processor, orders, seats, work, stored });
        self.tell_others();
    }
}

fn tell(orders: &[watch::Sender<Order>], order: Order) {
    for sender in orders {
        sender.send_replace(order);
    }
}
