//! `laneway serve`: a store over HTTP.

use std::net::SocketAddr;

use laneway::Laneway;
use tokio::net::TcpListener;

use super::run::CommandError;
use crate::node::resume_pull;
use crate::serve::serve;
use crate::settings::Serve;
use crate::signals::Signals;
use crate::terminal::say;

/// Ends the process at once: what was not settled runs again at the next start.
const INTERRUPTED: i32 = 130;

pub(super) async fn run(settings: Serve) -> Result<(), CommandError> {
    let mut signals = Signals::new()?;
    let listener = listen(settings.listen, "--listen 127.0.0.1:0").await?;
    let app = Laneway::open(&settings.store).await?;
    let engine = app.engine();
    engine.start_reports().await?;
    resume_pull(engine).await?;
    engine.start_upkeep();
    say(format_args!("ready http://{}", listener.local_addr()?));
    serve(listener, app, async move {
        signals.next().await;
        stop_at_next(signals);
    })
    .await?;
    Ok(())
}

/// The next signal does not wait for anything.
pub(super) fn stop_at_next(mut signals: Signals) {
    crate::seam::spawn(async move {
        signals.next().await;
        std::process::exit(INTERRUPTED);
    });
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
