//! Intake: a page of the log becomes events in memory, or is passed, or joins sidings.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use laneway_core::limits::WINDOW_IDS;
use laneway_core::store::{Entry, JobResult, LaneView, Page, Versioned};
use laneway_core::{Block, Event, EventId, JobMark, LaneName, LaneRecord, Mode, Terminal};

use super::requests::running;
use super::seat::Seat;
use super::settle::End;
use crate::lane::{Waiting, name_of};
use crate::service::Now;

/// Events of one lane in memory at most while there is room; the rest of a hot lane waits in its siding.
const LANE_MAX: usize = 1_024;
/// And when memory fills up: enough to keep a lane busy between two loads.
const LANE_MAX_CROWDED: usize = 32;

/// Lane records that were looked up for a page.
pub(crate) type Views = HashMap<LaneName, LaneView>;

impl Seat {
    /// A read is on its way: states that become durable from now on are newer than what it brings.
    pub(crate) fn read_sent(&mut self) {
        self.fresh_states.clear();
    }

    /// A look-up of lane records is on its way: records that change from now on are newer, and so are those whose
    /// change is not durable yet.
    pub(crate) fn look_up_sent(&mut self) {
        let mut changed = std::mem::take(&mut self.changed_lanes);
        changed.retain(|lane| self.is_changing(lane));
        self.changed_lanes = changed;
    }

    /// Records that changed since they were looked up are looked up again, whatever becomes of the mark that they did.
    pub(crate) fn forget_changed(&self, views: &mut Views) {
        views.retain(|lane, _| !self.changed_lanes.contains(lane));
    }

    /// The lanes of a page whose records must be looked up before it can be taken in.
    pub(crate) fn unknown_lanes(&self, page: &Page, views: &Views) -> Vec<LaneName> {
        let mut unknown: Vec<LaneName> = Vec::new();
        if self.records.are_none() {
            return unknown;
        }
        for entry in &page.entries {
            let Entry::Event(event) = entry else { continue };
            let lane = name_of(event);
            let known = self.book.holds(&lane)
                || !self.records.may_have(&lane)
                || (views.contains_key(&lane) && !self.changed_lanes.contains(&lane));
            if !known {
                unknown.push(lane);
            }
        }
        unknown.sort_unstable();
        unknown.dedup();
        unknown
    }

    /// Takes in a page whose lanes are all known.
    pub(crate) fn take_page(&mut self, page: Page, views: &Views, now: Now) {
        debug_assert!(self.unknown_lanes(&page, views).is_empty(), "every lane of a page is known");
        self.head = self.head.max(page.head);
        self.requests.filed(page.request_no);
        views.values().for_each(|view| self.note_ahead(view));
        let states: HashMap<_, _> = page.states.into_iter().collect();
        for entry in page.entries {
            let id = entry.id();
            if id <= self.read_to {
                continue;
            }
            self.read_to = id;
            if self.passed_before.contains(id) || self.sided_unread.remove(&id) {
                continue;
            }
            match entry {
                Entry::Superseded { id, winner, job, .. } => {
                    let end = End::superseded(winner);
                    self.end_unread(id, job, end);
                }
                Entry::Event(event) => {
                    self.read_time = event.time;
                    let state = event.key.as_ref().and_then(|key| {
                        let fresh = self.fresh_states.get(key);
                        fresh.cloned().unwrap_or_else(|| states.get(key).cloned())
                    });
                    self.take_event(event, state, views, now);
                }
            }
        }
        self.urgent_left();
    }

    /// Whether this processor is to run an event at all.
    pub(super) fn is_for_us(&self, event: &Event) -> bool {
        let is_our_job = event.job.is_some_and(|job| job.responder == self.id.processor);
        is_our_job || self.settings.wants(event.kind.as_str())
    }

    fn take_event(&mut self, event: Event, state: Option<Versioned>, views: &Views, now: Now) {
        let lane = name_of(&event);
        if !self.is_for_us(&event) || self.is_ahead(&lane, event.id) {
            self.gathering.pass(event.id);
            return;
        }
        let has_record = self.book.memo(&lane).is_some_and(|memo| memo.record.is_some());
        match views.get(&lane) {
            Some(view)
                if !has_record
                    && self.book.len_of(&lane) == 0
                    && self.records.may_have(&lane)
                    && (view.record.block.is_some() || !view.siding.is_empty()) =>
            {
                self.join_blocked(view, &event);
            }
            _ => self.join_known(lane, event, state, now),
        }
    }

    /// An event of a lane that is in memory, or plain. A lane that comes into memory with it gets its state; one that
    /// does not must leave nothing behind, or its next event would be taken for one of a plain lane.
    fn join_known(&mut self, lane: LaneName, event: Event, state: Option<Versioned>, now: Now) {
        if !self.book.holds(&lane)
            && let Some(state) = state
        {
            self.book.memo_mut(&lane).state = Some(state);
        }
        if self.mode == Mode::Latest {
            self.supersede(&lane, event.id);
            if self.book.len_of(&lane) > 0 {
                self.book.memo_mut(&lane).newest = Some(event.id);
            }
        }
        let memo = self.book.memo(&lane);
        let block = memo.and_then(|memo| memo.record.as_ref()).and_then(|record| record.block.clone());
        if let Some(Block::Diverting { since }) = block {
            self.divert(&event, since);
            return;
        }
        let held = matches!(block, Some(Block::Paused { .. }));
        let (sided, more) = memo.map_or((0, false), |memo| (memo.sided, memo.more));
        let is_full = self.book.len_of(&lane) >= self.lane_max();
        if sided == 0 && !more && !is_full && !held {
            self.book.push(lane.clone(), event, false, now);
            self.batch_grew(&lane);
            return;
        }
        self.side_one(&lane, event.id, now);
        if is_full || more || held {
            self.book.memo_mut(&lane).more = true;
            self.want_more(&lane);
        } else {
            self.book.push(lane, event, true, now);
        }
    }

    /// An event of a lane that waits in the store.
    fn join_blocked(&mut self, view: &LaneView, event: &Event) {
        let record = &view.record;
        let lane = record.lane.clone();
        match &record.block {
            Some(Block::Diverting { since }) => self.divert(event, *since),
            Some(block) if self.mode == Mode::Latest && gives_way(block) => {
                // What was in back-off, held or parked counts as pending: the newer one frees the lane.
                // The events themselves come back as superseded by the log, with the jobs that hang on them.
                self.gathering.side(&lane, event.id);
                self.gather_record(&lane, Some(LaneRecord { block: Some(running()), ..record.clone() }));
                self.wanted_lanes.push_back(lane);
            }
            Some(_) | None => self.join_siding(record, event.id),
        }
    }

    fn join_siding(&mut self, record: &LaneRecord, id: EventId) {
        self.gathering.side(&record.lane, id);
        // The record stays what it was: whoever looked it up knows it still.
        self.changed_since_wish.insert(record.lane.clone());
        self.gathering.record(&record.lane, Some(record.clone()));
    }

    /// Moves everything of a lane that is in memory into its siding.
    ///
    /// All of it or nothing: the next owner runs what it finds in the siding before it has read the log, so whatever stayed
    /// behind would run after what came later.
    pub(super) fn side_in_memory(&mut self, lane: &LaneName) {
        let running = self.book.running_of(lane);
        let behind = self.book.behind(lane, usize::MAX).into_iter().map(|(_, waiting)| waiting);
        for waiting in running.into_iter().chain(behind) {
            // One that has ended is passed by the same commit.
            if !waiting.has_ended() && waiting.side() {
                self.gathering.side(lane, waiting.event.id);
                self.book.memo_mut(lane).sided += 1;
            }
        }
    }

    /// Moves an event into its lane's siding, behind those of the lane that are in memory.
    pub(super) fn side_one(&mut self, lane: &LaneName, id: EventId, now: Now) {
        if self.book.memo(lane).is_none_or(|memo| memo.sided == 0 && !memo.more) {
            self.side_in_memory(lane);
        }
        self.gathering.side(lane, id);
        // Of a hot lane thousands of events join its siding at once: the record goes with the same commit already.
        if !self.gathering.has_record(lane) {
            self.record_siding(lane, now);
        }
    }

    /// A lane in memory has a siding: its record says so.
    fn record_siding(&mut self, lane: &LaneName, now: Now) {
        let mut record = self.record_of(lane);
        record.block.get_or_insert(Block::Running { since: now.calendar, progress: bytes::Bytes::new() });
        self.put_record(lane, Some(record));
    }

    /// Latest mode: a newer event of a lane in memory ends what waits in it.
    fn supersede(&mut self, lane: &LaneName, winner: EventId) {
        for waiting in self.book.evict(lane).into_iter().filter(|waiting| !waiting.has_ended()) {
            self.end(lane, &waiting, End::superseded(winner));
        }
        self.end_unstarted(|turn| turn.key == *lane, End::superseded(winner));
        if self.settings.supersede_running {
            self.stop_running(lane, super::seat::Stop::Supersede(winner));
        }
    }

    /// Latest mode: the event that took the place of this one of a lane in memory, if any did.
    pub(super) fn newer_than(&self, lane: &LaneName, id: EventId) -> Option<EventId> {
        self.book.memo(lane).and_then(|memo| memo.newest).filter(|newest| *newest > id)
    }

    fn lane_max(&self) -> usize {
        if self.book.len() < self.loaded_max() / 2 { LANE_MAX } else { LANE_MAX_CROWDED }
    }

    /// Whatever holds the floor back by more than half the window goes to its lane's siding (contract 1.9).
    pub(crate) fn let_floor_rise(&mut self, now: Now) {
        if self.read_to.0 - self.floor.0 <= WINDOW_IDS / 2 || self.in_flight.is_some() {
            return;
        }
        let old = EventId(self.read_to.0 - WINDOW_IDS / 4);
        let holds =
            |waiting: &Waiting| waiting.event.id <= old && !waiting.is_sided() && !waiting.has_ended();
        let holding = self.book.events().filter(|(_, waiting)| holds(waiting));
        let lanes: BTreeSet<LaneName> = holding.map(|(lane, _)| lane.clone()).collect();
        for lane in lanes {
            self.side_in_memory(&lane);
            self.record_siding(&lane, now);
        }
    }

    /// An event that never was in memory ends.
    pub(super) fn end_unread(&mut self, id: EventId, job: Option<JobMark>, end: End) {
        self.gathering.pass(id);
        self.end_passed(id, job, end);
    }

    /// The same for one that does not hold the floor back: it was in a siding.
    pub(super) fn end_passed(&mut self, id: EventId, job: Option<JobMark>, end: End) {
        debug_assert!(end.terminal != Terminal::Done, "only a run is done");
        self.tally.ended(end.terminal);
        self.gathering.ending(end.of(id));
        self.end_job(id, job, &end, JobResult::None);
    }
}

/// Latest mode: whether a newer event lifts this. What a worker has, and what somebody paused, it does not.
pub(super) fn gives_way(block: &Block) -> bool {
    !matches!(block, Block::Diverting { .. } | Block::Paused { .. } | Block::Claimed(_))
}
