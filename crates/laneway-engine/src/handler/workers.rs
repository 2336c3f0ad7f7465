//! Workers: tasks that carry out runs.
//!
//! A task of its own for every run costs more than most runs do. So a worker takes one run after the other and polls it
//! once; a run that then waits for something gets a task of its own. A worker that leaves runs behind has another one
//! called before it begins, so that a run which keeps its thread keeps nobody else: while runs wait there is always a
//! worker that has not begun, and the runtime lets it begin as soon as a thread is free.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;

use crate::service::Env;

/// A run with everything that follows from it.
pub(crate) type Carrying = BoxFuture<'static, ()>;

/// How long a worker goes on before it lets other tasks of its thread run.
const GOES_ON: Duration = Duration::from_micros(200);

/// The workers of a processor on this node.
pub(crate) struct Workers {
    env: Env,
    waiting: Mutex<VecDeque<Carrying>>,
    /// A worker was called and has not begun.
    is_called: AtomicBool,
}

impl Workers {
    pub(crate) fn new(env: Env) -> Arc<Self> {
        Arc::new(Self { env, waiting: Mutex::default(), is_called: AtomicBool::new(false) })
    }

    /// Has runs carried out.
    pub(crate) fn carry_out(self: &Arc<Self>, runs: Vec<Carrying>) {
        if !runs.is_empty() {
            self.waiting.lock().extend(runs);
            self.call_one();
        }
    }

    fn call_one(self: &Arc<Self>) {
        if !self.is_called.swap(true, Ordering::AcqRel) {
            let workers = Arc::clone(self);
            // It ends by itself when nothing waits.
            drop(self.env.spawn(poll_fn(move |context| workers.work(context))));
        }
    }

    /// Polls runs until none waits, or for a while.
    fn work(self: &Arc<Self>, context: &mut Context<'_>) -> Poll<()> {
        self.is_called.store(false, Ordering::Release);
        let until = self.env.now().steady.after(GOES_ON);
        while let Some((mut run, others_wait)) = self.next() {
            if others_wait {
                self.call_one();
            }
            if run.as_mut().poll(context).is_pending() {
                drop(self.env.spawn(run));
            }
            if others_wait && self.env.now().steady >= until {
                break;
            }
        }
        Poll::Ready(())
    }

    /// The next run, and whether others wait.
    fn next(&self) -> Option<(Carrying, bool)> {
        let mut waiting = self.waiting.lock();
        let run = waiting.pop_front()?;
        Some((run, !waiting.is_empty()))
    }
}
