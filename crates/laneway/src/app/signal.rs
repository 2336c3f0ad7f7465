//! The wish of the operating system that the process end.

/// Resolves when the process is asked to end: Ctrl-C, or the signal that service managers send.
#[cfg(unix)]
pub(super) async fn asked_to_end() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

/// Resolves when the process is asked to end.
#[cfg(not(unix))]
pub(super) async fn asked_to_end() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}
