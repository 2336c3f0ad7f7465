//! The wish of the operating system that the process end: the first asks, the second insists.

use std::future::Future;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// The first signal. A sender that is gone means the same: there is nobody who could ask any more.
pub(crate) type End = oneshot::Receiver<()>;

/// Ctrl-C and the signal that service managers send.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// From here on the signals do not end the process by themselves.
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Runs a command that is told the first signal by `end`; answers nothing when the second one insisted.
    ///
    /// What ran is dropped then, and with it the processes it started.
    pub(crate) async fn end<A, F>(mut self, command: impl FnOnce(End) -> F) -> Option<A>
    where
        F: Future<Output = A>,
    {
        let (ask, end) = oneshot::channel();
        let insists = async {
            self.next().await;
            // A command that is over already needs no telling.
            drop(ask);
            self.next().await;
        };
        tokio::select! {
            ended = command(end) => Some(ended),
            () = insists => None,
        }
    }

    /// Resolves with every signal.
    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
