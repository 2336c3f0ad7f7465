//! `laneway serve`: a store over HTTP.

use std::sync::Arc;

use laneway::{Laneway, StoreOptions};

use super::run::CommandError;
use crate::declare::{check_choice, declare};
use crate::file_limit;
use crate::http::{Gate, Hosts, Mode};
use crate::listen::{self, Patience, Tls};
use crate::node::{follow, resume};
use crate::preflight;
use crate::reload::Reload;
use crate::serve::serve;
use crate::settings::Settings;
use crate::signals::End;
use crate::terminal::say;

pub(super) async fn run(settings: Settings, end: End) -> Result<(), CommandError> {
    preflight::check(&settings)?;
    let http = &settings.http;
    let book = http.book()?;
    let webhooks = settings.webhook.rules()?.map(Arc::new);
    let tls = http.tls_files().map(Tls::new).transpose()?;
    let patience = Patience { count_max: file_limit::connections(http.patience.count_max), ..http.patience };
    let otherwise = "--listen 127.0.0.1:0";
    let door = listen::open(&http.listen, http.consent(), tls.clone(), patience, otherwise).await?;
    let mode = if http.read_only { Mode::ReadOnly } else { Mode::ReadWrite };
    let gate = Gate::new(Hosts::new(door.exposure, http.hosts.clone()), book.clone(), mode, http.limits);
    let node = (!settings.store.is_single()).then(|| settings.member.settings(&settings.node));
    let options = StoreOptions { node, ..settings.store.options() };
    let app = Laneway::open_with(&settings.store.url, &options).await?;
    if mode == Mode::ReadWrite {
        let engine = app.engine();
        engine.start_reports().await?;
        check_choice(engine, &settings).await?;
        declare(engine, &settings).await?;
        resume(engine, &settings.node, webhooks.as_ref()).await?;
        engine.start_upkeep();
    }
    let reload = Reload::new(book, tls)?;
    let (engine, duties, rules) = (app.engine().clone(), settings.node.clone(), webhooks.clone());
    let following = async move {
        if mode == Mode::ReadWrite {
            follow(&engine, &duties, rules.as_ref()).await;
        }
        std::future::pending::<()>().await;
    };
    let backup_dir = settings.store.backup_dir.clone();
    let reminded = listen::remind(door.exposure, http.consent());
    say(format_args!("ready {}://{}", door.scheme(), door.address()?));
    tokio::select! {
        () = serve(door, gate, app, settings.node, webhooks, backup_dir, async { drop(end.await) }) => {}
        () = reload.whenever_asked() => {}
        () = following => {}
        never = reminded => match never {},
    }
    Ok(())
}
