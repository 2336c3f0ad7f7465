//! What wakes a seat: events of its shard, requests to it, and questions about it. It outlives the seat's loop, so that
//! nothing is missed between two loops and a dormant seat can be asked too.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use laneway_core::{Seat as SeatId, Topic};
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::{LOOK_MAX, Order};
use crate::dispatch::carry::Ground;
use crate::observe::{Asked, Question, UnderWay};
use crate::service::{Inbox, hint};

/// The wake-ups and questions of a seat.
pub(crate) struct News {
    events: BoxFuture<'static, u64>,
    requests: BoxFuture<'static, u64>,
    questions: Inbox<Question>,
    /// The seat can be asked as long as this is kept.
    _asked: Asked,
}

/// What came.
pub(super) enum Arrived {
    /// Events or requests, perhaps.
    Hint,
    Question(Question),
}

/// Why a loop begins.
#[derive(Debug)]
pub(crate) enum Begin {
    /// The seat was just taken, as one of few at a time.
    Taken(OwnedSemaphorePermit),
    /// It was dormant, and something came.
    Woken,
    /// It was dormant for so long that it looks by itself.
    Look,
}

impl News {
    pub(crate) fn new(ground: &Arc<Ground>, seat: SeatId) -> Self {
        let (asked, questions) = ground.nearby.owns(seat);
        Self {
            events: wait_for(ground, Topic::Shard(seat.shard), 0),
            requests: wait_for(ground, Topic::Seat(seat), 0),
            questions,
            _asked: asked,
        }
    }

    /// Waits for the next thing. Dropping the future loses nothing.
    pub(super) async fn next(&mut self, ground: &Arc<Ground>, seat: SeatId) -> Arrived {
        tokio::select! {
            biased;
            seen = &mut self.events => self.events = wait_for(ground, Topic::Shard(seat.shard), seen),
            seen = &mut self.requests => self.requests = wait_for(ground, Topic::Seat(seat), seen),
            question = self.questions.recv() => return Arrived::Question(question),
        }
        Arrived::Hint
    }

    /// The next question, if there is one.
    pub(super) fn question(&mut self) -> Option<Question> {
        self.questions.try_recv()
    }

    /// Waits until a dormant seat must be woken. Nothing runs in its lanes, and nothing waits there: questions are answered
    /// without the seat.
    pub(crate) async fn wake(
        &mut self,
        ground: &Arc<Ground>,
        seat: SeatId,
        order: &mut watch::Receiver<Order>,
    ) -> Begin {
        let _counted = ground.nearby.rests();
        let mut look = Box::pin(ground.env.sleep(LOOK_MAX));
        loop {
            tokio::select! {
                biased;
                _ = order.changed() => return Begin::Woken,
                arrived = self.next(ground, seat) => match arrived {
                    Arrived::Hint => return Begin::Woken,
                    // The caller may have gone away.
                    Arrived::Question(question) => drop(question.answer.send(UnderWay::default())),
                },
                () = &mut look => return Begin::Look,
            }
        }
    }
}

/// Boxed so that thousands of seats that wait take little memory.
fn wait_for(ground: &Arc<Ground>, topic: Topic, seen: u64) -> BoxFuture<'static, u64> {
    let ground = Arc::clone(ground);
    async move { hint(&ground.env, &*ground.wakeups, topic, seen).await }.boxed()
}
