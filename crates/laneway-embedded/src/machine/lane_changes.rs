//! Changes of lanes inside a commit: what an owner may change, and the rows and indexes that follow.
//!
//! A lane that is run ahead of the window (contract 3.6) says so in its record: ids up to `ahead` may join and leave its
//! siding although they are not passed yet. Once they have left it, nothing but the record tells that they ended, so it
//! keeps `ahead` until the floor is there.

use std::collections::BTreeSet;

use laneway_core::limits::WINDOW_IDS;
use laneway_core::store::LaneChange;
use laneway_core::{Block, EventId, LaneName, LaneRecord, Refusal, Result, Seat};

use super::codec::{Stored, keys};
use super::lanes::{record, sided, siding};
use super::{State, Table, View};

/// A checked change, with the record it replaces.
pub(super) struct Checked {
    change: LaneChange,
    before: Option<LaneRecord>,
}

impl Checked {
    /// Whether this event joins the siding.
    pub(super) fn sides(&self, id: EventId) -> bool {
        self.change.side.contains(&id)
    }
}

/// Whose lanes change, and how far the shard and the seat are before the commit.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) seat: Seat,
    pub(super) life: u32,
    /// Last id of the shard.
    pub(super) head: EventId,
    pub(super) floor: EventId,
}

/// Checks all changes of a commit. `passed` tells whether an id is passed once the commit is accepted.
pub(super) fn check<S: View>(
    state: &S,
    place: Place,
    changes: Vec<LaneChange>,
    passed: impl Fn(EventId) -> bool,
) -> Result<Vec<Checked>> {
    let Place { seat, life, .. } = place;
    let mut named = BTreeSet::new();
    let mut moving = BTreeSet::new();
    for change in &changes {
        if !named.insert(&change.lane) {
            return Err(refusal("lanes", &change.lane, "named once in a commit"));
        }
        change.check_record()?;
        let ahead = check_ahead(place, change)?;
        for id in &change.side {
            if !passed(*id) && ahead.is_none_or(|ahead| *id > ahead) {
                let limit = format!("with ids that are passed or not beyond its `ahead`; {id} is neither");
                return Err(refusal("side", &change.lane, limit));
            }
            let now_in = sided(state, seat, life, *id)?;
            if !moving.insert(*id) || now_in.is_some_and(|lane| lane != change.lane) {
                return Err(refusal("side", &change.lane, format!("the one lane that sides event {id}")));
            }
        }
        for id in &change.unside {
            if sided(state, seat, life, *id)?.as_ref() != Some(&change.lane) {
                return Err(refusal("unside", &change.lane, format!("with ids in its siding; {id} is not")));
            }
        }
        check_plain(state, seat, life, change)?;
    }
    let checked = changes.into_iter().map(|change| {
        let before = record(state, seat, life, &change.lane)?;
        check_stays_ahead(place, &change, before.as_ref())?;
        Ok(Checked { change, before })
    });
    checked.collect()
}

/// How far a lane is ahead with this change: never further than there are events.
fn check_ahead(place: Place, change: &LaneChange) -> Result<Option<EventId>> {
    let ahead = change.record.as_ref().and_then(|record| record.ahead);
    match ahead {
        Some(id) if id > place.head => {
            Err(refusal("ahead", &change.lane, format!("at most the last id {}; {id} is beyond", place.head)))
        }
        ahead => Ok(ahead),
    }
}

/// What ended ahead of the window is known by its lane's record alone until the floor is beyond it.
fn check_stays_ahead(place: Place, change: &LaneChange, before: Option<&LaneRecord>) -> Result<()> {
    let ahead = |record: Option<&LaneRecord>| record.and_then(|record| record.ahead);
    let kept = ahead(before).filter(|id| *id > place.floor);
    if ahead(change.record.as_ref()) < kept {
        let limit = format!("kept at {kept:?} or more until the floor, now {}, is there", place.floor);
        return Err(refusal("ahead", &change.lane, limit));
    }
    Ok(())
}

/// The record of a lane as another store had it; its siding comes apart from it.
pub(super) fn imported<S: View>(state: &S, seat: Seat, life: u32, record: LaneRecord) -> Result<Checked> {
    let before = self::record(state, seat, life, &record.lane)?;
    let change =
        LaneChange { lane: record.lane.clone(), record: Some(record), side: Vec::new(), unside: Vec::new() };
    Ok(Checked { change, before })
}

fn refusal(field: &'static str, lane: &LaneName, limit: impl Into<String>) -> laneway_core::StoreError {
    Refusal::new(field, format!("lane {lane}"), limit).into()
}

/// A lane without record has no siding: nobody would ever look for it.
fn check_plain<S: View>(state: &S, seat: Seat, life: u32, change: &LaneChange) -> Result<()> {
    if change.record.is_some() {
        return Ok(());
    }
    let stays = if change.side.is_empty() {
        let limit = change.unside.len().min(WINDOW_IDS as usize) + 1;
        let leaving: BTreeSet<&EventId> = change.unside.iter().collect();
        siding(state, seat, life, &change.lane, limit)?.iter().any(|id| !leaving.contains(id))
    } else {
        true
    };
    if stays { Err(refusal("record", &change.lane, "kept while its siding is not empty")) } else { Ok(()) }
}

/// Writes a checked change.
pub(super) fn apply<S: State>(state: &mut S, seat: Seat, life: u32, checked: &Checked) {
    let Checked { change, before } = checked;
    let lane = &change.lane;
    for id in &change.unside {
        state.delete(Table::Siding, &keys::siding(seat, life, lane, *id));
        state.delete(Table::SidedId, &keys::life_number(seat, life, *id));
    }
    for id in &change.side {
        state.put(Table::Siding, &keys::siding(seat, life, lane, *id), &[]);
        state.put(Table::SidedId, &keys::life_number(seat, life, *id), &lane.to_row());
    }
    let block_before = before.as_ref().and_then(|record| record.block.as_ref());
    let block_after = change.record.as_ref().and_then(|record| record.block.as_ref());
    let kinds = (block_before.map(Block::kind), block_after.map(Block::kind));
    if kinds.0 != kinds.1 {
        kinds.0.inspect(|kind| state.delete(Table::LaneBlock, &keys::lane_block(seat, life, *kind, lane)));
        kinds.1.inspect(|kind| state.put(Table::LaneBlock, &keys::lane_block(seat, life, *kind, lane), &[]));
    }
    let dues = (block_before.and_then(Block::due), block_after.and_then(Block::due));
    if dues.0 != dues.1 {
        dues.0.inspect(|due| state.delete(Table::LaneDue, &keys::lane_due(seat, life, *due, lane)));
        dues.1.inspect(|due| state.put(Table::LaneDue, &keys::lane_due(seat, life, *due, lane), &[]));
    }
    let row = keys::lane(seat, life, lane);
    match &change.record {
        Some(record) => state.put(Table::Lane, &row, &record.to_row()),
        None if before.is_some() => state.delete(Table::Lane, &row),
        None => {}
    }
}
