//! Dormant seats: what stays in memory of a seat that had no work for a while.
//!
//! A node may own tens of thousands of seats of which few have work at any moment. A dormant seat is as small as what it
//! was seized with. It keeps its fence, and the next event or request builds it again from memory: the store is not
//! asked.
//!
//! Invariant: a seat becomes dormant only if all that it knows follows from what is kept.

use std::sync::Arc;

use bytes::Bytes;
use laneway_core::adoption::Gap;
use laneway_core::store::{Progress, Resume, SeatStatus};
use laneway_core::{EventId, Fence, Result, Seat as SeatId, Steady, StreamInfo, Window};

use super::seat::{Names, Seat};
use super::settings::ProcessorSettings;
use crate::lane::Records;

/// What is kept of a seat.
#[derive(Debug)]
pub(crate) struct Dormant {
    id: SeatId,
    settings: Arc<ProcessorSettings>,
    names: Names,
    fence: Fence,
    status: SeatStatus,
    note: Bytes,
    /// Every id up to this is passed, and nothing behind it was read.
    floor: EventId,
    head: EventId,
    gaps: Vec<Gap>,
    /// Number of the last request; all had their effect.
    requests: u64,
    /// Number of the last emit; all were forwarded, and the store knows it of those up to `forwarded`.
    emitted: u64,
    forwarded: u64,
}

impl Seat {
    /// What to keep of this seat while it is dormant; nothing if the seat knows more than that.
    pub(crate) fn to_dormant(&self, now: Steady) -> Option<Dormant> {
        let no_events = self.is_at_rest()
            && self.read_to == self.floor
            && self.records.are_none()
            && self.sided_unread.is_empty()
            && self.urgent.is_idle();
        let no_requests = self.requests.are_applied() && self.dead_through.is_empty();
        let no_timers = self.next_due.is_none() && self.next_due_durable.is_none();
        let no_memory = self.settled.is_empty()
            && self.rates.are_rested(now)
            && self.dead_count.known() == Some(0)
            && self.dead_lanes.lock().is_absent();
        (no_events && no_requests && no_timers && no_memory).then(|| Dormant {
            id: self.id,
            settings: Arc::clone(&self.settings),
            names: self.names.clone(),
            fence: self.fence,
            status: self.status,
            note: self.note.encode(),
            floor: self.floor,
            head: self.head,
            gaps: self.gaps.clone(),
            requests: self.requests.applied_to(),
            emitted: self.emitted,
            forwarded: self.forwarded_durable,
        })
    }
}

impl Dormant {
    /// The seat as it was.
    pub(crate) fn wake(self, stream: &StreamInfo) -> Result<Seat> {
        let progress = Progress {
            fence: self.fence,
            window: Window::at(self.floor),
            // Nothing ran when it became dormant, and nobody else has started anything since.
            clean: true,
            requests_applied: self.requests,
            emitted: self.emitted,
            forwarded: self.emitted,
            status: self.status,
            note: self.note,
            // A seat does not look at these.
            node: Bytes::new(),
            incarnation: 0,
        };
        let resume = Resume { progress, head: self.head, gaps: self.gaps, request_no: self.requests };
        let mut seat = Seat::new(self.id, self.settings, stream, self.names, resume, Records::none())?;
        seat.forwarded_durable = self.forwarded;
        seat.dead_count.answered(0);
        Ok(seat)
    }
}
