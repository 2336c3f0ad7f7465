//! `laneway dev`: everything in one word, to try it.

use std::sync::Arc;

use laneway::Laneway;
use laneway::core::StreamSettings;
use laneway::engine::handler::Handler as EngineHandler;
use laneway::engine::{Engine, Registration};

use super::run::CommandError;
use crate::access::Book;
use crate::args::Color;
use crate::dev::{Banner, Demo, RunLines, empty_folder, policy};
use crate::duties::Duties;
use crate::handlers::Exec;
use crate::http::{Gate, Hosts, Mode};
use crate::listen;
use crate::node::resume;
use crate::serve::serve;
use crate::settings::{Dev, Handler, Http};
use crate::signals::End;
use crate::terminal::{Terminal, say};

/// Where the store is, from the folder that the command was typed in.
const FOLDER: &str = "./.laneway";
const STREAM: &str = "orders";
/// One name, whatever runs the events, so that one's own handler goes on where the demo was.
const PROCESSOR: &str = "demo";

pub(super) async fn run(settings: Dev, end: End) -> Result<(), CommandError> {
    let (handler, word) = handler_of(&settings.handler)?;
    let http = Http::on(settings.listen.to_string());
    let otherwise = "--port 7071, or --port 0 for any";
    let door = listen::open(&http.listen, http.consent(), None, http.patience, otherwise).await?;
    let gate = Gate::new(Hosts::new(door.exposure, Vec::new()), Book::empty(), Mode::ReadWrite, http.limits);
    if settings.fresh {
        empty_folder(FOLDER.as_ref())?;
    }
    let url = format!("file:{FOLDER}");
    let app = Laneway::open(&url).await?;
    let engine = app.engine().clone();
    let terminal = Terminal::of_stdout(Color::Auto);
    let stream = engine.define_stream(STREAM, stream_settings(&engine).await?).await?;
    let banner = Banner {
        address: door.address()?,
        store: url,
        durability: engine.stores().store.about().capabilities.durability,
        partitions: stream.settings.partitions,
        handler: &settings.handler,
    };
    say(banner.text(terminal));
    engine.start_reports().await?;
    let handler = Arc::new(RunLines::around(handler, engine.clone(), terminal));
    let mut registration = Registration { handler: word.into(), ..Registration::new(PROCESSOR, STREAM) };
    registration.settings.policy = policy();
    engine.process_as(registration, handler).await?;
    let duties = Duties::all();
    resume(&engine, &duties, None).await?;
    engine.start_upkeep();
    say("ready");
    serve(door, gate, app, duties, None, None, async {
        drop(end.await);
        say("stopping: what runs may finish; Ctrl-C again does not wait for it");
    })
    .await;
    say("stopped; nothing is lost");
    Ok(())
}

/// As the stream is, if it is there.
async fn stream_settings(engine: &Engine) -> Result<StreamSettings, CommandError> {
    let streams = engine.catalogue().streams().await?;
    let there = streams.into_iter().find(|stream| stream.name == STREAM);
    Ok(there.map(|stream| stream.settings.clone()).unwrap_or_default())
}

/// What runs the events, and the one word that the store keeps of it.
fn handler_of(handler: &Handler) -> Result<(Arc<dyn EngineHandler>, &'static str), CommandError> {
    Ok(match handler {
        Handler::Demo => (Arc::new(Demo), "demo"),
        Handler::Exec { command, timeout } => (Arc::new(Exec::new(command.clone(), *timeout)?), "exec"),
    })
}
