//! Workers: who carries out runs.
//!
//! A task of its own for every run costs more than most runs do. While runs take next to no time, whoever starts them
//! also carries them out: nobody has to be woken. Otherwise a worker takes one run after the other and polls it once; a
//! run that then waits for something gets a task of its own. A worker that leaves runs behind has another one
//! called before it begins, so that a run which keeps its thread keeps nobody else: while runs wait there is always a
//! worker that has not begun, and the runtime lets it begin as soon as a thread is free.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::future::BoxFuture;
use laneway_core::Steady;
use parking_lot::Mutex;

use crate::service::Env;

/// A run with everything that follows from it.
pub(crate) type Carrying = BoxFuture<'static, ()>;

/// How long a worker goes on before it lets other tasks of its thread run.
const GOES_ON: Duration = Duration::from_micros(200);
/// A run that comes to its end, or to its first wait, within this time is brisk.
const BRISK: Duration = Duration::from_micros(20);
/// So many brisk runs in a row, and the next ones are expected to be brisk too.
const BRISK_IN_A_ROW: u32 = 64;

/// The workers of a processor on this node.
pub(crate) struct Workers {
    env: Env,
    waiting: Mutex<VecDeque<Carrying>>,
    /// A worker was called and has not begun.
    is_called: AtomicBool,
    /// Brisk runs since the last one that was not.
    brisk: AtomicU32,
}

impl Workers {
    pub(crate) fn new(env: Env) -> Arc<Self> {
        Arc::new(Self {
            env,
            waiting: Mutex::default(),
            is_called: AtomicBool::new(false),
            brisk: AtomicU32::new(0),
        })
    }

    /// Has runs carried out: here and now while they are brisk, for a while at most; the others by workers.
    pub(crate) fn carry_out(self: &Arc<Self>, runs: Vec<Carrying>) {
        let mut runs = runs.into_iter();
        let mut now = self.env.steady();
        let until = now.after(GOES_ON);
        while self.brisk.load(Ordering::Relaxed) >= BRISK_IN_A_ROW
            && now < until
            && let Some(run) = runs.next()
        {
            // A run that waits is polled again by the task it gets, so nobody needs to be woken by this first poll.
            now = self.begin(run, &mut Context::from_waker(Waker::noop()), now);
        }
        if runs.len() > 0 {
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
        let mut now = self.env.steady();
        let until = now.after(GOES_ON);
        while let Some((run, others_wait)) = self.next() {
            if others_wait {
                self.call_one();
            }
            now = self.begin(run, context, now);
            if others_wait && now >= until {
                break;
            }
        }
        Poll::Ready(())
    }

    /// Begins a run, and notes how long that took. Answers the time afterwards.
    fn begin(&self, mut run: Carrying, context: &mut Context<'_>, began: Steady) -> Steady {
        if run.as_mut().poll(context).is_pending() {
            drop(self.env.spawn(run));
        }
        let now = self.env.steady();
        if now.since(began) > BRISK {
            self.brisk.store(0, Ordering::Relaxed);
        } else if self.brisk.load(Ordering::Relaxed) < BRISK_IN_A_ROW {
            // No further: all threads would write to it, for every run.
            self.brisk.fetch_add(1, Ordering::Relaxed);
        }
        now
    }

    /// The next run, and whether others wait.
    fn next(&self) -> Option<(Carrying, bool)> {
        let mut waiting = self.waiting.lock();
        let run = waiting.pop_front()?;
        Some((run, !waiting.is_empty()))
    }
}
