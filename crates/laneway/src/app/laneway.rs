//! The app.

use std::any::TypeId;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::JobId;
use laneway_engine::cluster::NodeSettings;
use laneway_engine::job::BatchId;
use laneway_engine::{DefineError, Engine, Env, Stores};

use super::open::{OpenError, open, without_user};
use super::options::StoreOptions;
use super::processor::Processor;
use super::shared::Shared;
use super::signal::asked_to_end;
use super::start::StartError;
use crate::error::Result;
use crate::handler::Handler;
use crate::job::{JobBatch, JobHandle};
use crate::operations::Operations;
use crate::record::Record;
use crate::schedule::{Schedules, Scheduling};
use crate::stream::Stream;

/// How long runs may take to finish when the process is asked to end.
const DRAIN: Duration = Duration::from_secs(30);

/// An app: a store, streams, processors. Cheap to clone; all clones are the same app.
///
/// ```no_run
/// use laneway::prelude::*;
///
/// #[derive(Record, Serialize, Deserialize)]
/// #[record(key = "customer")]
/// struct Order {
///     customer: String,
///     cents: u64,
/// }
///
/// async fn charge(Event(order): Event<Order>, mut total: LaneState<u64>) -> Result<u64> {
///     *total += order.cents;
///     Ok(*total)
/// }
///
/// #[tokio::main]
/// async fn main() -> Result<()> {
///     let app = Laneway::open("file:./data").await?;
///     let orders = app.stream::<Order>("orders");
///     app.processor("charge", &orders, charge).on_failure(OnFailure::Park).concurrency(64);
///     app.start().await?;
///
///     let order = Order { customer: "ann".to_owned(), cents: 500 };
///     let receipt = orders.send(&order).await?;
///     println!("{:?}, {}", receipt.reference, receipt.durability);
///     let job = orders.submit_as::<u64>(&order).await?;
///     println!("{} so far", job.wait(secs(60)).await?);
///
///     app.run().await // until a signal; then it drains
/// }
/// ```
#[derive(Clone)]
pub struct Laneway {
    shared: Arc<Shared>,
}

impl Laneway {
    /// Opens the store that a URL names: `memory:`, `file:PATH` for a folder on this machine, or, with the feature `redis`,
    /// `redis://HOST:PORT/DB`, `rediss://` for the same over TLS, and `unix:PATH` for a socket.
    ///
    /// ```
    /// use laneway::Laneway;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> laneway::Result<()> {
    /// # let folder = tempfile::tempdir()?;
    /// # let folder = folder.path().display();
    /// let app = Laneway::open(&format!("file:{folder}/data")).await?;
    /// # Ok(()) }
    /// ```
    pub async fn open(url: &str) -> Result<Self, OpenError> {
        Self::open_with(url, &StoreOptions::default()).await
    }

    /// The same with options, which are for stores that several processes share.
    pub async fn open_with(url: &str, options: &StoreOptions) -> Result<Self, OpenError> {
        let env = Env::system();
        let opened = open(url, options, &env).await?;
        let stores = opened.stores;
        if !stores.store.about().capabilities.shared {
            let shared = Shared::new(Engine::new(stores, env));
            #[cfg(feature = "embedded")]
            let shared = shared.with_files(opened.files);
            return Ok(Self { shared: Arc::new(shared) });
        }
        let node = options.node.clone().unwrap_or_else(usual_node);
        let joined = Self::join(stores, node).await;
        joined.map_err(|error| match error {
            DefineError::Store(source) => OpenError::Store { url: without_user(url), source },
            error => OpenError::Node(error),
        })
    }

    /// An app on a store of your own that several processes use at once: one node of a cluster.
    ///
    /// ```no_run
    /// use laneway::engine::Stores;
    /// use laneway::{Laneway, NodeSettings};
    ///
    /// # async fn open(stores: Stores) -> laneway::Result<()> {
    /// let app = Laneway::join(stores, NodeSettings { weight: 2, ..NodeSettings::new("shop-1") }).await?;
    /// # Ok(()) }
    /// ```
    pub async fn join(stores: Stores, node: NodeSettings) -> Result<Self, DefineError> {
        let mut env = Env::system();
        if stores.store.clock_report().is_none() {
            env = env.in_time_with(&*stores.store).await?;
        }
        Ok(Self::with_engine(Engine::in_cluster(stores, env, node)?))
    }

    /// An app on a store of your own, or one that was opened with options.
    ///
    /// ```
    /// use laneway::core::SystemClock;
    /// use laneway::engine::Stores;
    /// use laneway::Laneway;
    /// use laneway_embedded::{FileOptions, FileStore, SyncMode};
    /// use std::sync::Arc;
    ///
    /// # fn main() -> laneway::Result<()> {
    /// # let folder = tempfile::tempdir()?;
    /// # let folder = folder.path();
    /// let options = FileOptions { sync: SyncMode::Os, ..FileOptions::default() };
    /// let store = Arc::new(FileStore::open_with(folder, options, Arc::new(SystemClock))?);
    /// let app = Laneway::with_store(Stores { store: store.clone(), documents: store.clone(), wakeups: store });
    /// # Ok(()) }
    /// ```
    ///
    /// It must be the only process on that store; several of them [`join`](Self::join).
    pub fn with_store(stores: Stores) -> Self {
        Self::with_engine(Engine::new(stores, Env::system()))
    }

    pub(crate) fn with_engine(engine: Engine) -> Self {
        Self { shared: Arc::new(Shared::new(engine)) }
    }

    /// Shares a value with all handlers, which take it as [`State<T>`](crate::State). One value per type; the last one
    /// given before the start counts.
    pub fn state<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.shared.change(|declarations| declarations.states.insert(TypeId::of::<T>(), Arc::new(value)));
        self
    }

    /// A stream of records. It is created when it is first used, unless it exists.
    pub fn stream<T: Record>(&self, name: &str) -> Stream<T> {
        Stream::new(Arc::clone(&self.shared), self.shared.stream::<T>(name))
    }

    /// Declares a processor: every event of the stream runs through its handler, in order per key.
    ///
    /// It runs from [`start`](Self::start) on. Its name is unique in the store and carries its progress: under the same
    /// name it goes on where it was.
    pub fn processor<T, Arguments, H>(&self, name: &str, stream: &Stream<T>, handler: H) -> Processor<'_>
    where
        T: Record,
        H: Handler<T, Arguments>,
    {
        Processor::declare(&self.shared, name, stream.shared_name()).and(stream, handler)
    }

    /// Checks everything that was declared and runs it, removes what retention allows, fires what is scheduled, and
    /// reports parked lanes and failed jobs on the stream `_laneway`; see [`StartError`]. What was declared since the last start
    /// joins in when it is called again.
    pub async fn start(&self) -> Result<(), StartError> {
        self.shared.start().await
    }

    /// Lets what runs finish, and asks it to stop after this time. Nothing is lost: what did not finish runs again at
    /// the next start.
    pub async fn stop(&self, within: Duration) {
        self.shared.stop(within).await;
    }

    /// Starts, runs until the process is asked to end (Ctrl-C or SIGTERM), then stops within 30 s.
    pub async fn run(&self) -> Result<()> {
        self.run_until(asked_to_end()).await??;
        Ok(())
    }

    /// Starts, runs until this has come, then stops within 30 s. Answers what has come.
    ///
    /// ```
    /// use laneway::Laneway;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> laneway::Result<()> {
    /// let app = Laneway::open("memory:").await?;
    /// app.run_until(async { /* a message, a file, a deadline */ }).await?;
    /// # Ok(()) }
    /// ```
    pub async fn run_until<A>(&self, end: impl Future<Output = A>) -> Result<A, StartError> {
        self.start().await?;
        let end = end.await;
        self.stop(DRAIN).await;
        Ok(end)
    }

    /// A job by its id; see [`JobHandle`].
    pub fn job<Out>(&self, id: JobId) -> JobHandle<Out> {
        JobHandle::new(Arc::clone(&self.shared), id)
    }

    /// Jobs that were submitted together, by the id of their batch; see [`JobBatch`].
    pub fn batch<Out>(&self, id: BatchId) -> JobBatch<Out> {
        JobBatch::new(Arc::clone(&self.shared), id)
    }

    /// Sends a record by the clock; see [`Scheduling`]. The app fires what is due while it runs.
    pub fn schedule<'a, T: Record>(
        &'a self,
        name: &str,
        stream: &'a Stream<T>,
        record: &T,
    ) -> Scheduling<'a, T> {
        Scheduling::new(self.engine(), name, stream, record)
    }

    /// The schedules of the store: list, run now, pause, remove.
    pub fn schedules(&self) -> Schedules {
        Schedules::new(self.engine().clone())
    }

    /// What an operator can do with the lanes of a processor; see [`Operations`].
    pub fn operations(&self, processor: &str) -> Operations {
        Operations::new(self.engine().clone(), processor)
    }

    /// The folder of the store, to back it up while the app works; none if it was not opened by a `file:` URL.
    ///
    /// ```
    /// use laneway::Laneway;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> laneway::Result<()> {
    /// # let root = tempfile::tempdir()?;
    /// # let (folder, copy) = (root.path().join("data"), root.path().join("copy"));
    /// let app = Laneway::open(&format!("file:{}", folder.display())).await?;
    /// if let Some(files) = app.files() {
    ///     files.backup(&copy)?; // it reads and writes files: in a program with a runtime, on a thread that may wait
    /// }
    /// # assert!(copy.join("index.redb").exists());
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "embedded")]
    pub fn files(&self) -> Option<&laneway_embedded::FileStore> {
        self.shared.files.as_ref()
    }

    /// The engine underneath, which handles bytes.
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }
}

/// A node that is named after its process.
fn usual_node() -> NodeSettings {
    NodeSettings::new(format!("process-{}", std::process::id()))
}

impl std::fmt::Debug for Laneway {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Laneway").field(self.engine()).finish()
    }
}
