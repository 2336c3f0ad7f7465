//! Loading: lanes that wait in the store come back into memory, because their time has come, because somebody asked for
//! it, or because there is more of their siding than memory holds.

use std::collections::BTreeSet;

use bytes::Bytes;
use laneway_core::store::{Entry, JobResult, LaneView};
use laneway_core::{Block, EventId, LaneName, LaneRecord, Mode, Terminal};

use super::fetch::{Loaded, Siding, Wanted};
use super::seat::Seat;
use super::settle::End;
use crate::service::{Env, Now};

/// Ids of a siding that are loaded at a time.
pub(crate) const SIDING_CHUNK: usize = 256;

impl Seat {
    /// Which of these lanes may come back now: not those in memory, and not those whose record is just changing.
    pub(crate) fn may_load(&self, lane: &LaneName) -> bool {
        !self.is_changing(lane) && self.book.len_of(lane) == 0 && !self.is_draining()
    }

    /// The lane's record at the start of this ownership. One that runs had an owner before that came to a bad end, or
    /// left in the middle of its siding.
    pub(crate) fn resume_lane(&mut self, view: &LaneView, was_clean: bool, now: Now) {
        let lane = view.record.lane.clone();
        if let Some(Block::Diverting { .. }) = view.record.block {
            // The owner before had not put all of its siding to the dead letters.
            if !view.siding.is_empty() {
                self.wanted_lanes.push_back(lane);
            }
            return;
        }
        let mut record = view.record.clone();
        if !was_clean && record.started {
            record.crashes += 1;
        }
        record.started = false;
        // In latest mode what a newer event took the place of is not run again, so that nobody has to decide about it.
        let newest = view.siding.last().copied().filter(|_| self.mode == Mode::Latest);
        let superseded = record.head.is_some() && newest > record.head;
        if record.crashes >= self.settings.policy.crashes_max && !superseded {
            let cause = format!("the process came to an end {} times while it ran", record.crashes);
            let head = record.head.or(view.siding.first().copied()).unwrap_or_default();
            self.tell_parked(&lane, head, &cause, record.attempts);
            if let Some(head) = record.head
                && !view.siding.contains(&head)
            {
                self.gathering.side(&lane, head);
                self.sided_unread.insert(head);
            }
            record.block = Some(Block::Parked { cause: Bytes::from(cause), at: now.calendar });
            self.change_record(&lane, record);
            return;
        }
        if view.siding.is_empty() {
            // Its head is still to be read: the record tells what it has gone through.
            self.put_record(&lane, Some(record));
            self.book.memo_mut(&lane).state = view.state.clone();
        } else {
            if record != view.record {
                self.change_record(&lane, record);
            }
            self.wanted_lanes.push_back(lane);
        }
    }

    /// Changes the record of a lane that is not in memory.
    pub(super) fn change_record(&mut self, lane: &LaneName, record: LaneRecord) {
        self.records.insert(lane);
        self.gather_record(lane, Some(record));
    }

    /// Lanes could not be loaded: they are still wanted.
    pub(crate) fn want_again(&mut self, lanes: Vec<LaneName>) {
        self.wanted_lanes.extend(lanes);
    }

    /// Lanes are being loaded: what changes from now on is newer.
    pub(crate) fn load_sent(&mut self) {
        self.committed_while_loading = Some(BTreeSet::new());
    }

    /// Lanes were loaded. Those that changed meanwhile are not what was read: they are looked at again.
    ///
    /// Answers whether lanes that are due may have been left out.
    pub(crate) fn load(&mut self, env: &Env, loaded: Loaded, now: Now) -> bool {
        let changed = self.committed_while_loading.take().unwrap_or_default();
        let mut left_out = false;
        if loaded.wanted == Wanted::ByName {
            self.want_again(loaded.left);
        }
        for (view, siding) in loaded.lanes {
            self.note_ahead(&view);
            let lane = &view.record.lane;
            if self.may_load(lane) && !changed.contains(lane) && !self.gathering.is_enough() {
                match &view.record.block {
                    // A worker has it, and nobody else starts it before its lease ends.
                    Some(Block::Claimed(claim)) if claim.expires > now.steady => {}
                    Some(Block::Claimed(_)) => self.lapse(env, view, siding, now),
                    // It was wanted before it was held up: nobody wants that lifted.
                    Some(block) if loaded.wanted == Wanted::ByName && is_held(block) => {}
                    _ => self.load_lane(view, siding, now),
                }
            } else if loaded.wanted == Wanted::ByName {
                // One that is in memory is what was wanted.
                if self.book.len_of(lane) == 0 {
                    self.wanted_lanes.push_back(lane.clone());
                }
            } else {
                // One that is in memory was due, and the list of those that are does not know it yet.
                left_out |= self.book.len_of(lane) == 0;
            }
        }
        left_out
    }

    /// More of the siding of a lane that diverts: its events were not in memory when that began.
    fn divert_sided(&mut self, record: LaneRecord, siding: Siding, since: EventId) {
        let lane = record.lane.clone();
        let mut more = siding.more;
        for entry in siding.events.entries {
            if self.gathering.is_enough() {
                more = true;
                break;
            }
            let id = entry.id();
            self.gathering.unside(&lane, id);
            match entry {
                Entry::Event(event) => self.divert_passed(&event, since),
                Entry::Superseded { winner, job, .. } => self.end_passed(id, job, End::superseded(winner)),
            }
        }
        self.gather_record(&lane, Some(record));
        if more {
            self.wanted_lanes.push_back(lane);
        }
    }

    /// A lane comes into memory: its record as stored, and the first events of its siding.
    pub(super) fn load_lane(&mut self, view: LaneView, loaded: Siding, now: Now) {
        let LaneView { record, state, siding } = view;
        let lane = record.lane.clone();
        // Every newer event asked for the lane. All have it now: a wish left over would free it when it is next held up.
        if self.mode == Mode::Latest {
            self.wanted_lanes.retain(|wanted| *wanted != lane);
        }
        if let Some(Block::Diverting { since }) = record.block {
            return self.divert_sided(record, loaded, since);
        }
        let Siding { events, more } = loaded;
        let memo = self.book.memo_mut(&lane);
        memo.more = more;
        memo.state = state;
        let is_empty = siding.is_empty();
        let mut record = LaneRecord {
            block: Some(Block::Running { since: now.calendar, progress: Bytes::new() }),
            ..record
        };
        let first = events.entries.iter().find_map(|entry| match entry {
            Entry::Event(event) => Some(event.id),
            Entry::Superseded { .. } => None,
        });
        let before = record.clone();
        // What it went through belongs to the head that went through it.
        if record.head.is_some() && record.head != first {
            (record.head, record.attempts, record.crashes, record.started) = (None, 0, 0, false);
        }
        self.put_record(&lane, (!is_empty).then_some(record));
        let mut found: Vec<EventId> = Vec::new();
        for entry in events.entries {
            found.push(entry.id());
            match entry {
                Entry::Event(event) => {
                    let priority = self.priority_of(&lane, &event);
                    self.book.push_lifted(lane.clone(), event, true, priority, now);
                }
                Entry::Superseded { id, winner, job, .. } => {
                    self.gathering.unside(&lane, id);
                    let end = End::superseded(winner).after(Some(&before), id);
                    self.gathering.ending(end.of(id));
                    self.end_job(id, job, &end, JobResult::None);
                }
            }
        }
        // An event that a siding names and the log does not have any more must not hold up the lane for ever.
        for id in siding.into_iter().filter(|id| !found.contains(id)) {
            tracing::error!(seat = %self.id, event = %id, "an event in a siding is gone from the log");
            self.gathering.unside(&lane, id);
            self.gathering.ending(End::new(Terminal::Expired, "gone from the log").of(id));
        }
        if self.book.len_of(&lane) == 0 && !more {
            self.put_record(&lane, None);
            self.book.forget(&lane);
        }
        self.want_more(&lane);
    }
}

/// Whether a lane is held up until its time comes or somebody lifts that. Whoever does writes it into the record first.
fn is_held(block: &Block) -> bool {
    matches!(block, Block::Paused { .. } | Block::Parked { .. } | Block::Retry { .. } | Block::Hold { .. })
}
