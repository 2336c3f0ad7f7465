//! What only the node that runs a processor knows: what runs in a lane and who has it, what a head that could start is
//! short of, whether places are taken, and whether workers ask for lanes.
//!
//! Asked for at the moment somebody looks; nothing is counted for it while events run. Other nodes do not know it: they
//! go by what the store has, where a run shows after a second and a claim after a few.

use std::sync::Arc;

use hashbrown::HashMap;
use laneway_core::{Claim, EventId, LaneName, ProcessorId, Seat, Timestamp};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};

use super::names::{show_dormant, show_held};
use super::why::{Limit, Short};
use crate::handler::Desk;
use crate::service::{Inbox, Sender, inbox};

/// Questions that seats of this node may have at the same time; further callers wait.
const QUESTIONS_MAX: usize = 64;

/// The processors that run on this node. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Nearby {
    inner: Arc<Mutex<Inner>>,
    /// Questions that may still be asked.
    questions: Arc<Semaphore>,
}

impl Default for Nearby {
    fn default() -> Self {
        Self { inner: Arc::default(), questions: Arc::new(Semaphore::new(QUESTIONS_MAX)) }
    }
}

#[derive(Default)]
struct Inner {
    processors: HashMap<ProcessorId, Places>,
    seats: HashMap<Seat, Sender<Question>>,
    dormant: usize,
}

/// What somebody wants to know of a seat.
pub(crate) struct Question {
    /// How these lanes stand.
    pub(crate) lanes: Vec<LaneName>,
    /// Where to say it.
    pub(crate) answer: oneshot::Sender<UnderWay>,
}

/// How lanes stand with their owner.
#[derive(Debug, Default)]
pub(crate) struct UnderWay {
    /// What runs; a lane that is not named has nothing that runs.
    pub(crate) runs: HashMap<LaneName, LaneRuns>,
    /// What heads in memory are short of, apart from places and workers.
    pub(crate) short_of: HashMap<LaneName, Short>,
}

/// What runs in a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LaneRuns {
    /// Its first event that runs.
    pub(crate) first: EventId,
    /// The last one: of a batch several run at once.
    pub(crate) last: EventId,
    /// Which attempt at the first one.
    pub(crate) attempt: u32,
    /// Since when.
    pub(crate) since: Timestamp,
    /// The worker that has them.
    pub(crate) claim: Option<Claim>,
}

/// Where the runs of a processor find their places.
#[derive(Clone)]
pub(crate) enum Places {
    /// In this process.
    Here {
        /// Runs at the same time.
        concurrency: usize,
        /// Those that are free.
        free: Arc<Semaphore>,
    },
    /// With remote workers.
    Desk {
        /// Lanes that workers may have at the same time.
        concurrency: usize,
        /// Where they ask.
        desk: Arc<Desk>,
    },
}

/// A seat can be asked as long as this is kept.
pub(crate) struct Asked {
    nearby: Nearby,
    seat: Seat,
}

impl Drop for Asked {
    fn drop(&mut self) {
        let mut parts = self.nearby.inner.lock();
        parts.seats.remove(&self.seat);
        show_held(parts.seats.len());
    }
}

/// A seat counts as dormant as long as this is kept.
pub(crate) struct CountedDormant(Nearby);

impl Drop for CountedDormant {
    fn drop(&mut self) {
        self.0.count_dormant(|count| count - 1);
    }
}

impl Nearby {
    pub(crate) fn runs(&self, processor: ProcessorId, places: Places) {
        self.inner.lock().processors.insert(processor, places);
    }

    pub(crate) fn stopped(&self, processor: ProcessorId) {
        self.inner.lock().processors.remove(&processor);
    }

    /// The owner of a seat is here and answers questions from now on.
    pub(crate) fn owns(&self, seat: Seat) -> (Asked, Inbox<Question>) {
        let (ask, questions) = inbox();
        let mut parts = self.inner.lock();
        parts.seats.insert(seat, ask);
        show_held(parts.seats.len());
        drop(parts);
        (Asked { nearby: self.clone(), seat }, questions)
    }

    /// A seat has become dormant.
    pub(crate) fn rests(&self) -> CountedDormant {
        self.count_dormant(|count| count + 1);
        CountedDormant(self.clone())
    }

    fn count_dormant(&self, change: fn(usize) -> usize) {
        let mut parts = self.inner.lock();
        parts.dormant = change(parts.dormant);
        show_dormant(parts.dormant);
    }

    /// Seats whose owner is here.
    pub(crate) fn seats(&self) -> usize {
        self.inner.lock().seats.len()
    }

    /// Whether the owner of a seat is here.
    pub(super) fn is_owner(&self, seat: Seat) -> bool {
        self.inner.lock().seats.contains_key(&seat)
    }

    /// The seats whose owner is here, in order.
    pub(super) fn owned(&self) -> Vec<Seat> {
        let mut seats: Vec<Seat> = self.inner.lock().seats.keys().copied().collect();
        seats.sort_unstable();
        seats
    }

    /// How these lanes stand; nothing when the owner of their seat is not here.
    pub(super) async fn under_way(&self, seat: Seat, lanes: Vec<LaneName>) -> Option<UnderWay> {
        let ask = self.inner.lock().seats.get(&seat).cloned()?;
        let (answer, told) = oneshot::channel();
        let _asking = self.questions.acquire().await.ok()?;
        ask.send(Question { lanes, answer });
        told.await.ok()
    }

    /// What a head has to wait for, if it is known.
    pub(super) fn short_of(&self, processor: ProcessorId) -> Option<Short> {
        let places = |concurrency: &usize| Short::Limit(Limit::Concurrency(*concurrency));
        match self.inner.lock().processors.get(&processor)? {
            Places::Here { concurrency, free } => {
                (free.available_permits() == 0).then(|| places(concurrency))
            }
            Places::Desk { concurrency, desk } if desk.is_full() => Some(places(concurrency)),
            Places::Desk { desk, .. } => (desk.places().available_permits() == 0).then_some(Short::Workers),
        }
    }
}
