//! Makes true what the file says: its streams, processors and schedules, at every start.
//!
//! What is there already is changed where that is possible; what the file does not name stays as it is.

use std::sync::Arc;

use laneway::engine::handler::Handler;
use laneway::engine::log::CatalogueError;
use laneway::engine::{Engine, Registration};

use crate::duties::Runner;
use crate::handlers::{Exec, Pipe, Secret, Web, WebTarget};
use crate::logs;
use crate::nearest::nearest;
use crate::node::PULL;
use crate::settings::{Processor, ProcessorHandler, Schedule, SecretPlace, Settings, Stream};

/// Why something of the file cannot be.
#[derive(Debug, thiserror::Error)]
#[error("{kind} {name:?} of the file")]
pub(crate) struct DeclareError {
    kind: &'static str,
    name: String,
    source: Failed,
}

type Failed = Box<dyn std::error::Error + Send + Sync>;
type Told = Result<&'static str, Failed>;

/// Makes all of it, in the order in which it needs each other, and says on stderr what was done.
pub(crate) async fn declare(engine: &Engine, settings: &Settings) -> Result<(), DeclareError> {
    for wanted in &settings.streams {
        told("stream", &wanted.name, stream(engine, wanted).await)?;
    }
    for wanted in &settings.processors {
        let done = if settings.node.runs(&wanted.name, runner(&wanted.handler)) {
            processor(engine, wanted).await
        } else {
            Ok("left to other processes")
        };
        told("processor", &wanted.name, done)?;
    }
    for wanted in &settings.schedules {
        told("schedule", &wanted.0.name, schedule(engine, wanted).await)?;
    }
    Ok(())
}

/// Refuses a choice of processors that nobody knows: one that is misspelt would be left alone without a word.
pub(crate) async fn check_choice(engine: &Engine, settings: &Settings) -> Result<(), Failed> {
    let there = engine.processors().await?;
    let stored = there.iter().map(|view| view.name.as_str());
    let known: Vec<&str> =
        stored.chain(settings.processors.iter().map(|wanted| wanted.name.as_str())).collect();
    let Some(unknown) = settings.node.processors.iter().find(|name| !known.contains(&name.as_str())) else {
        return Ok(());
    };
    let near = nearest(unknown, &known).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    Err(format!(
        "node.processors {unknown:?}: there is no such processor, neither in the file nor in the store{near}"
    )
    .into())
}

fn runner(handler: &ProcessorHandler) -> Runner {
    match handler {
        ProcessorHandler::Exec(_) | ProcessorHandler::Pipe(_) | ProcessorHandler::Web { .. } => {
            Runner::Handler
        }
        ProcessorHandler::Pull => Runner::Workers,
    }
}

fn told(kind: &'static str, name: &str, done: Told) -> Result<(), DeclareError> {
    let done = done.map_err(|source| DeclareError { kind, name: name.to_owned(), source })?;
    logs::note(&format!("{kind} {name}: {done}"));
    Ok(())
}

async fn stream(engine: &Engine, wanted: &Stream) -> Told {
    let there = match engine.catalogue().stream(&wanted.name).await {
        Ok(info) => Some(info),
        Err(CatalogueError::NoStream(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let there = there.map(|info| info.settings.clone());
    let settings = wanted.settings(there.as_ref());
    let is_new = there.as_ref() != Some(&settings);
    engine.define_stream(&wanted.name, settings).await?;
    Ok(match there {
        None => "made",
        Some(_) if is_new => "changed",
        Some(_) => "as it was",
    })
}

async fn processor(engine: &Engine, wanted: &Processor) -> Told {
    let mut registration =
        Registration { settings: wanted.settings.clone(), ..Registration::new(&wanted.name, &wanted.stream) };
    let there = engine.processors().await?.into_iter().find(|view| view.name == wanted.name);
    if let Some(there) = &there {
        if there.stream != wanted.stream {
            let (before, now) = (&there.stream, &wanted.stream);
            return Err(format!(
                "stream is {now:?}, and it processes {before:?}, which cannot be changed: remove it first, or choose \
                 another name"
            )
            .into());
        }
        let began = there.stored.as_ref().map_err(ToString::to_string)?.settings.start;
        if wanted.says_start && began != wanted.settings.start {
            return Err(format!(
                "start is {:?}, and it began at {began:?}: POST /v1/processors/{}/reset begins anew",
                wanted.settings.start, wanted.name
            )
            .into());
        }
        // Where it began is history, and stays what it was unless it is said again.
        registration.settings.start = began;
    }
    let is_new = there.is_none();
    start(engine, registration, &wanted.handler).await?;
    Ok(if is_new { "made" } else { "goes on" })
}

/// Runs a processor with its handler.
async fn start(
    engine: &Engine,
    mut registration: Registration,
    handler: &ProcessorHandler,
) -> Result<(), Failed> {
    let timeout = registration.settings.timeout;
    let (word, handler): (&str, Arc<dyn Handler>) = match handler {
        ProcessorHandler::Exec(command) => ("exec", Arc::new(Exec::new(command.clone(), timeout)?)),
        ProcessorHandler::Pipe(command) => ("pipe", Arc::new(Pipe::new(command.clone(), timeout)?)),
        ProcessorHandler::Web { url, secret } => {
            let secret = secret.as_ref().map(secret_at).transpose()?;
            ("http", Arc::new(Web::new(WebTarget { url: url.clone(), secret })?))
        }
        ProcessorHandler::Pull => {
            registration.handler = PULL.into();
            engine.process_at_desk_as(registration).await?;
            return Ok(());
        }
    };
    registration.handler = word.into();
    Ok(engine.process_as(registration, handler).await?)
}

/// Reads a secret from where it is kept.
pub(crate) fn secret_at(place: &SecretPlace) -> Result<Secret, String> {
    let (kept, name) = match place {
        SecretPlace::File(path) => {
            (std::fs::read_to_string(path).map_err(|error| error.to_string()), path.display().to_string())
        }
        SecretPlace::Variable(name) => (std::env::var(name).map_err(|error| error.to_string()), name.clone()),
    };
    let secret = kept.map_err(|error| format!("its secret in {name}: {error}"))?;
    if secret.trim().is_empty() {
        return Err(format!("its secret in {name} is empty"));
    }
    Ok(Secret::new(secret.trim()))
}

async fn schedule(engine: &Engine, wanted: &Schedule) -> Told {
    engine.schedules().declare(wanted.0.clone()).await?;
    Ok("on")
}
