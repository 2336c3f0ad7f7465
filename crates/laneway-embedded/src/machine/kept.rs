//! Events and job ends that outlive the part of the log they were written to.
//!
//! The log is shared by all streams and goes oldest first. What an old part of it still holds when nearly all of it is
//! over is kept aside as rows, so that one event that waits for long holds back no more than itself. All events of a shard
//! up to some id are kept aside or trimmed; those behind it are in the log.

use laneway_core::{Event, EventId, Result, Shard};

use super::codec::keys::{self, Single};
use super::codec::{Decoder, Encoder, Malformed, Stored, event, load};
use super::{State, StoredEnd, Table, View, expiry};

/// What is kept aside of a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptRange {
    /// Events up to this one are not looked for in the log.
    pub(crate) events: EventId,
    /// First and last event of which the end of its job is kept aside; zero if there is none.
    pub(crate) ends: (EventId, EventId),
}

impl KeptRange {
    /// Whether the end of this job may be kept aside.
    pub(crate) fn may_have_end(&self, id: EventId) -> bool {
        self.ends.0.0 > 0 && (self.ends.0..=self.ends.1).contains(&id)
    }

    fn add_end(&mut self, id: EventId) {
        let first = if self.ends.0.0 == 0 { id } else { self.ends.0.min(id) };
        self.ends = (first, self.ends.1.max(id));
    }
}

impl Stored for KeptRange {
    const NAME: &'static str = "what is kept aside of a shard";

    fn encode(&self, out: &mut Vec<u8>) {
        out.varint(self.events.0);
        out.varint(self.ends.0.0);
        out.varint(self.ends.1.0);
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        let events = EventId(from.varint()?);
        Ok(Self { events, ends: (EventId(from.varint()?), EventId(from.varint()?)) })
    }
}

/// An event in a row of its own.
pub(crate) struct KeptEvent(pub(crate) Event);

impl Stored for KeptEvent {
    const NAME: &'static str = "event kept aside";

    fn encode(&self, out: &mut Vec<u8>) {
        event::encode(&self.0, out);
    }

    fn decode(from: &mut Decoder) -> Result<Self, Malformed> {
        event::decode(from).map(Self)
    }
}

/// What is kept aside of a shard.
pub(crate) fn range<S: View>(state: &S, shard: Shard) -> Result<KeptRange> {
    Ok(load(state, Table::Store, &Single::Kept.of(shard))?.unwrap_or_default())
}

/// Events that are kept aside from an id on, in order.
pub(crate) fn events<S: View>(state: &S, shard: Shard, from: EventId, limit: usize) -> Result<Vec<Event>> {
    let after = keys::shard_number(shard, from.0.saturating_sub(1));
    let rows = state.scan(Table::KeptEvent, &keys::shard(shard), Some(&after), limit)?;
    rows.into_iter().map(|(_, row)| Ok(KeptEvent::from_row(row)?.0)).collect()
}

/// Keeps aside the next events of a shard that are not trimmed, and job ends. When `through` is given, these were all up to
/// that id. A repeat changes nothing.
pub(crate) fn keep<S: State>(
    state: &mut S,
    shard: Shard,
    events: &[Event],
    ends: &[StoredEnd],
    through: Option<EventId>,
) -> Result<()> {
    // Its stream may have been removed meanwhile.
    let Some(info) = state.shard(shard) else { return Ok(()) };
    let trimmed = info.trimmed;
    let mut range = range(state, shard)?;
    for event in events.iter().filter(|event| event.id > trimmed && event.id > range.events) {
        let row = KeptEvent(event.clone()).to_row();
        state.put(Table::KeptEvent, &keys::shard_number(shard, event.id.0), &row);
    }
    for end in ends {
        let row = keys::shard_number(shard, end.end.id.0);
        state.put(Table::KeptEnd, &row, &end.to_row());
        expiry::note(state, Table::KeptEnd, &row, end.keep_until);
        range.add_end(end.end.id);
    }
    range.events = range.events.max(through.unwrap_or_default());
    state.put(Table::Store, &Single::Kept.of(shard), &range.to_row());
    Ok(())
}
