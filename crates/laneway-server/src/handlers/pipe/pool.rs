//! Which process runs what.
//!
//! A process that died is replaced when the next event needs one, at once: the event that it died of waits as its policy
//! says, and no other lane waits for that.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use laneway::core::period;
use laneway::engine::handler::{Handler, LaneAnswer, LaneRun, Retry, Run, Running};
use laneway_client::wire::{Claim, Settlement};
use parking_lot::Mutex;

use super::kept::Kept;
use super::lines;
use crate::handlers::exec::{NoProgram, find_program};
use crate::handlers::process::GRACE;
use crate::seam;

/// What remains to be done after a process was killed.
const WIND_UP: Duration = Duration::from_secs(1);

/// A kept command as a handler.
pub(crate) struct Pipe(Arc<Pool>);

struct Pool {
    command: Vec<String>,
    timeout: Option<Duration>,
    /// Processes without an event, the last used at the end.
    free: Mutex<Vec<Kept>>,
    number: AtomicU64,
}

impl Pipe {
    /// A command, with how long it may take for one event.
    pub(crate) fn new(command: Vec<String>, timeout: Option<Duration>) -> Result<Self, NoProgram> {
        find_program(&command)?;
        let (free, number) = (Mutex::default(), AtomicU64::new(1));
        Ok(Self(Arc::new(Pool { command, timeout, free, number })))
    }

    /// Runs what a remote worker claimed; an error says why there is no answer.
    pub(in crate::handlers) async fn settle(
        &self,
        claim: &Claim,
        cancelled: impl Future<Output = ()>,
    ) -> Result<Settlement, String> {
        let read = |line: &[u8]| lines::settlement(line, &claim.claim);
        self.0.exchange(&lines::as_line(claim), cancelled, read).await
    }
}

impl Handler for Pipe {
    fn call(&self, run: Run) -> Running {
        let pool = Arc::clone(&self.0);
        Box::pin(async move {
            let lanes = run.lanes.iter().map(|lane| pool.run(&run, lane));
            futures::future::join_all(lanes).await
        })
    }

    /// It ends its process itself when the time is over, and waits for that.
    fn grace(&self) -> Duration {
        GRACE + WIND_UP
    }
}

impl Pool {
    async fn run(&self, run: &Run, lane: &LaneRun) -> LaneAnswer {
        let claim = self.number.fetch_add(1, Ordering::Relaxed).to_string();
        let question = lines::question(&claim, run, lane);
        let read = |line: &[u8]| lines::answer(line, &claim, lane);
        let answered = self.exchange(&question, run.cancel.cancelled(), read).await;
        answered.unwrap_or_else(|words| LaneAnswer::failed(words, Retry::ByPolicy))
    }

    /// Asks a process and reads its answer; an error says why there is none. A process that gave no answer, or something
    /// else, is ended before this returns.
    async fn exchange<A>(
        &self,
        question: &[u8],
        cancelled: impl Future<Output = ()>,
        read: impl FnOnce(&[u8]) -> Result<A, String>,
    ) -> Result<A, String> {
        tokio::pin!(cancelled);
        let process = self.process();
        let mut process = process.map_err(|error| format!("cannot start {:?}: {error}", self.command[0]))?;
        let timed_out = async {
            match self.timeout {
                Some(timeout) => seam::pass(timeout).await,
                None => std::future::pending().await,
            }
        };
        let answered = tokio::select! {
            biased;
            answered = process.ask(question) => match answered {
                Ok(line) => read(&line).map_err(|wrong| format!("its answer is no settlement: {wrong}")),
                Err(silence) => Err(silence.words()),
            },
            () = &mut cancelled => Err("stopped on request".to_owned()),
            () = timed_out => Err(format!("timed out after {}", period::text(self.timeout.unwrap_or_default()))),
        };
        if answered.is_ok() {
            self.free.lock().push(process);
        } else {
            process.end(GRACE).await;
        }
        answered
    }

    /// A free process, or a new one.
    fn process(&self) -> std::io::Result<Kept> {
        while let Some(mut process) = self.pop() {
            if process.lives() {
                return Ok(process);
            }
        }
        Kept::start(&self.command)
    }

    fn pop(&self) -> Option<Kept> {
        self.free.lock().pop()
    }
}
