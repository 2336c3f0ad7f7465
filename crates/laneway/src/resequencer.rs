//! Resequencer: puts the events of each lane back in order, once each, behind a transport that swaps, repeats or loses.
//!
//! Every event names the one before it in its lane (`prev`), so a consumer that keeps the last id it has applied per key
//! can tell what it holds in its hands: a *duplicate* (`id <= last`), the *next* (`prev == last`), or an event behind a
//! *gap*, which it holds back until the missing one comes. Waiting has two ends: a bound on what is held, and a time
//! after which [`Resequencer::due`] names the ids to fetch again. Fetching and applying are the caller's; nothing here
//! reads a clock. Keyless events have no order and do not belong here.
//!
//! Naive: sort what has arrived by id and apply it. It fails because ids of a lane have holes (they count the whole
//! partition), so that nobody can see from ids alone whether 17 follows 12 or something between them is still under way.
//!
//! - **New start.** An event whose `prev` is absent or below `last` although its id is above has nothing missing before
//!   it: its lane was forgotten by the store and began anew, or the store lost a tail that had been delivered. It is
//!   applied, unless an event with a lower id is held or was refused; then it waits behind that. A new start that
//!   overtakes all others on its way makes them duplicates: only the chain speaks of them, and the new start has none.
//! - **Joining late.** The first event of a lane may name a `prev` that this consumer never applied. [`Join`] says what
//!   that means; [`Resequencer::start_from`] hands in what was applied in an earlier life.
//!
//! Invariants:
//! - items of one key are handed out in id order, each once
//! - the event that follows `last` is never refused, whatever is full, so that fetching always gets on
//! - what was refused is remembered as missing, and named by `due` like what never came

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use laneway_core::{EventId, Steady};

mod gap;
#[cfg(test)]
mod tests;

use gap::Gap;

/// Bounds and waiting time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Most events held back, over all lanes. Default 100,000.
    pub held_max: usize,
    /// Most events held back in one lane. Default 1,000.
    pub held_per_lane_max: usize,
    /// Most lanes whose last id is remembered. Default 1,000,000.
    pub lanes_max: usize,
    /// How long an event may be missing before it is named as due. Default 5 s.
    pub wait: Duration,
    /// What the first event of an unknown lane means. Default from the start.
    pub join: Join,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            held_max: 100_000,
            held_per_lane_max: 1_000,
            lanes_max: 1_000_000,
            wait: Duration::from_secs(5),
            join: Join::FromStart,
        }
    }
}

/// What an unknown lane is taken for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Join {
    /// Nothing of it was applied yet: everything from its first event on is wanted.
    #[default]
    FromStart,
    /// Its first event to arrive is where this consumer begins; whatever comes later with a lower id is a duplicate.
    FirstIsBase,
}

/// What to do with an offered event.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict<T> {
    /// It follows what was applied last: apply it, then what it set free, in this order.
    Next {
        /// The offered item.
        item: T,
        /// Items that waited for it.
        freed: Vec<T>,
    },
    /// It begins the lane, for this consumer or anew: apply it, then what it set free, in this order.
    NewStart {
        /// The offered item.
        item: T,
        /// Items that waited for it.
        freed: Vec<T>,
    },
    /// It was applied before or is held already: drop it.
    Duplicate,
    /// Something before it is missing: it is kept here until that comes.
    Held,
    /// Something before it is missing and there is no room to keep it. Offer it again later, or drop it: unless it is
    /// the lane itself that there is no room for, [`Resequencer::due`] will name it.
    Full {
        /// The offered item.
        item: T,
        /// What is full.
        bound: Bound,
    },
}

impl<T> Verdict<T> {
    /// The items to apply now, in order.
    pub fn ready(self) -> impl Iterator<Item = T> {
        let (item, freed) = match self {
            Self::Next { item, freed } | Self::NewStart { item, freed } => (Some(item), freed),
            Self::Duplicate | Self::Held | Self::Full { .. } => (None, Vec::new()),
        };
        item.into_iter().chain(freed)
    }
}

/// A bound that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Bound {
    /// Fetch what the lane misses.
    #[error("held_per_lane_max: as many events of this lane are held as may be")]
    HeldPerLane,
    /// Fetch what the lanes miss.
    #[error("held_max: as many events are held as may be")]
    Held,
    /// Forget lanes that are idle, or raise the bound.
    #[error("lanes_max: as many lanes are remembered as may be")]
    Lanes,
}

/// Events of one lane that did not come: fetch those with `after < id < before` and offer them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing<K> {
    /// The lane.
    pub key: K,
    /// Everything up to this id is here; 0 when nothing is.
    pub after: EventId,
    /// The first id after the missing ones that is known.
    pub before: EventId,
}

/// Per lane, what was applied last and what waits.
///
/// ```
/// use laneway::resequencer::{Missing, Resequencer, Settings, Verdict};
/// use laneway::{EventId, Steady};
///
/// let mut lanes = Resequencer::new(Settings::default());
/// let mut apply = |prev: Option<u64>, id, item, now| {
///     lanes.offer(&"a1", prev.map(EventId), EventId(id), item, Steady(now)).ready().collect::<Vec<_>>()
/// };
/// assert_eq!(apply(None, 3, "opened", 0), ["opened"]);
/// assert!(apply(Some(9), 14, "closed", 0).is_empty(), "9 is missing");
/// assert!(apply(None, 3, "opened", 1).is_empty(), "a duplicate");
///
/// let missing = Missing { key: "a1", after: EventId(3), before: EventId(14) };
/// assert_eq!(lanes.due(Steady(5_000_000)), [missing]);
/// let fetched = lanes.offer(&"a1", Some(EventId(3)), EventId(9), "charged", Steady(5_000_000));
/// assert_eq!(fetched, Verdict::Next { item: "charged", freed: vec!["closed"] });
/// ```
#[derive(Debug)]
pub struct Resequencer<K, T> {
    settings: Settings,
    /// Id applied last, per lane.
    last: BTreeMap<K, EventId>,
    /// Lanes that miss something.
    gaps: BTreeMap<K, Gap<T>>,
    /// When each of them is due, soonest first.
    deadlines: BTreeSet<(Steady, K)>,
    held_len: usize,
}

impl<K: Clone + Ord, T> Resequencer<K, T> {
    /// Knows no lane yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            last: BTreeMap::new(),
            gaps: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            held_len: 0,
        }
    }

    /// Tells what was applied last in a lane, before its first event is offered; 0 for nothing. A lane that is known
    /// already stays where it is; [`Resequencer::pass`] moves it.
    pub fn start_from(&mut self, key: K, last: EventId) -> Result<(), Bound> {
        if self.last.contains_key(&key) {
            return Ok(());
        }
        if self.last.len() >= self.settings.lanes_max {
            return Err(Bound::Lanes);
        }
        self.last.insert(key, last);
        Ok(())
    }

    /// Takes one event and says what to do. Whatever is handed out counts as applied from here on: a consumer that
    /// then fails begins anew from what it has stored.
    pub fn offer(&mut self, key: &K, prev: Option<EventId>, id: EventId, item: T, now: Steady) -> Verdict<T> {
        let prev = prev.unwrap_or_default();
        let Some(&last) = self.last.get(key) else { return self.join(key, prev, id, item, now) };
        let gap = self.gaps.get(key);
        if id <= last || gap.is_some_and(|gap| gap.holds(id)) {
            return Verdict::Duplicate;
        }
        if prev == last || (prev < last && !gap.is_some_and(|gap| gap.knows_below(id))) {
            let freed = self.advance(key, id);
            let follows = prev == last;
            return if follows { Verdict::Next { item, freed } } else { Verdict::NewStart { item, freed } };
        }
        self.hold(key, prev, id, item, now)
    }

    /// Names everything that has been missing for long enough. What is still missing is named again after another wait.
    pub fn due(&mut self, now: Steady) -> Vec<Missing<K>> {
        let mut due = Vec::new();
        while self.deadlines.first().is_some_and(|(at, _)| *at <= now) {
            due.extend(self.deadlines.pop_first());
        }
        let again = now.after(self.settings.wait);
        let mut missing = Vec::new();
        for (_, key) in due {
            let gap = self.gaps.get_mut(&key).expect("a deadline goes with its gap");
            for (after, before) in gap.ranges(self.last[&key]) {
                missing.push(Missing { key: key.clone(), after, before });
            }
            gap.postpone(again);
            self.deadlines.insert((again, key));
        }
        missing
    }

    /// When [`Resequencer::due`] has something to say next, if nothing more arrives.
    pub fn next_due(&self) -> Option<Steady> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Gives up waiting for what has a lower id than `before` and is not here: it was trimmed, or nobody wants it any
    /// more. Hands out what this sets free, to apply in this order.
    pub fn pass(&mut self, key: &K, before: EventId) -> Vec<T> {
        let Some(&last) = self.last.get(key) else { return Vec::new() };
        let through = EventId(before.0.saturating_sub(1)).max(last);
        self.advance(key, through)
    }

    /// Forgets a lane and answers what was applied last in it. A lane that misses something is kept, and an unknown one
    /// has nothing to forget: both answer nothing.
    pub fn forget(&mut self, key: &K) -> Option<EventId> {
        if self.gaps.contains_key(key) { None } else { self.last.remove(key) }
    }

    /// Id applied last in a lane; nothing when the lane is unknown.
    pub fn last(&self, key: &K) -> Option<EventId> {
        self.last.get(key).copied()
    }

    /// All lanes with the id applied last: what [`Resequencer::start_from`] takes in the next life.
    pub fn positions(&self) -> impl Iterator<Item = (&K, EventId)> {
        self.last.iter().map(|(key, last)| (key, *last))
    }

    /// How many events are held back, over all lanes.
    pub fn held_len(&self) -> usize {
        self.held_len
    }

    /// The first event of an unknown lane.
    fn join(&mut self, key: &K, prev: EventId, id: EventId, item: T, now: Steady) -> Verdict<T> {
        if let Err(bound) = self.start_from(key.clone(), EventId::default()) {
            return Verdict::Full { item, bound };
        }
        if self.settings.join == Join::FirstIsBase || prev == EventId::default() {
            return Verdict::NewStart { item, freed: self.advance(key, id) };
        }
        self.hold(key, prev, id, item, now)
    }

    fn hold(&mut self, key: &K, prev: EventId, id: EventId, item: T, now: Steady) -> Verdict<T> {
        let due = now.after(self.settings.wait);
        let gap = self.gaps.entry(key.clone()).or_default();
        let due_before = gap.due();
        let bound = if gap.held_len() >= self.settings.held_per_lane_max {
            Some(Bound::HeldPerLane)
        } else if self.held_len >= self.settings.held_max {
            Some(Bound::Held)
        } else {
            None
        };
        let verdict = match bound {
            Some(bound) => {
                gap.turn_away(id, due);
                Verdict::Full { item, bound }
            }
            None => {
                gap.hold(prev, id, item, due);
                self.held_len += 1;
                Verdict::Held
            }
        };
        let due_after = gap.due();
        self.reschedule(key, due_before, due_after);
        verdict
    }

    /// Everything up to `through` is applied or given up: hands out what is held up to there and what follows it.
    fn advance(&mut self, key: &K, through: EventId) -> Vec<T> {
        let last = self.last.get_mut(key).expect("only known lanes advance");
        *last = through;
        let Some(gap) = self.gaps.get_mut(key) else { return Vec::new() };
        let due_before = gap.due();
        let mut freed = Vec::new();
        while let Some((id, item)) = gap.take_next(*last) {
            *last = id.max(*last);
            freed.push(item);
        }
        self.held_len -= freed.len();
        let due_after = gap.due();
        if due_after.is_none() {
            self.gaps.remove(key);
        }
        self.reschedule(key, due_before, due_after);
        freed
    }

    fn reschedule(&mut self, key: &K, before: Option<Steady>, after: Option<Steady>) {
        if before == after {
            return;
        }
        if let Some(before) = before {
            self.deadlines.remove(&(before, key.clone()));
        }
        self.deadlines.extend(after.map(|after| (after, key.clone())));
    }
}
