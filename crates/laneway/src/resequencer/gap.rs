//! What one lane waits for: the events held behind missing ones, and the ids that were refused for want of room.
//!
//! Exists only while there is one of either. Knows nothing of other lanes and of bounds.
//!
//! Invariant: a held event is due no later than the held events behind it. A missing event is therefore due when the
//! oldest of *all* events behind it is, and the first held event says when the lane is.

use std::collections::BTreeMap;

use laneway_core::{EventId, Steady};

/// One lane's waiting room.
#[derive(Debug)]
pub(super) struct Gap<T> {
    held: BTreeMap<EventId, Held<T>>,
    turned_away: Option<TurnedAway>,
}

#[derive(Debug)]
struct Held<T> {
    /// Id of the event before it; 0 for none.
    prev: EventId,
    item: T,
    due: Steady,
}

/// Refused events: none has a higher id than `highest`.
#[derive(Clone, Copy, Debug)]
struct TurnedAway {
    /// The lowest id that was refused, until it is applied. Then the next is not known, since ids are not kept, and a
    /// new start need not wait for it: whoever fetches what is named offers it in order.
    lowest: Option<EventId>,
    highest: EventId,
    due: Steady,
}

impl<T> Default for Gap<T> {
    fn default() -> Self {
        Self { held: BTreeMap::new(), turned_away: None }
    }
}

impl<T> Gap<T> {
    pub(super) fn held_len(&self) -> usize {
        self.held.len()
    }

    pub(super) fn holds(&self, id: EventId) -> bool {
        self.held.contains_key(&id)
    }

    /// Whether an event with a lower id is known that was not applied yet.
    pub(super) fn knows_below(&self, id: EventId) -> bool {
        let is_held = self.held.first_key_value().is_some_and(|(first, _)| *first < id);
        is_held || self.lowest_refused().is_some_and(|refused| refused < id)
    }

    fn lowest_refused(&self) -> Option<EventId> {
        self.turned_away.and_then(|away| away.lowest)
    }

    /// When the lane is due; nothing when it waits for nothing.
    pub(super) fn due(&self) -> Option<Steady> {
        let held = self.held.first_key_value().map(|(_, held)| held.due);
        let away = self.turned_away.map(|away| away.due);
        held.into_iter().chain(away).min()
    }

    pub(super) fn hold(&mut self, prev: EventId, id: EventId, item: T, due: Steady) {
        let behind = self.held.range(id..).next().map(|(_, held)| held.due);
        let due = behind.map_or(due, |behind| behind.min(due));
        self.held.insert(id, Held { prev, item, due });
    }

    pub(super) fn turn_away(&mut self, id: EventId, due: Steady) {
        self.turned_away = Some(match self.turned_away {
            None => TurnedAway { lowest: Some(id), highest: id, due },
            Some(away) => TurnedAway {
                lowest: Some(away.lowest.map_or(id, |lowest| lowest.min(id))),
                highest: away.highest.max(id),
                due: away.due,
            },
        });
    }

    /// Hands out the first held event if nothing is missing between it and `last`.
    pub(super) fn take_next(&mut self, last: EventId) -> Option<(EventId, T)> {
        self.turned_away = self.turned_away.filter(|away| away.highest > last);
        if let Some(away) = &mut self.turned_away {
            away.lowest = away.lowest.filter(|lowest| *lowest > last);
        }
        let lowest_refused = self.lowest_refused();
        let first = self.held.first_entry()?;
        let (id, prev) = (*first.key(), first.get().prev);
        let is_next = id <= last || prev == last;
        let is_new_start = prev < last && lowest_refused.is_none_or(|refused| refused > id);
        (is_next || is_new_start).then(|| (id, first.remove().item))
    }

    /// What is missing behind `last`, as pairs of ids with nothing known between them, ascending and apart.
    pub(super) fn ranges(&self, last: EventId) -> Vec<(EventId, EventId)> {
        let mut ranges = Vec::new();
        let mut after = last;
        for (id, held) in &self.held {
            if held.prev > after {
                ranges.push((after, *id));
            }
            after = *id;
        }
        ranges.extend(self.turned_away.map(|away| {
            // What comes before a refused event may be missing too: its `prev` went with it.
            let before_it = away.lowest.and_then(|lowest| self.held.range(..lowest).next_back());
            (before_it.map_or(last, |(id, _)| *id), away.highest.next())
        }));
        ranges.sort();
        ranges.dedup_by(|later, earlier| {
            let overlap = later.0 < earlier.1;
            if overlap {
                earlier.1 = earlier.1.max(later.1);
            }
            overlap
        });
        ranges
    }

    /// Makes everything due then.
    pub(super) fn postpone(&mut self, due: Steady) {
        for held in self.held.values_mut() {
            held.due = due;
        }
        if let Some(away) = &mut self.turned_away {
            away.due = due;
        }
    }
}
