//! Lanes: reads lane records with their state and the beginning of their siding. Changes nothing.

use laneway_core::limits::PAGE_MAX;
use laneway_core::store::{LaneSelect, LaneView, Lanes};
use laneway_core::{BlockKind, EventId, LaneName, LaneRecord, Refusal, Result, Seat};

use super::codec::keys::{self, ClockKind};
use super::codec::{Stored, load};
use super::read::state_of;
use super::schedule::age;
use super::state::look_at_all;
use super::{Now, SeatHead, Table, View, gate};

/// Reads lane records of a seat.
pub(crate) fn lanes<S: View>(state: &S, now: Now, lanes: &Lanes) -> Result<Vec<LaneView>> {
    let reader = Reader {
        state,
        seat: lanes.seat,
        head: &gate::seat(state, lanes.seat)?.head,
        siding: lanes.siding.min(PAGE_MAX),
        states: lanes.states,
    };
    match &lanes.select {
        LaneSelect::Names(names) => {
            Refusal::check_max("lanes", names.len(), PAGE_MAX)?;
            let views = look_at_all(names, |lane| reader.named(lane))?;
            Ok(views.into_iter().flatten().collect())
        }
        LaneSelect::Due { within, limit } => {
            let ahead = i128::try_from(within.as_micros()).unwrap_or(i128::MAX);
            reader.due(now, ahead, (*limit).min(PAGE_MAX))
        }
        LaneSelect::Blocked { kind, after, limit } => {
            reader.blocked(*kind, after.as_ref(), (*limit).min(PAGE_MAX))
        }
    }
}

struct Reader<'a, S> {
    state: &'a S,
    seat: Seat,
    head: &'a SeatHead,
    siding: usize,
    states: bool,
}

impl<S: View> Reader<'_, S> {
    fn named(&self, lane: &LaneName) -> Result<Option<LaneView>> {
        let record = record(self.state, self.seat, self.head.incarnation, lane)?;
        let has_record = record.is_some();
        let view = self.view(record.unwrap_or_else(|| LaneRecord::new(lane.clone())))?;
        Ok((has_record || view.state.is_some()).then_some(view))
    }

    fn due(&self, now: Now, ahead: i128, limit: usize) -> Result<Vec<LaneView>> {
        let mut found = Vec::new();
        for clock in ClockKind::ALL {
            let prefix = keys::lane_clock(self.seat, self.head.incarnation, clock);
            for (key, _) in self.state.scan(Table::LaneDue, &prefix, None, limit)? {
                let (due, lane) = keys::lane_due_of(&key)?;
                if -age(due, now) > ahead {
                    break;
                }
                found.push((-age(due, now), lane));
            }
        }
        found.sort();
        found.truncate(limit);
        look_at_all(found, |(_, lane)| self.indexed(&lane))
    }

    fn blocked(
        &self,
        kind: Option<BlockKind>,
        after: Option<&LaneName>,
        limit: usize,
    ) -> Result<Vec<LaneView>> {
        let (seat, life) = (self.seat, self.head.incarnation);
        let Some(kind) = kind else {
            let after = after.map(|lane| keys::lane(seat, life, lane));
            let rows = self.state.scan(Table::Lane, &keys::life(seat, life), after.as_deref(), limit)?;
            return look_at_all(rows, |(_, row)| self.view(LaneRecord::from_row(row)?));
        };
        let after = after.map(|lane| keys::lane_block(seat, life, kind, lane));
        let prefix = keys::lane_kind(seat, life, kind);
        let rows = self.state.scan(Table::LaneBlock, &prefix, after.as_deref(), limit)?;
        look_at_all(rows, |(key, _)| self.indexed(&keys::lane_block_of(&key)?))
    }

    /// A lane that an index names, so it has a record.
    fn indexed(&self, lane: &LaneName) -> Result<LaneView> {
        let record = record(self.state, self.seat, self.head.incarnation, lane)?;
        self.view(record.ok_or_else(|| laneway_core::StoreError::Corrupt {
            what: format!("lane {lane} of seat {}: an index names it, it has no record", self.seat),
        })?)
    }

    fn view(&self, record: LaneRecord) -> Result<LaneView> {
        let state = match &record.lane {
            LaneName::Key(key) if self.states => state_of(self.state, self.seat, self.head.states_life, key),
            LaneName::Key(_) | LaneName::Event(_) => Ok(None),
        };
        let siding = siding(self.state, self.seat, self.head.incarnation, &record.lane, self.siding);
        Ok(LaneView { record, state: state?, siding: siding? })
    }
}

/// The record of a lane.
pub(super) fn record<S: View>(
    state: &S,
    seat: Seat,
    life: u32,
    lane: &LaneName,
) -> Result<Option<LaneRecord>> {
    load(state, Table::Lane, &keys::lane(seat, life, lane))
}

/// The first ids of a siding.
pub(super) fn siding<S: View>(
    state: &S,
    seat: Seat,
    life: u32,
    lane: &LaneName,
    limit: usize,
) -> Result<Vec<EventId>> {
    let rows = state.scan(Table::Siding, &keys::lane(seat, life, lane), None, limit)?;
    rows.iter().map(|(key, _)| keys::last_number(key).map(EventId)).collect()
}

/// Whether an event is in a siding, and in which.
pub(super) fn sided<S: View>(state: &S, seat: Seat, life: u32, id: EventId) -> Result<Option<LaneName>> {
    load(state, Table::SidedId, &keys::life_number(seat, life, id))
}
