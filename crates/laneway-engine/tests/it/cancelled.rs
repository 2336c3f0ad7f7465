//! A caller may drop a change at any await point: it is carried out to its end, or was never begun.
//!
//! Each check drops one call after every number of polls, in a new world each time, until the call ends by itself.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use laneway_core::{Draft, Key, Kind, Mode, StreamSettings};
use laneway_embedded::MemoryStore;
use laneway_engine::handler::{LaneAnswer, Run};
use laneway_engine::log::Appending;
use laneway_engine::service::TokioClock;
use laneway_engine::{Engine, Env, ProcessorSettings, Registration, Stores};
use laneway_testkit::fault::{Yielding, polled};

use crate::seam;

/// Long enough for whatever was begun to end, in a world without real time.
const QUIET: Duration = Duration::from_secs(600);
/// How long a drain waits for runs.
const DRAIN: Duration = Duration::from_secs(10);

/// What can be seen of an engine: its streams with their processors, and whether those run.
type Seen = Vec<(String, Vec<(String, u32, bool)>)>;

struct Place {
    engine: Engine,
}

impl Place {
    /// An engine with a stream of four partitions and a processor that runs.
    async fn new() -> Self {
        let clock = Arc::new(TokioClock::start());
        let env = Env::seeded(clock.clone(), 7);
        let store = Arc::new(MemoryStore::new(clock));
        let yielding = Yielding::new(store.clone(), store.clone());
        let stores = Stores { store: yielding.clone(), documents: yielding, wakeups: store };
        let engine = Engine::new(stores, env);
        let settings = StreamSettings { partitions: 4, mode: Mode::Queue, ..StreamSettings::default() };
        engine.define_stream("orders", settings).await.expect("a new stream");
        let place = Self { engine };
        place.engine.process_as(registration("charge", 1), handler()).await.expect("a new processor");
        place
    }

    async fn seen(&self) -> Seen {
        let mut seen: Seen = Vec::new();
        let processors = self.engine.processors().await.expect("listed");
        for info in self.engine.catalogue().streams().await.expect("listed") {
            let of_stream = processors.iter().filter(|view| view.stream == info.name);
            let of_stream = of_stream.map(|view| {
                let concurrency = view.stored.as_ref().expect("readable").settings.concurrency;
                (view.name.clone(), u32::try_from(concurrency).expect("small"), view.runs_here)
            });
            seen.push((info.name.clone(), of_stream.collect()));
        }
        seen
    }

    /// How many events there are in each partition.
    async fn heads(&self) -> Vec<u64> {
        let standing = self.engine.looker().stream("orders").await.expect("it is there");
        standing.partitions.iter().map(|partition| partition.head.0).collect()
    }

    /// How many partitions stand because somebody paused the processor.
    async fn paused(&self) -> usize {
        self.engine.looker().stopped("charge").await.expect("it is there").len()
    }
}

fn handler() -> Arc<dyn laneway_engine::handler::Handler> {
    Arc::new(|run: Run| async move { run.lanes.iter().map(LaneAnswer::all_done).collect() })
}

fn registration(name: &str, concurrency: usize) -> Registration {
    let settings = ProcessorSettings { concurrency, ..ProcessorSettings::default() };
    Registration { settings, ..Registration::new(name, "orders") }
}

/// Drops a call after every number of polls; what is seen afterwards is what was there before or what a whole call leaves.
async fn check<S, F>(call: impl Fn(Engine) -> BoxFuture<'static, ()>, look: impl Fn(Arc<Place>) -> F)
where
    S: PartialEq + std::fmt::Debug,
    F: Future<Output = S>,
{
    let place = Arc::new(Place::new().await);
    let before = look(Arc::clone(&place)).await;
    call(place.engine.clone()).await;
    seam::wait(QUIET).await;
    let after = look(place).await;
    assert_ne!(before, after, "a call without an effect proves nothing");
    for polls in 1.. {
        let place = Arc::new(Place::new().await);
        let ended = polled(polls, call(place.engine.clone())).await;
        seam::wait(QUIET).await;
        let seen = look(Arc::clone(&place)).await;
        assert!(
            seen == before || seen == after,
            "dropped after {polls} polls: {seen:?} is neither {before:?} nor {after:?}"
        );
        // Whatever became of it, the node can go on with it: a repeat has the whole effect.
        call(place.engine.clone()).await;
        if ended.is_some() {
            assert!(polls > 1, "nothing was ever dropped halfway");
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_removal_of_a_processor_is_carried_out() {
    let call = |engine: Engine| -> BoxFuture<'static, ()> {
        Box::pin(async move { drop(engine.remove_processor("charge", DRAIN).await) })
    };
    check(call, |place| async move { place.seen().await }).await;
}

#[tokio::test(start_paused = true)]
async fn dropped_removal_of_a_stream_is_carried_out() {
    let call = |engine: Engine| -> BoxFuture<'static, ()> {
        Box::pin(async move { drop(engine.remove_stream("orders", DRAIN).await) })
    };
    check(call, |place| async move { place.seen().await }).await;
}

#[tokio::test(start_paused = true)]
async fn dropped_start_of_a_processor_is_carried_out() {
    let call = |engine: Engine| -> BoxFuture<'static, ()> {
        Box::pin(async move { drop(engine.process_as(registration("audit", 3), handler()).await) })
    };
    check(call, |place| async move { place.seen().await }).await;
    let call = |engine: Engine| -> BoxFuture<'static, ()> {
        Box::pin(async move { drop(engine.process_at_desk_as(registration("audit", 3)).await) })
    };
    check(call, |place| async move { place.seen().await }).await;
}

#[tokio::test(start_paused = true)]
async fn dropped_change_of_a_processor_is_carried_out() {
    let call = |engine: Engine| -> BoxFuture<'static, ()> {
        Box::pin(async move { drop(engine.change_processor(registration("charge", 3), DRAIN).await) })
    };
    check(call, |place| async move { place.seen().await }).await;
}

#[tokio::test(start_paused = true)]
async fn dropped_stop_keeps_the_name_until_its_runs_have_ended() {
    let call = |engine: Engine| -> BoxFuture<'static, ()> {
        Box::pin(async move { drop(engine.stop_processor("charge", DRAIN).await) })
    };
    check(call, |place| async move { place.seen().await }).await;
}

#[tokio::test(start_paused = true)]
async fn dropped_pause_stops_all_partitions_or_none() {
    let call = |engine: Engine| -> BoxFuture<'static, ()> {
        Box::pin(async move { drop(engine.operator().pause("charge", "ann").await) })
    };
    check(call, |place| async move { place.paused().await }).await;
}

#[tokio::test(start_paused = true)]
async fn dropped_append_reaches_all_its_partitions_or_none() {
    let call = |engine: Engine| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let draft = |key: u32| {
                let key = Key::new(format!("key {key}")).expect("a key");
                Draft::new(Some(key), Kind::new("order").expect("a type"), "{}")
            };
            let drafts = (0..16).map(draft).collect();
            drop(engine.producer().append("orders", Appending { drafts, object: None }).await);
        })
    };
    check(call, |place| async move { place.heads().await }).await;
}
