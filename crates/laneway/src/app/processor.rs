//! The builder of a processor. It is declared from the first moment; every call changes its declaration.

use std::time::Duration;

use laneway_core::StartAt;
use laneway_engine::Batch;
use laneway_engine::handler::OnFailure;
use std::sync::Arc;

use super::shared::{Declaration, Shared};
use crate::handler::{Handler, Layer, erase};
use crate::record::Record;
use crate::stream::Stream;

/// How often a failed event is tried again, and how long between.
///
/// ```
/// use laneway::prelude::*;
/// let patient = Retry { max_attempts: 20, backoff: secs(2), ..Retry::default() };
/// assert_eq!(patient.backoff_max, mins(5));
/// assert_eq!(Retry::never().max_attempts, 1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Attempts at one event, the first included. Default 5.
    pub max_attempts: u32,
    /// Wait after the first failed attempt; doubles with each, give or take. Default 1 s.
    pub backoff: Duration,
    /// Longest wait. Default 5 min.
    pub backoff_max: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { max_attempts: 5, backoff: Duration::from_secs(1), backoff_max: Duration::from_secs(300) }
    }
}

impl Retry {
    /// One attempt.
    pub fn never() -> Self {
        Self { max_attempts: 1, ..Self::default() }
    }

    /// So many attempts, the first included.
    pub fn attempts(max_attempts: u32) -> Self {
        Self { max_attempts, ..Self::default() }
    }
}

/// A processor that was declared: change its settings before the app starts.
///
/// ```
/// use laneway::prelude::*;
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "account")]
/// # struct Payment { account: String, cents: i64 }
/// # async fn charge(Event(_): Event<Payment>) -> Result<()> { Ok(()) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let app = Laneway::open("memory:").await?;
/// let payments = app.stream::<Payment>("payments");
/// app.processor("charge", &payments, charge)
///     .retry(Retry { max_attempts: 10, backoff: secs(1), backoff_max: mins(10) })
///     .on_failure(OnFailure::Park)
///     .timeout(secs(30))
///     .concurrency(64);
/// # Ok(()) }
/// ```
///
/// A second one that looks at what comes from now on, no faster than others can take it:
///
/// ```
/// use laneway::StartAt;
/// use laneway::prelude::*;
/// use laneway::testing::App;
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "account")]
/// # struct Payment { account: String, cents: i64 }
/// # async fn charge(Event(_): Event<Payment>) -> Result<()> { Ok(()) }
/// async fn mirror(Event(payment): Event<Payment>) -> Result<i64> { Ok(payment.cents) }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<()> {
/// # let app = App::new();
/// let payments = app.stream::<Payment>("payments");
/// payments.send(&Payment { account: "a1".to_owned(), cents: 1 }).await?;
/// app.processor("mirror", &payments, mirror)
///     .start_at(StartAt::End) // not the payments of before
///     .types(["payment*"]) // others pass by
///     .rate(100) // runs per second in all …
///     .rate_per_key(1) // … and of one account
///     .run_ahead(10) // faster: after a crash up to ten finished payments of an account run again
///     .crashes_max(1); // one that takes the process down is parked at once
/// app.start().await?;
/// let new = payments.submit_as::<i64>(&Payment { account: "a1".to_owned(), cents: 2 }).await?;
/// assert_eq!(new.wait(secs(10)).await?, 2);
/// # Ok(()) }
/// ```
///
/// Where the newest wins, it may stop the run of what is out of date:
///
/// ```
/// use laneway::prelude::*;
/// use laneway::testing::App;
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "name", generation = "revision")]
/// # struct Pod { name: String, revision: u64 }
/// async fn sync(Event(pod): Event<Pod>, ctx: Ctx) -> Result<u64> {
///     if pod.revision == 1 {
///         ctx.cancel().cancelled().await; // an hour of work, which nobody wants any more
///         return Err(Error::permanent("stopped"));
///     }
///     let before: Option<Pod> = ctx.last_record()?; // here nothing: the first was never done
///     assert!(before.is_none_or(|before| before.revision < pod.revision));
///     Ok(pod.revision)
/// }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<()> {
/// let app = App::new();
/// let pods = app.stream::<Pod>("pods").mode(Mode::Latest);
/// app.processor("sync", &pods, sync).supersede_running().keep_last();
/// app.start().await?;
/// pods.send(&Pod { name: "web".to_owned(), revision: 1 }).await?;
/// app.advance(secs(1)).await;
/// let newer = pods.submit_as::<u64>(&Pod { name: "web".to_owned(), revision: 2 }).await?;
/// assert_eq!(newer.wait(secs(10)).await?, 2);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy)]
pub struct Processor<'a> {
    shared: &'a Shared,
    index: usize,
}

impl<'a> Processor<'a> {
    pub(super) fn declare(shared: &'a Shared, name: &str, stream: Arc<str>) -> Self {
        let index = shared.change(|declarations| {
            declarations.processors.push(Declaration {
                name: Arc::from(name),
                stream,
                settings: laneway_engine::ProcessorSettings { uses_state: false, ..Default::default() },
                routes: Vec::new(),
                needs: Default::default(),
                layers: Vec::new(),
                started: false,
                changed: false,
            });
            declarations.processors.len() - 1
        });
        Self { shared, index }
    }

    fn change(self, change: impl FnOnce(&mut Declaration)) -> Self {
        self.shared.change(|declarations| {
            let declaration = &mut declarations.processors[self.index];
            declaration.changed = declaration.started;
            change(declaration);
        });
        self
    }

    /// Adds a handler for another type of record on the same stream: both work on the same lanes in one order, and
    /// share the lanes' state.
    ///
    /// ```
    /// use laneway::prelude::*;
    ///
    /// # #[derive(Record, Serialize, Deserialize)]
    /// # #[record(key = "account")]
    /// # struct Payment { account: String, cents: i64 }
    /// # #[derive(Job, Serialize, Deserialize)]
    /// # #[job(key = "account", output = "i64")]
    /// # struct Balance { account: String }
    /// async fn book(Event(payment): Event<Payment>, mut total: LaneState<i64>) -> Result<()> {
    ///     *total += payment.cents;
    ///     Ok(())
    /// }
    ///
    /// /// Runs in the lane of its account, so it sees every payment that was sent before it, and none sent after.
    /// async fn balance(Job(_): Job<Balance>, total: LaneState<i64>) -> Result<i64> {
    ///     Ok(*total)
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let app = Laneway::open("memory:").await?;
    /// let payments = app.stream::<Payment>("payments");
    /// let balances = app.stream::<Balance>("payments");
    /// app.processor("book", &payments, book).and(&balances, balance);
    /// app.start().await?;
    /// payments.send(&Payment { account: "a1".to_owned(), cents: 500 }).await?;
    /// let job = balances.submit(&Balance { account: "a1".to_owned() }).await?;
    /// assert_eq!(job.wait(secs(10)).await?, 500);
    /// # app.stop(secs(5)).await;
    /// # Ok(()) }
    /// ```
    pub fn and<T, Arguments, H>(self, stream: &Stream<T>, handler: H) -> Self
    where
        T: Record,
        H: Handler<T, Arguments>,
    {
        let mut elsewhere = None;
        let changed = self.change(|declaration| {
            if *declaration.stream != *stream.name() {
                elsewhere = Some(format!(
                    "processor {:?}: it runs on stream {:?} and cannot take {} from stream {:?}",
                    declaration.name,
                    declaration.stream,
                    T::KIND,
                    stream.name()
                ));
            }
            H::need(&mut declaration.needs);
            if declaration.settings.batch == Batch::One {
                declaration.settings.batch = H::BATCH;
            }
            declaration.routes.push((T::KIND, erase(handler)));
        });
        if let Some(fault) = elsewhere {
            self.shared.fault(fault);
        }
        changed
    }

    /// How often a failed event is tried again. Default: [`Retry::default`].
    pub fn retry(self, retry: Retry) -> Self {
        self.change(|declaration| {
            let policy = &mut declaration.settings.policy;
            policy.max_attempts = retry.max_attempts;
            policy.backoff = retry.backoff;
            policy.backoff_max = retry.backoff_max;
        })
    }

    /// What happens to an event that is given up. Default: it is parked, and its lane waits for a decision.
    pub fn on_failure(self, on_failure: OnFailure) -> Self {
        self.change(|declaration| declaration.settings.policy.on_failure = on_failure)
    }

    /// Crashes of the process with an event running, after which it is parked. Default 3.
    pub fn crashes_max(self, crashes: u32) -> Self {
        self.change(|declaration| declaration.settings.policy.crashes_max = crashes)
    }

    /// Runs at the same time on this node. Default 64.
    pub fn concurrency(self, runs: usize) -> Self {
        self.change(|declaration| declaration.settings.concurrency = runs)
    }

    /// How long a run may take; then it is dropped and has failed. Default: no limit.
    pub fn timeout(self, length: Duration) -> Self {
        self.change(|declaration| declaration.settings.timeout = Some(length))
    }

    /// How many events one run takes. Default: one; up to a hundred of one lane for a handler that takes a
    /// [`LaneBatch`](crate::LaneBatch), the heads of up to a hundred lanes for one that takes a
    /// [`HeadBatch`](crate::HeadBatch).
    pub fn batch(self, batch: Batch) -> Self {
        self.change(|declaration| declaration.settings.batch = batch)
    }

    /// Puts code around every run; the first one added is the outermost.
    pub fn layer(self, layer: impl Layer) -> Self {
        self.change(|declaration| declaration.layers.push(Arc::new(layer)))
    }

    /// Which types of events run, with `*` for any ending; others pass by. Default: those of its handlers where the app
    /// declares several record types on the stream, else all.
    pub fn types<N: Into<String>>(self, types: impl IntoIterator<Item = N>) -> Self {
        let types = types.into_iter().map(Into::into).collect();
        self.change(|declaration| declaration.settings.types = types)
    }

    /// Where a new processor begins. Default: the first event there is.
    pub fn start_at(self, start: StartAt) -> Self {
        self.change(|declaration| declaration.settings.start = start)
    }

    /// Events of one lane that may start before the one before is durably settled: faster, but after a crash up to so
    /// many finished events of a lane run again. Default 0.
    pub fn run_ahead(self, events: u32) -> Self {
        self.change(|declaration| declaration.settings.run_ahead = events)
    }

    /// Runs that may start per second, over all lanes. Default: no bound.
    pub fn rate(self, runs: u32) -> Self {
        self.change(|declaration| declaration.settings.rate = Some(runs))
    }

    /// Runs of one key that may start per second. Default: no bound.
    pub fn rate_per_key(self, runs: u32) -> Self {
        self.change(|declaration| declaration.settings.rate_per_key = Some(runs))
    }

    /// Where the newest wins: a newer event asks the running one of its lane to stop. Default: it may finish.
    pub fn supersede_running(self) -> Self {
        self.change(|declaration| declaration.settings.supersede_running = true)
    }

    /// Where the newest wins: keeps what was done last in every lane, so that a handler can compare with
    /// [`Ctx::last_record`](crate::Ctx::last_record). Costs a payload per lane. Default: only its id and generation.
    pub fn keep_last(self) -> Self {
        self.change(|declaration| declaration.settings.keep_last = true)
    }
}

impl std::fmt::Debug for Processor<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.shared.change(|declarations| Arc::clone(&declarations.processors[self.index].name));
        formatter.debug_tuple("Processor").field(&name).finish()
    }
}
