//! One run of a handler: called and polled behind a panic fence, with a deadline and a way to stop it.
//!
//! A run that is ready at its first poll never becomes more than a value on the worker's stack. Decides how the run
//! went; what that means for the lane is the table's business.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::entry::{Held, ListenerId, Stoppable};
use super::fence::{discard, fenced};
use super::hub::EntryTurn;
use super::outcome::{Cause, End, Failure, Outcome};
use super::run::{Done, Run};
use super::seam::{Clock, Timer};
use super::settings::Settings;
use super::visit::Settled;
use crate::table::{Tick, Verdict};

/// A place for one handler future. Reused while handlers are ready at once, so that they cost no allocation.
pub(super) type Berth<F> = Pin<Box<Option<F>>>;

/// What every run of one executor shares.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub(super) clock: Clock,
    pub(super) attempts_max: u32,
    pub(super) timeout: Option<Duration>,
    pub(super) stop_grace: Duration,
}

impl Rules {
    pub(super) fn new(settings: &Settings, clock: Clock) -> Self {
        Self {
            clock,
            attempts_max: settings.attempts_max,
            timeout: settings.timeout,
            stop_grace: settings.stop_grace,
        }
    }
}

/// What a poll of a handler came to.
pub(super) enum Polled<R, E> {
    Pending,
    Answered(Outcome<R, E>),
    Panicked(String),
}

/// Calls the handler and polls its future once, both behind the panic fence.
pub(super) fn begin<F, R, E>(
    berth: &mut Berth<F>,
    call: impl FnOnce() -> F,
    context: &mut Context<'_>,
) -> Polled<R, E>
where
    F: Future<Output = Outcome<R, E>>,
{
    watched(berth, |berth| {
        berth.as_mut().set(Some(call()));
        poll_berth(berth, context)
    })
}

fn poll_berth<F: Future>(berth: &mut Berth<F>, context: &mut Context<'_>) -> Poll<F::Output> {
    let future = berth.as_mut().as_pin_mut().expect("a run under way has its future");
    future.poll(context)
}

/// Polls behind the fence, and empties the berth behind it too: a destructor may panic as well.
fn watched<F, R, E>(
    berth: &mut Berth<F>,
    poll: impl FnOnce(&mut Berth<F>) -> Poll<Outcome<R, E>>,
) -> Polled<R, E> {
    // Outside the fence: an answer must not be dropped while a destructor's panic unwinds.
    let mut answer = None;
    let quiet = fenced(|| {
        if let Poll::Ready(outcome) = poll(berth) {
            answer = Some(outcome);
            berth.as_mut().set(None);
        }
    });
    match (quiet, answer) {
        (Ok(()), None) => Polled::Pending,
        (Ok(()), Some(outcome)) => Polled::Answered(outcome),
        (Err(message), answer) => {
            discard(answer);
            // What the destructor says on top of the first panic adds nothing.
            drop(vacate(berth));
            Polled::Panicked(message)
        }
    }
}

fn vacate<F>(berth: &mut Berth<F>) -> Result<(), String> {
    fenced(|| berth.as_mut().set(None))
}

/// The run a turn stands for. Clones the key, so it belongs behind the fence.
pub(super) fn run_of<K, V, R, E>(turn: &mut EntryTurn<K, V, R, E>, rules: &Rules, now: Tick) -> Run<K, V>
where
    K: Clone,
    V: Send + Sync + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    let last_done = turn.last_done.take().map(|last| Done {
        id: last.id,
        version: last.version,
        held: last.payload.map(|entry| entry as Arc<dyn Held<V>>),
    });
    Run {
        key: turn.key.clone(),
        id: turn.id,
        attempt: turn.attempt,
        version: turn.version,
        held: Arc::clone(&turn.payload) as Arc<dyn Held<V>>,
        last_done,
        deadline: rules.timeout.map(|timeout| now.after(timeout)),
        clock: rules.clock,
    }
}

/// Turns a handler's answer into a verdict for the table and an end for the ticket.
pub(super) fn settle<K, V, R, E>(
    turn: EntryTurn<K, V, R, E>,
    polled: Polled<R, E>,
    rules: &Rules,
) -> Option<Settled<K, V, R, E>> {
    let attempts = turn.attempt;
    let failed = |cause| (Verdict::Failed, Some(End::Failed(Failure { cause, attempts })));
    let (verdict, end) = match polled {
        Polled::Pending => return None,
        Polled::Answered(Outcome::Done(value)) => (Verdict::Done, Some(End::Done(value))),
        Polled::Answered(Outcome::Retry { after, error }) if attempts < rules.attempts_max => {
            discard(error);
            (Verdict::RetryAt(rules.clock.now().after(after)), None)
        }
        Polled::Answered(Outcome::Retry { error, .. } | Outcome::Fail(error)) => {
            failed(Cause::Handler(error))
        }
        Polled::Panicked(message) => failed(Cause::Panicked(message)),
    };
    Some(Settled { turn, verdict, end, ending: None })
}

/// A run whose handler was not ready at once.
pub(super) struct Attempt<K, V, R, E, F> {
    turn: Option<EntryTurn<K, V, R, E>>,
    berth: Berth<F>,
    rules: Rules,
    limit: Limit,
    timer: Option<Timer>,
    listening: Option<ListenerId>,
}

/// What happens when the timer of an attempt fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    /// The run has used up its time.
    Deadline(Option<Tick>),
    /// The run was asked to stop and has not.
    Grace,
}

// Only the handler's future needs its place, and that is boxed.
impl<K, V, R, E, F> Unpin for Attempt<K, V, R, E, F> {}

impl<K, V, R, E, F> Attempt<K, V, R, E, F> {
    pub(super) fn new(turn: EntryTurn<K, V, R, E>, berth: Berth<F>, rules: Rules, started: Tick) -> Self {
        let deadline = rules.timeout.map(|timeout| started.after(timeout));
        let timer = deadline.map(|deadline| rules.clock.timer(deadline));
        Self { turn: Some(turn), berth, rules, limit: Limit::Deadline(deadline), timer, listening: None }
    }

    /// The turn of an attempt that is given up because its worker is.
    pub(super) fn abandon(mut self) -> Option<EntryTurn<K, V, R, E>> {
        drop(vacate(&mut self.berth));
        self.turn.take()
    }

    /// The turn of a run that is over, with nothing of this attempt left in its entry: another attempt may follow.
    fn give_back(&mut self) -> EntryTurn<K, V, R, E>
    where
        V: Send + Sync,
        R: Send,
        E: Send,
    {
        let turn = self.turn.take().expect("an attempt is polled until it is over");
        if let Some(number) = self.listening.take() {
            turn.payload.forget_listener(number);
        }
        turn
    }

    fn cut_short(&mut self) -> (Verdict, Option<End<R, E>>) {
        let attempts = self.turn.as_ref().map_or(0, |turn| turn.attempt);
        match (self.limit, self.rules.timeout) {
            (Limit::Deadline(_), Some(timeout)) => {
                let cause = Cause::TimedOut(timeout);
                (Verdict::Failed, Some(End::Failed(Failure { cause, attempts })))
            }
            _ => (Verdict::Stopped, None),
        }
    }
}

impl<K, V, R, E, F> Future for Attempt<K, V, R, E, F>
where
    V: Send + Sync,
    R: Send,
    E: Send,
    F: Future<Output = Outcome<R, E>>,
{
    type Output = Settled<K, V, R, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let polled = watched(&mut this.berth, |berth| poll_berth(berth, context));
        if !matches!(polled, Polled::Pending) {
            let turn = this.give_back();
            return settle(turn, polled, &this.rules).map_or(Poll::Pending, Poll::Ready);
        }
        let entry = &this.turn.as_ref().expect("an attempt is polled until it is over").payload;
        if this.limit != Limit::Grace && entry.poll_stopped(context, &mut this.listening).is_ready() {
            let grace_end = this.rules.clock.now().after(this.rules.stop_grace);
            let sooner = matches!(this.limit, Limit::Deadline(Some(deadline)) if deadline < grace_end);
            if !sooner {
                this.limit = Limit::Grace;
                this.timer = Some(this.rules.clock.timer(grace_end));
            }
        }
        let fired = this.timer.as_mut().is_some_and(|timer| Pin::new(timer).poll(context).is_ready());
        if !fired {
            return Poll::Pending;
        }
        let (verdict, end) = this.cut_short();
        // What the handler started elsewhere learns from its token that the run is over.
        let turn = this.give_back();
        turn.payload.stop();
        drop(vacate(&mut this.berth));
        Poll::Ready(Settled { turn, verdict, end, ending: None })
    }
}
