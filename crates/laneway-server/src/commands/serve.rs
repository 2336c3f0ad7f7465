//! `laneway serve`: a store over HTTP.

use std::net::SocketAddr;

use laneway::Laneway;
use tokio::net::TcpListener;

use super::run::CommandError;
use crate::declare::declare;
use crate::node::resume_pull;
use crate::serve::serve;
use crate::settings::Settings;
use crate::signals::End;
use crate::terminal::say;

pub(super) async fn run(settings: Settings, end: End) -> Result<(), CommandError> {
    let listener = listen(settings.http.listen, "--listen 127.0.0.1:0").await?;
    let app = Laneway::open(&settings.store.url).await?;
    let engine = app.engine();
    engine.start_reports().await?;
    declare(engine, &settings).await?;
    resume_pull(engine).await?;
    engine.start_upkeep();
    say(format_args!("ready http://{}", listener.local_addr()?));
    serve(listener, app, async { drop(end.await) }).await?;
    Ok(())
}

/// Listens, or says how to listen elsewhere.
pub(super) async fn listen(address: SocketAddr, otherwise: &str) -> Result<TcpListener, CommandError> {
    TcpListener::bind(address).await.map_err(|error| {
        if error.kind() == std::io::ErrorKind::AddrInUse {
            return format!("{address} is taken, maybe by another laneway; choose another port: {otherwise}")
                .into();
        }
        CommandError::from(format!("cannot listen on {address}: {error}"))
    })
}
