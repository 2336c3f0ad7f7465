//! A handler that tests direct: it says when it starts, and does what its push tells it to.

use std::sync::Arc;
use std::time::Duration;

use laneway_lanes::{Lanes, Outcome, Push, Run, Settings, Ticket};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, Semaphore};

/// What a run of the stage's handler does.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Done at once.
    Done,
    /// Done when released.
    Hold(Arc<Semaphore>),
    /// Fails for good.
    Fail,
    /// Answers retry after this wait until the given attempt, which is done.
    RetryUntil(u32, Duration),
    /// Panics when the handler is called, before there is a future.
    PanicInCall,
    /// Panics when polled.
    PanicInPoll,
    /// Never ends.
    Hang,
    /// Ends when asked to stop.
    HangUntilCancelled(Arc<Notify>),
}

#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) act: Act,
}

pub(crate) type StageLanes = Lanes<&'static str, Part, String, String>;
pub(crate) type StageTicket = Ticket<String, String>;

pub(crate) struct Stage {
    pub(crate) lanes: StageLanes,
    started: UnboundedReceiver<String>,
}

impl Stage {
    pub(crate) fn new(settings: Settings) -> Self {
        let (say, started) = unbounded_channel();
        let lanes = Lanes::start(settings, move |run| play(run, say.clone())).expect("settings in range");
        Self { lanes, started }
    }

    /// The name of the next run that starts, with its attempt if it is not the first.
    pub(crate) async fn next_start(&mut self) -> String {
        self.started.recv().await.expect("the handler lives")
    }

    /// The starts so far that nobody has asked for.
    pub(crate) fn starts(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.started.try_recv().ok()).collect()
    }

    pub(crate) async fn push(&self, push: impl Into<Push<&'static str, Part>>) -> StageTicket {
        self.lanes.push(push).await.expect("the lanes are open")
    }
}

/// A push whose lane is the letters of its name: `a1` goes to lane `a`.
pub(crate) fn part(name: &'static str, act: Act) -> Push<&'static str, Part> {
    let lane = name.trim_end_matches(|character: char| character.is_ascii_digit());
    Push::new(lane, Part { name, act })
}

pub(crate) fn done(name: &'static str) -> Push<&'static str, Part> {
    part(name, Act::Done)
}

/// A push that is done when the semaphore gets a permit.
pub(crate) fn held(name: &'static str) -> (Push<&'static str, Part>, Arc<Semaphore>) {
    let release = Arc::new(Semaphore::new(0));
    (part(name, Act::Hold(Arc::clone(&release))), release)
}

fn play(
    run: Run<&'static str, Part>,
    say: UnboundedSender<String>,
) -> impl Future<Output = Outcome<String, String>> + Send {
    let Part { name, act } = run.value();
    let (name, act) = (*name, act.clone());
    let label = if run.attempt() == 1 { name.to_owned() } else { format!("{name}#{}", run.attempt()) };
    // A test that has seen enough may have dropped its end.
    drop(say.send(label));
    if matches!(act, Act::PanicInCall) {
        panic!("{name} panics in the call");
    }
    async move {
        let before = run.last_done().map_or(String::new(), |last| {
            format!(" after {}", last.value().map_or("nothing kept", |value| value.name))
        });
        let finished = Outcome::Done(format!("{name}{before}"));
        match act {
            Act::Done => finished,
            Act::Hold(release) => {
                release.acquire().await.expect("never closed").forget();
                finished
            }
            Act::Fail => Outcome::Fail(format!("{name} fails")),
            Act::RetryUntil(attempt, _) if run.attempt() >= attempt => finished,
            Act::RetryUntil(_, after) => Outcome::Retry { after, error: format!("{name} not yet") },
            Act::PanicInCall | Act::PanicInPoll => panic!("{name} panics in the poll"),
            Act::Hang => std::future::pending().await,
            Act::HangUntilCancelled(seen) => {
                run.cancel_token().cancelled().await;
                seen.notify_one();
                Outcome::Fail(format!("{name} gave up"))
            }
        }
    }
}
