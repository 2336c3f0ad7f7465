//! A push on its way in: at once when there is room, else in line.
//!
//! The place in line is taken when `push` is called, not when the future is first polled.

use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::entry::Entry;
use super::gate::{Admission, Patience, Waited};
use super::hub::Hub;
use super::push::{Push, PushError, TryPushError};
use super::ticket::Ticket;

/// The future of a [`push`](super::Lanes::push): resolves to its ticket once it is let in.
///
/// Dropping it while it waits for room withdraws the push. A push that was let in runs, whether or not this future is
/// awaited.
#[must_use = "a push that waits for room is withdrawn when its future is dropped"]
pub struct Pushing<K: Hash + Eq + Clone, V, R, E> {
    stage: Stage<K, V, R, E>,
}

enum Stage<K, V, R, E> {
    Admitted(Ticket<R, E>),
    Waiting { hub: Arc<Hub<K, V, R, E>>, number: u64, entry: Arc<Entry<V, R, E>> },
    Refused(Box<Push<K, V>>),
    Over,
}

impl<K, V, R, E> Pushing<K, V, R, E>
where
    K: Hash + Eq + Clone,
    V: Send + Sync + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    pub(super) fn start(hub: &Arc<Hub<K, V, R, E>>, push: Push<K, V>) -> Self {
        let admission = hub.push(push, Patience::Wait);
        Self::from_admission(hub, admission)
    }

    fn from_admission(hub: &Arc<Hub<K, V, R, E>>, admission: Admission<K, V, R, E>) -> Self {
        let stage = match admission {
            Admission::Admitted(entry) => Stage::Admitted(Ticket::new(entry)),
            Admission::Waits { number, entry } => Stage::Waiting { hub: Arc::clone(hub), number, entry },
            Admission::Full(push) | Admission::Closed(push) => Stage::Refused(Box::new(push)),
        };
        Self { stage }
    }
}

/// A push that does not wait.
pub(super) fn try_push<K, V, R, E>(
    hub: &Hub<K, V, R, E>,
    push: Push<K, V>,
) -> Result<Ticket<R, E>, TryPushError<K, V>>
where
    K: Hash + Eq + Clone,
    V: Send + Sync + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    match hub.push(push, Patience::GiveUp) {
        Admission::Admitted(entry) | Admission::Waits { entry, .. } => Ok(Ticket::new(entry)),
        Admission::Full(push) => Err(TryPushError::Full(push)),
        Admission::Closed(push) => Err(TryPushError::Closed(push)),
    }
}

impl<K, V, R, E> Future for Pushing<K, V, R, E>
where
    K: Hash + Eq + Clone,
    V: Send + Sync + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    type Output = Result<Ticket<R, E>, PushError<K, V>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match std::mem::replace(&mut this.stage, Stage::Over) {
            Stage::Admitted(ticket) => Poll::Ready(Ok(ticket)),
            Stage::Refused(push) => Poll::Ready(Err(PushError(*push))),
            Stage::Waiting { hub, number, entry } => {
                let waited = hub.gate().poll_waiter(number, context);
                match waited {
                    Waited::Admitted => Poll::Ready(Ok(Ticket::new(entry))),
                    Waited::Closed(parcel) => {
                        drop(entry);
                        Poll::Ready(Err(PushError(hub.unpack(parcel))))
                    }
                    Waited::Still => {
                        this.stage = Stage::Waiting { hub, number, entry };
                        Poll::Pending
                    }
                }
            }
            Stage::Over => panic!("a push is awaited once"),
        }
    }
}

// Nothing in them is pinned in place.
impl<K: Hash + Eq + Clone, V, R, E> Unpin for Pushing<K, V, R, E> {}
impl<K: Hash + Eq + Clone, V, R, E> Unpin for PushingMany<K, V, R, E> {}

impl<K: Hash + Eq + Clone, V, R, E> Drop for Pushing<K, V, R, E> {
    fn drop(&mut self) {
        if let Stage::Waiting { hub, number, .. } = &self.stage {
            let withdrawn = hub.gate().withdraw(*number);
            drop(withdrawn);
        }
    }
}

impl<K: Hash + Eq + Clone, V, R, E> fmt::Debug for Pushing<K, V, R, E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.stage {
            Stage::Admitted(_) => "Pushing(admitted)",
            Stage::Waiting { .. } => "Pushing(waiting for room)",
            Stage::Refused(_) => "Pushing(refused)",
            Stage::Over => "Pushing(over)",
        })
    }
}

/// The future of a [`push_many`](super::Lanes::push_many): resolves to the tickets, in the order of the pushes.
#[must_use = "pushes that wait for room are withdrawn when their future is dropped"]
pub struct PushingMany<K: Hash + Eq + Clone, V, R, E> {
    pushes: std::vec::IntoIter<Pushing<K, V, R, E>>,
    current: Option<Pushing<K, V, R, E>>,
    answers: Vec<Result<Ticket<R, E>, PushError<K, V>>>,
}

impl<K, V, R, E> PushingMany<K, V, R, E>
where
    K: Hash + Eq + Clone,
    V: Send + Sync + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    pub(super) fn start(hub: &Arc<Hub<K, V, R, E>>, pushes: impl Iterator<Item = Push<K, V>>) -> Self {
        let admissions = hub.push_many(pushes).into_iter();
        let pushes: Vec<_> = admissions.map(|admission| Pushing::from_admission(hub, admission)).collect();
        Self { answers: Vec::with_capacity(pushes.len()), pushes: pushes.into_iter(), current: None }
    }
}

impl<K, V, R, E> Future for PushingMany<K, V, R, E>
where
    K: Hash + Eq + Clone,
    V: Send + Sync + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    type Output = Vec<Result<Ticket<R, E>, PushError<K, V>>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            let Some(current) = &mut this.current else {
                match this.pushes.next() {
                    Some(next) => this.current = Some(next),
                    None => return Poll::Ready(std::mem::take(&mut this.answers)),
                }
                continue;
            };
            match Pin::new(current).poll(context) {
                Poll::Ready(answer) => this.answers.push(answer),
                Poll::Pending => return Poll::Pending,
            }
            this.current = None;
        }
    }
}

impl<K: Hash + Eq + Clone, V, R, E> fmt::Debug for PushingMany<K, V, R, E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PushingMany({} let in, {} to go)", self.answers.len(), self.pushes.len())
    }
}
