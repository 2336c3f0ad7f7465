//! Start: everything is checked, then everything runs, or nothing does and all faults are told at once.
//!
//! A fault is told at every start until it is mended. What runs already goes on whatever is wrong with the rest.

use std::any::TypeId;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use laneway_core::{Refusal, check_name};
use laneway_engine::handler::Handler as EngineHandler;
use laneway_engine::{Batch, ProcessorSettings};

use super::shared::{Carrying, Declaration, Declarations, Shared};
use crate::extract::{Ground, Needs};
use crate::handler::{Adapter, Layered};

/// Everything that keeps an app from starting.
///
/// ```
/// use laneway::prelude::*;
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(keyless)]
/// # struct Visit;
/// struct Pool;
/// async fn count(Event(_): Event<Visit>, State(_): State<Pool>) -> Result<()> { Ok(()) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let app = Laneway::open("memory:").await?;
/// let visits = app.stream::<Visit>("visits").partitions(0);
/// app.processor("count", &visits, count).concurrency(0);
/// let faults = app.start().await.unwrap_err().faults;
/// assert_eq!(faults.len(), 3, "the partitions, the concurrency and the missing Pool");
/// # Ok(()) }
/// ```
#[derive(Debug, thiserror::Error)]
#[error("the app cannot start: {}", faults.join("; "))]
pub struct StartError {
    /// All of them.
    pub faults: Vec<String>,
}

/// A processor that is ready to run.
struct Ready {
    index: usize,
    name: Arc<str>,
    stream: Arc<str>,
    settings: ProcessorSettings,
    handler: Arc<dyn EngineHandler>,
}

impl Shared {
    /// Starts what was declared and does not run yet.
    pub(super) async fn start(&self) -> Result<(), StartError> {
        let (ready, mut faults) = self.change(|declarations| self.check(declarations));
        faults.extend(self.foreseen(&ready).await);
        if !faults.is_empty() {
            return Err(StartError { faults });
        }
        for stream in self.streams() {
            if let Err(error) = stream.define(&self.engine).await {
                faults.push(format!("stream {:?}: {error}", stream.name));
            }
        }
        // Before the processors: they report to it from their start on.
        if let Err(error) = self.engine.start_reports().await {
            faults.push(format!("stream \"_laneway\": {error}"));
        }
        if !faults.is_empty() {
            return Err(StartError { faults });
        }
        self.run(ready).await?;
        self.engine.start_upkeep();
        Ok(())
    }

    /// Runs all of them, or none: what ran before is left alone.
    async fn run(&self, ready: Vec<Ready>) -> Result<(), StartError> {
        let (mut faults, mut started) = (Vec::new(), Vec::new());
        for Ready { index, name, stream, settings, handler } in ready {
            match self.engine.process(&name, &stream, settings, handler).await {
                Ok(()) => {
                    self.change(|declarations| declarations.processors[index].started = true);
                    started.push((index, name));
                }
                Err(error) => faults.push(format!("processor {name:?}: {error}")),
            }
        }
        if faults.is_empty() {
            return Ok(());
        }
        for (index, name) in started {
            if let Err(error) = self.engine.stop_processor(&name, Duration::ZERO).await {
                faults.push(format!("processor {name:?}: {error}"));
            }
            self.change(|declarations| declarations.processors[index].stopped());
        }
        Err(StartError { faults })
    }

    /// Lets what runs finish, and asks it to stop after this time.
    pub(super) async fn stop(&self, within: Duration) {
        self.engine.drain(within).await;
        self.change(|declarations| declarations.processors.iter_mut().for_each(Declaration::stopped));
    }

    /// What the store would refuse, found out before anything is changed in it.
    async fn foreseen(&self, ready: &[Ready]) -> Vec<String> {
        let stored = match self.engine.catalogue().streams().await {
            Ok(stored) => stored,
            Err(error) => return vec![format!("the store cannot be read: {error}")],
        };
        let streams = self.streams().into_iter().flat_map(|declared| {
            let before = stored.iter().find(|info| *info.name == *declared.name);
            let wrong = [check_name("name of a stream", &declared.name), declared.check_over(before)];
            let told = move |refusal| format!("stream {:?}: {refusal}", declared.name);
            wrong.into_iter().filter_map(Result::err).map(told)
        });
        let processors = ready.iter().flat_map(|Ready { name, stream, .. }| {
            let elsewhere = stored.iter().find(|info| {
                *info.name != **stream && info.processors.iter().any(|processor| *processor.name == **name)
            });
            let elsewhere = elsewhere.map(|info| {
                let limit = format!("unique; it is registered on stream {}", info.name);
                Refusal::new("name of a processor", &**name, limit)
            });
            let wrong = check_name("name of a processor", name).err().into_iter().chain(elsewhere);
            wrong.map(move |refusal| format!("processor {name:?}: {refusal}"))
        });
        streams.chain(processors).collect()
    }

    fn check(&self, declarations: &Declarations) -> (Vec<Ready>, Vec<String>) {
        let mut faults = declarations.faults.clone();
        faults.extend(twice(&declarations.processors));
        let mut ready = Vec::new();
        for (index, declaration) in declarations.processors.iter().enumerate() {
            let mut fault = |wrong: String| faults.push(format!("processor {:?}: {wrong}", declaration.name));
            let settings = settings_of(declaration, &declarations.streams);
            for refusal in settings.check().err().into_iter().flatten() {
                fault(refusal.to_string());
            }
            for (_, name) in missing(&declaration.needs, declarations) {
                fault(format!(
                    "its handler takes State<{name}>, and no such value was given to Laneway::state"
                ));
            }
            if declaration.needs.over_lanes && matches!(settings.batch, Batch::Lane { .. }) {
                fault("batch is over one lane, must be over lanes: its handler takes HeadBatch".to_owned());
            }
            let emit_to = emit_to(&declaration.needs, &declarations.streams, &mut fault);
            if declaration.started {
                if declaration.changed {
                    fault("it was changed after its start; that counts when the app is stopped and started again".to_owned());
                }
                continue;
            }
            let ground = Arc::new(Ground {
                engine: self.engine.clone(),
                stream: Arc::clone(&declaration.stream),
                processor: Arc::clone(&declaration.name),
                states: declarations.states.clone(),
                emit_to,
            });
            let adapter = Arc::new(Adapter { ground, routes: declaration.routes.clone() });
            ready.push(Ready {
                index,
                name: Arc::clone(&declaration.name),
                stream: Arc::clone(&declaration.stream),
                settings,
                handler: Layered::wrap(declaration.layers.clone(), adapter),
            });
        }
        (ready, faults)
    }
}

fn twice(processors: &[Declaration]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for declaration in processors {
        *counts.entry(&declaration.name).or_default() += 1;
    }
    let twice = counts.into_iter().filter(|(_, count)| *count > 1);
    twice.map(|(name, count)| format!("processor {name:?}: declared {count} times")).collect()
}

fn settings_of(declaration: &Declaration, streams: &BTreeMap<Arc<str>, Carrying>) -> ProcessorSettings {
    let mut settings = declaration.settings.clone();
    settings.uses_state = declaration.needs.lane_state;
    let several = streams.get(&declaration.stream).is_some_and(|carrying| carrying.records.len() > 1);
    if settings.types.is_empty() && several {
        settings.types = declaration.routes.iter().map(|(kind, _)| (*kind).to_owned()).collect();
    }
    settings
}

fn missing<'a>(needs: &'a Needs, declarations: &Declarations) -> Vec<&'a (TypeId, &'static str)> {
    needs.shared.iter().filter(|(id, _)| !declarations.states.contains_key(id)).collect()
}

/// Where the records go that the handler emits.
fn emit_to(
    needs: &Needs,
    streams: &BTreeMap<Arc<str>, Carrying>,
    fault: &mut impl FnMut(String),
) -> HashMap<TypeId, Arc<str>> {
    let mut targets = HashMap::new();
    for (id, name) in &needs.emits {
        let carriers = streams.iter().filter(|(_, carrying)| carrying.records.contains_key(id));
        let carriers: Vec<&Arc<str>> = carriers.map(|(stream, _)| stream).collect();
        match carriers[..] {
            [stream] => drop(targets.insert(*id, Arc::clone(stream))),
            [] => fault(format!("its handler takes Emit<{name}>, and no stream was declared for it")),
            _ => fault(format!("its handler takes Emit<{name}>, and several streams carry it: {carriers:?}")),
        }
    }
    targets
}
