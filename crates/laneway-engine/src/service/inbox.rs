//! A queue from many tasks to one. Unlike a channel of the runtime it takes no memory for items while it is empty: a
//! node may own thousands of idle seats.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use futures::task::AtomicWaker;
use parking_lot::Mutex;

/// Room for items that an empty queue keeps.
const KEPT: usize = 64;

struct Shared<T> {
    /// Nothing once the receiver is gone.
    items: Mutex<Option<VecDeque<T>>>,
    receiver: AtomicWaker,
}

/// Puts items into an inbox. Cheap to clone.
pub(crate) struct Sender<T>(Arc<Shared<T>>);

/// Takes items out, in the order in which they were sent.
pub(crate) struct Inbox<T>(Arc<Shared<T>>);

/// An empty inbox.
pub(crate) fn inbox<T>() -> (Sender<T>, Inbox<T>) {
    let items = Mutex::new(Some(VecDeque::new()));
    let shared = Arc::new(Shared { items, receiver: AtomicWaker::new() });
    (Sender(Arc::clone(&shared)), Inbox(shared))
}

impl<T> Sender<T> {
    /// Sends an item, or drops it if the receiver is gone.
    pub(crate) fn send(&self, item: T) {
        if let Some(items) = &mut *self.0.items.lock() {
            items.push_back(item);
        }
        self.0.receiver.wake();
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Inbox<T> {
    /// The next item, if there is one.
    pub(crate) fn try_recv(&mut self) -> Option<T> {
        let mut items = self.0.items.lock();
        let items = items.as_mut()?;
        let item = items.pop_front();
        if items.is_empty() && items.capacity() > KEPT {
            *items = VecDeque::new();
        }
        item
    }

    /// Waits for the next item. Dropping the future loses nothing.
    pub(crate) async fn recv(&mut self) -> T {
        poll_fn(|context| {
            if let Some(item) = self.try_recv() {
                return Poll::Ready(item);
            }
            self.0.receiver.register(context.waker());
            // One that came before the registration woke nobody.
            self.try_recv().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Items sent before the next [`Inbox::recv`] do not wake the receiver. For a receiver that is running and checks the
    /// queue before it waits.
    pub(crate) fn hush(&mut self) {
        drop(self.0.receiver.take());
    }
}

impl<T> Drop for Inbox<T> {
    fn drop(&mut self) {
        let left = self.0.items.lock().take();
        // Outside the lock: items may do anything when they are dropped.
        drop(left);
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Inbox<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Inbox").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake, Waker};

    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn items_come_in_the_order_in_which_they_were_sent() {
        let (sender, mut inbox) = inbox();
        (0..1_000).for_each(|number| sender.clone().send(number));
        for number in 0..999 {
            assert_eq!(inbox.try_recv(), Some(number));
        }
        assert_eq!((inbox.recv().await, inbox.try_recv()), (999, None));
    }

    #[tokio::test]
    async fn receiver_that_waits_is_woken() {
        let (sender, mut inbox) = inbox();
        let sending = async {
            tokio::task::yield_now().await;
            sender.send(7);
        };
        assert_eq!(futures::join!(inbox.recv(), sending).0, 7);
        assert_eq!(inbox.recv().now_or_never(), None);
    }

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn hushed_inbox_wakes_again_once_it_is_waited_for() {
        let (sender, mut inbox) = inbox();
        let wakes = Arc::<Wakes>::default();
        let waker = Waker::from(Arc::clone(&wakes));
        let mut context = Context::from_waker(&waker);
        assert!(pin!(inbox.recv()).poll(&mut context).is_pending());
        inbox.hush();
        sender.send(1);
        assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
        assert_eq!(inbox.try_recv(), Some(1));
        assert!(pin!(inbox.recv()).poll(&mut context).is_pending());
        sender.send(2);
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn items_are_dropped_with_the_receiver() {
        let (sender, inbox) = inbox();
        let item = Arc::new(());
        sender.send(Arc::clone(&item));
        drop(inbox);
        sender.send(Arc::clone(&item));
        assert_eq!(Arc::strong_count(&item), 1);
    }
}
