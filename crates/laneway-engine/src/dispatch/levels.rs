//! How a seat stands, in numbers for the meters. Looked at now and then, never per event.

use std::time::Duration;

use laneway_core::adoption::given_between;

use super::seat::Seat;
use crate::observe::{Levels, Tally, between};
use crate::service::Now;

impl Seat {
    /// What happened since it was last counted.
    pub(crate) fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }

    pub(crate) fn levels(&self, now: Now) -> Levels {
        let running = self.runs.values().flat_map(|active| &active.lanes).flat_map(|lane| lane.events());
        let jobs_running = running.filter(|waiting| waiting.event.job.is_some()).count();
        Levels {
            lag_events: given_between(&self.gaps, self.floor, self.head),
            lag: self.lag(now),
            lanes_active: self.book.lanes(),
            lanes_blocked: self.records.held_up(),
            jobs_waiting: self.book.jobs().saturating_sub(jobs_running),
            jobs_running,
            dead_letters: self.dead_count.known(),
        }
    }

    /// Whether the store is to be asked how many dead letters there are: others only ever take some away.
    pub(crate) fn wants_dead_count(&self) -> bool {
        self.dead_count.known() != Some(0) && !self.is_draining()
    }

    /// The store is asked for it.
    pub(crate) fn dead_count_sent(&mut self) {
        self.dead_count.asked();
    }

    /// The store's answer. Answers whether it was worth anything.
    pub(crate) fn dead_counted(&mut self, count: u64) -> bool {
        self.dead_count.answered(count)
    }

    /// Age of the oldest event that holds the floor back. Of events that are not read yet nothing is known but that they
    /// came after the last one that was.
    fn lag(&self, now: Now) -> Duration {
        let holding = self.book.events().map(|(_, waiting)| waiting);
        let holding = holding.filter(|waiting| !waiting.is_sided() && !waiting.has_ended());
        let oldest = holding.map(|waiting| waiting.event.time).min();
        let unread = (self.read_to < self.head && self.read_time.0 > 0).then_some(self.read_time);
        oldest.or(unread).map_or(Duration::ZERO, |time| between(time, now.calendar))
    }
}
