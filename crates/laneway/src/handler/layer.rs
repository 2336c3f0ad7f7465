//! Layers: code around every run of a processor, whatever its handler.

use std::future::Future;
use std::sync::Arc;

use laneway_engine::handler::{Handler, LaneAnswer, Run, Running};
use tracing::Instrument;

/// Code around every run of a processor: measure it, refuse it, change its answer.
///
/// An async function of a [`Run`] and the [`Next`] is a layer. The layer added first is the outermost.
///
/// ```
/// use laneway::prelude::*;
/// use laneway::handler::Next;
/// use laneway::engine::handler::{LaneAnswer, Run};
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "account")]
/// # struct Payment { account: String, cents: i64 }
/// # async fn book(Event(_): Event<Payment>) -> Result<()> { Ok(()) }
/// static RUNS: AtomicU64 = AtomicU64::new(0);
///
/// async fn count_runs(run: Run, next: Next) -> Vec<LaneAnswer> {
///     RUNS.fetch_add(1, Ordering::Relaxed);
///     next.run(run).await
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let app = Laneway::open("memory:").await?;
/// let payments = app.stream::<Payment>("payments");
/// app.processor("book", &payments, book).layer(count_runs);
/// app.start().await?;
/// payments.submit_as::<()>(&Payment { account: "a1".to_owned(), cents: 5 }).await?.wait(secs(10)).await?;
/// assert_eq!(RUNS.load(Ordering::Relaxed), 1);
/// # app.stop(secs(5)).await;
/// # Ok(()) }
/// ```
pub trait Layer: Send + Sync + 'static {
    /// Takes a run, usually hands it on, and answers for every lane of it.
    fn call(&self, run: Run, next: Next) -> Running;
}

impl<F, A> Layer for F
where
    F: Fn(Run, Next) -> A + Send + Sync + 'static,
    A: Future<Output = Vec<LaneAnswer>> + Send + 'static,
{
    fn call(&self, run: Run, next: Next) -> Running {
        Box::pin(self(run, next))
    }
}

/// What is inside a layer: the next one, or the handler. A layer that does not call it answers in its place.
///
/// ```
/// use laneway::engine::handler::{LaneAnswer, Retry as Again, Run};
/// use laneway::handler::Next;
/// use laneway::prelude::*;
/// use laneway::testing::App;
/// # use std::sync::atomic::{AtomicBool, Ordering};
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "account")]
/// # struct Payment { account: String, cents: i64 }
/// # async fn book(Event(_): Event<Payment>) -> Result<()> { Ok(()) }
/// static CLOSED: AtomicBool = AtomicBool::new(true);
///
/// /// While the bank is closed nothing runs, and the handler is not called.
/// async fn opening_hours(run: Run, next: Next) -> Vec<LaneAnswer> {
///     if CLOSED.swap(false, Ordering::Relaxed) {
///         let closed = || LaneAnswer::failed("the bank is closed", Again::After(hours(8)));
///         return run.lanes.iter().map(|_| closed()).collect();
///     }
///     next.run(run).await
/// }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<()> {
/// let app = App::new();
/// let payments = app.stream::<Payment>("payments");
/// app.processor("book", &payments, book).layer(opening_hours);
/// app.start().await?;
/// let job = payments.submit_as::<()>(&Payment { account: "a1".to_owned(), cents: 5 }).await?;
/// assert!(job.wait(hours(7)).await.is_err(), "it waits for the morning");
/// job.wait(hours(2)).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Next {
    layers: Arc<[Arc<dyn Layer>]>,
    at: usize,
    handler: Arc<dyn Handler>,
}

impl Next {
    /// Hands a run on.
    pub fn run(mut self, run: Run) -> Running {
        let Some(layer) = self.layers.get(self.at).map(Arc::clone) else { return self.handler.call(run) };
        self.at += 1;
        layer.call(run, self)
    }
}

impl std::fmt::Debug for Next {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Next").field("layers_left", &(self.layers.len() - self.at)).finish()
    }
}

/// A handler inside its layers.
pub(crate) struct Layered(Next);

impl Layered {
    pub(crate) fn wrap(layers: Vec<Arc<dyn Layer>>, handler: Arc<dyn Handler>) -> Arc<dyn Handler> {
        if layers.is_empty() {
            return handler;
        }
        Arc::new(Self(Next { layers: layers.into(), at: 0, handler }))
    }
}

impl Handler for Layered {
    fn call(&self, run: Run) -> Running {
        self.0.clone().run(run)
    }
}

/// A layer that puts every run into a `tracing` span with stream, processor, event and attempt. Never the payload.
///
/// ```
/// use laneway::prelude::*;
/// use laneway::handler::Trace;
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(keyless)]
/// # struct Visit;
/// # async fn count(Event(_): Event<Visit>) -> Result<()> { Ok(()) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let app = Laneway::open("memory:").await?;
/// app.processor("count", &app.stream::<Visit>("visits"), count).layer(Trace);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Trace;

impl Layer for Trace {
    fn call(&self, run: Run, next: Next) -> Running {
        let span = tracing::info_span!(
            "run",
            stream = %run.stream,
            processor = %run.processor,
            partition = run.partition.0,
            event = run.lanes[0].events[0].id.0,
            attempt = run.lanes[0].attempt,
        );
        Box::pin(next.run(run).instrument(span))
    }
}
