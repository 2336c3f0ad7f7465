//! One call on its way through the commit thread.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use laneway_core::{Result, StoreError};
use tokio::sync::oneshot;

use crate::file::log::Space;
use crate::file::state::FileState;
use crate::machine::Now;

/// What a call needs before it may be applied: once applied it cannot be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Whether it may use the space kept for settling work when the disk is full.
    pub(crate) space: Space,
    /// At most so many bytes in the frame.
    pub(crate) bytes: usize,
    /// It must see only what is durable: it begins a group, alone.
    pub(crate) first: bool,
    /// Everything up to it must be on the disk when it is answered, also with `sync = os`.
    pub(crate) synced: bool,
}

/// A call whose types the commit thread need not know.
pub(crate) trait Op: Send {
    fn cost(&self) -> Cost;
    /// Changes the state, or decides not to.
    fn apply(&mut self, state: &mut FileState, now: Now);
    /// Answers without having been applied.
    fn refuse(self: Box<Self>, error: StoreError);
    /// Answers after its group became durable.
    fn finish(self: Box<Self>);
    /// Answers after its group may or may not have become durable.
    fn unknown(self: Box<Self>, cause: &Arc<str>);
}

/// A call with its work and the place for its answer.
pub(crate) struct Call<T, F> {
    cost: Cost,
    work: Option<F>,
    answer: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T, F> Call<T, F>
where
    T: Send,
    F: FnOnce(&mut FileState, Now) -> Result<T> + Send,
{
    /// The call, and where its answer will come.
    pub(crate) fn new(cost: Cost, work: F) -> (Self, oneshot::Receiver<Result<T>>) {
        let (reply, receiver) = oneshot::channel();
        (Self { cost, work: Some(work), answer: None, reply }, receiver)
    }
}

impl<T, F> Op for Call<T, F>
where
    T: Send,
    F: FnOnce(&mut FileState, Now) -> Result<T> + Send,
{
    fn cost(&self) -> Cost {
        self.cost
    }

    fn apply(&mut self, state: &mut FileState, now: Now) {
        self.answer = self.work.take().map(|work| work(state, now));
    }

    fn refuse(self: Box<Self>, error: StoreError) {
        answer(self.reply, Err(error));
    }

    fn finish(self: Box<Self>) {
        if let Some(result) = self.answer {
            answer(self.reply, result);
        }
    }

    fn unknown(self: Box<Self>, cause: &Arc<str>) {
        // A call that was refused by the rules changed nothing, whatever the disk did.
        let result = match self.answer {
            Some(Err(error)) => Err(error),
            _ => Err(StoreError::Unknown { action: "commit", source: cause.to_string().into() }),
        };
        answer(self.reply, result);
    }
}

/// A call that changes nothing and is answered, to a thread, when everything before it is durable and synced.
pub(crate) struct Barrier(pub(crate) SyncSender<Result<()>>);

impl Barrier {
    fn answer(self, result: Result<()>) {
        let _nobody_waits = self.0.send(result);
    }
}

impl Op for Barrier {
    fn cost(&self) -> Cost {
        Cost { space: Space::Reserve, bytes: 0, first: false, synced: true }
    }

    fn apply(&mut self, _state: &mut FileState, _now: Now) {}

    fn refuse(self: Box<Self>, error: StoreError) {
        self.answer(Err(error));
    }

    fn finish(self: Box<Self>) {
        self.answer(Ok(()));
    }

    fn unknown(self: Box<Self>, cause: &Arc<str>) {
        self.answer(Err(StoreError::Down { reason: cause.to_string() }));
    }
}

/// Nobody may be waiting any more; then the answer is not needed.
fn answer<T>(reply: oneshot::Sender<Result<T>>, result: Result<T>) {
    let _nobody_waits = reply.send(result);
}
