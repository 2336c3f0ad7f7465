//! The caller's side of a push: a future of its end.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::entry::Awaited;
use super::outcome::End;

/// A future that resolves to the end of one push. Dropping it changes nothing for the push.
///
/// ```
/// # use laneway_lanes::{End, Lanes, Outcome, Settings};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let lanes = Lanes::start(Settings::default(), |run: laneway_lanes::Run<u32, String>| async move {
///     Outcome::<usize, String>::Done(run.value().len())
/// })?;
/// let ticket = lanes.push((7, "seven".to_owned())).await?;
/// assert_eq!(ticket.await, End::Done(5));
/// # Ok(()) }
/// ```
#[must_use = "a ticket tells the end only when awaited; drop it on purpose if the end does not matter"]
pub struct Ticket<R, E> {
    entry: Arc<dyn Awaited<R, E>>,
}

impl<R, E> Ticket<R, E> {
    pub(super) fn new(entry: Arc<dyn Awaited<R, E>>) -> Self {
        Self { entry }
    }

    /// The push's number: the one `Superseded { by }` of another push names.
    #[must_use]
    pub fn id(&self) -> crate::table::ItemId {
        crate::table::ItemId::from_number(self.entry.id())
    }
}

impl<R, E> Future for Ticket<R, E> {
    type Output = End<R, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<End<R, E>> {
        self.entry.poll_end(context)
    }
}

impl<R, E> fmt::Debug for Ticket<R, E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Ticket").field("id", &self.id()).finish_non_exhaustive()
    }
}
