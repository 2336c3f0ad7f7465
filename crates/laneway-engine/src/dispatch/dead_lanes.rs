//! Which dead letters the lanes of a seat have, so that a request reads the letters of its own lane and no others.
//!
//! Stores keep dead letters by id. The first request that asks for a lane's letters walks all letters of the seat once;
//! after that the seat's own commits keep the list current. A list that nobody has used for a while is dropped.
//!
//! The list may name letters that are gone: retention removes them without telling anyone. It never misses one of
//! those it covers. So callers read each letter it names and compare the lane, which also settles equal hashes.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use laneway_core::store::Commit;
use laneway_core::{EventId, LaneName, Steady};

use crate::lane::name_of;

/// Letters that one list covers: about 6 MiB. The letters behind them are walked for each request.
const LETTERS_MAX: usize = 1 << 18;
/// A list that was not used for this long is dropped.
const KEPT: Duration = Duration::from_secs(60);

/// The dead letters of a seat by lane.
#[derive(Debug, Default)]
pub(crate) struct DeadLanes {
    list: List,
    /// Letters of the commit on its way: a walk may miss them.
    on_its_way: Vec<(u64, EventId)>,
    /// Commits with letters that became durable.
    commits: u64,
}

#[derive(Debug, Default)]
enum List {
    #[default]
    Absent,
    /// A walk is under way. Letters that are new since it began are added to what it finds.
    Walking {
        new: Vec<(u64, EventId)>,
    },
    Known(Known),
}

#[derive(Debug)]
struct Known {
    /// Hash of the lane and id of the letter.
    letters: BTreeSet<(u64, EventId)>,
    /// The list misses no letter up to this one.
    through: EventId,
    /// When it was used last.
    used: Steady,
}

/// The letters of one lane, as far as the list covers them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Listed {
    /// In order. Some may be gone, or belong to another lane.
    pub(super) ids: Vec<EventId>,
    /// Letters behind this one are not in the list.
    pub(super) through: EventId,
}

impl DeadLanes {
    /// Whether there is no list.
    pub(super) fn is_absent(&self) -> bool {
        matches!(self.list, List::Absent) && self.on_its_way.is_empty()
    }

    /// The letters of a lane, if there is a list.
    pub(super) fn of(&mut self, lane: &LaneName, now: Steady) -> Option<Listed> {
        let List::Known(known) = &mut self.list else { return None };
        known.used = now;
        let hash = hash_of(lane);
        let of_lane = (hash, EventId(0))..=(hash, EventId(u64::MAX));
        let ids = known.letters.range(of_lane).map(|(_, id)| *id).collect();
        Some(Listed { ids, through: known.through })
    }

    /// All letters of the seat are about to be walked.
    pub(super) fn walk_begins(&mut self) {
        self.list = List::Walking { new: self.on_its_way.clone() };
    }

    /// All letters were walked: these are the first of them, and the list covers the ids up to `through`.
    pub(super) fn walked(&mut self, found: Walk, now: Steady) {
        let List::Walking { new } = std::mem::take(&mut self.list) else { return };
        let Walk { mut letters, through } = found;
        letters.extend(new.into_iter().filter(|(_, id)| *id <= through));
        self.list = List::Known(Known { letters, through, used: now });
    }

    /// A commit is on its way. Its letters are listed at once: a list may name too many, never too few.
    pub(super) fn sent(&mut self, commit: &Commit) {
        let letters = commit.dead.iter().map(|dead| (hash_of(&name_of(&dead.event)), dead.event.id));
        self.on_its_way.extend(letters);
        match &mut self.list {
            List::Absent => {}
            List::Walking { new } => new.extend(&self.on_its_way),
            List::Known(known) => {
                let through = known.through;
                known.letters.extend(self.on_its_way.iter().filter(|(_, id)| *id <= through));
                if known.letters.len() > 2 * LETTERS_MAX {
                    self.list = List::Absent;
                }
            }
        }
    }

    /// That commit is durable.
    pub(super) fn durable(&mut self) {
        if !std::mem::take(&mut self.on_its_way).is_empty() {
            self.commits += 1;
        }
    }

    /// How many commits with letters were durable until now.
    pub(super) fn commits(&self) -> u64 {
        self.commits
    }

    /// Removes a letter that a read, after so many commits, did not find. Keeps it if the commit on its way brings it,
    /// or if a commit with letters became durable since the read.
    pub(super) fn is_gone(&mut self, lane: &LaneName, id: EventId, commits: u64) {
        let letter = (hash_of(lane), id);
        if let List::Known(known) = &mut self.list
            && commits == self.commits
            && !self.on_its_way.contains(&letter)
        {
            known.letters.remove(&letter);
        }
    }

    /// Drops the list if nobody has used it for a while. Answers when to look again.
    pub(super) fn drop_unused(&mut self, now: Steady) -> Option<Steady> {
        let List::Known(known) = &self.list else { return None };
        let until = known.used.after(KEPT);
        if until > now {
            return Some(until);
        }
        self.list = List::Absent;
        None
    }
}

/// What a walk over the dead letters of a seat found.
#[derive(Debug)]
pub(super) struct Walk {
    letters: BTreeSet<(u64, EventId)>,
    through: EventId,
}

impl Walk {
    pub(super) fn new() -> Self {
        Self { letters: BTreeSet::new(), through: EventId(u64::MAX) }
    }

    /// The next letter, by id. Answers whether the list has room for another one.
    pub(super) fn found(&mut self, lane: &LaneName, id: EventId) -> bool {
        self.letters.insert((hash_of(lane), id));
        let has_room = self.letters.len() < LETTERS_MAX;
        if !has_room {
            self.through = id;
        }
        has_room
    }
}

fn hash_of(lane: &LaneName) -> u64 {
    let mut hasher = DefaultHasher::new();
    lane.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use laneway_core::store::DeadLetter;
    use laneway_core::{
        CommitId, Event, Fence, Key, Nonce, Partition, ProcessorId, Seat, Shard, StreamId, Term, Timestamp,
    };

    use super::*;
    use crate::dispatch::tests::event_in;

    const NOW: Steady = Steady(1_000_000);

    fn lane(key: &str) -> LaneName {
        LaneName::Key(Key::new(key.to_owned()).expect("a short key"))
    }

    fn commit(letters: &[(&str, u64)]) -> Commit {
        let shard = Shard { stream: StreamId(1), partition: Partition(0) };
        let fence = Fence { term: Term(1), nonce: Nonce(1), version: 0, adoptions: 0 };
        let letter = |(key, id): &(&str, u64)| {
            let key = Key::new((*key).to_owned()).expect("a short key");
            let event = Event { key: Some(key), ..event_in(1, *id) };
            DeadLetter { event, cause: Bytes::new(), attempts: 1, at: Timestamp(0) }
        };
        let dead = letters.iter().map(letter).collect();
        Commit { dead, ..Commit::new(Seat { shard, processor: ProcessorId(1) }, fence, CommitId(1)) }
    }

    fn walked(dead: &mut DeadLanes, letters: &[(&str, u64)]) {
        dead.walk_begins();
        let mut walk = Walk::new();
        letters.iter().for_each(|(key, id)| assert!(walk.found(&lane(key), EventId(*id))));
        dead.walked(walk, NOW);
    }

    fn ids(dead: &mut DeadLanes, key: &str) -> Vec<u64> {
        dead.of(&lane(key), NOW).expect("there is a list").ids.iter().map(|id| id.0).collect()
    }

    #[test]
    fn lane_has_its_own_letters_in_order() {
        let mut dead = DeadLanes::default();
        assert_eq!(dead.of(&lane("a"), NOW), None, "nobody has walked them");
        walked(&mut dead, &[("a", 1), ("b", 2), ("a", 9)]);
        dead.sent(&commit(&[("a", 5)]));
        assert_eq!(ids(&mut dead, "a"), [1, 5, 9]);
        dead.is_gone(&lane("a"), EventId(1), dead.commits());
        assert_eq!(ids(&mut dead, "a"), [5, 9]);
    }

    #[test]
    fn letters_that_a_walk_may_have_missed_are_listed() {
        let mut dead = DeadLanes::default();
        dead.sent(&commit(&[("a", 3)]));
        dead.walk_begins();
        dead.durable();
        dead.sent(&commit(&[("a", 4)]));
        dead.walked(Walk::new(), NOW);
        assert_eq!(ids(&mut dead, "a"), [3, 4]);
    }

    #[test]
    fn letter_that_is_not_durable_yet_stays_listed() {
        let mut dead = DeadLanes::default();
        walked(&mut dead, &[]);
        dead.sent(&commit(&[("a", 3)]));
        dead.is_gone(&lane("a"), EventId(3), dead.commits());
        assert_eq!(ids(&mut dead, "a"), [3]);
        dead.durable();
        dead.is_gone(&lane("a"), EventId(3), dead.commits());
        assert_eq!(ids(&mut dead, "a"), [] as [u64; 0]);
    }

    #[test]
    fn letter_that_became_durable_after_the_read_stays_listed() {
        let mut dead = DeadLanes::default();
        walked(&mut dead, &[]);
        dead.sent(&commit(&[("a", 3)]));
        let read_after = dead.commits();
        dead.durable();
        dead.is_gone(&lane("a"), EventId(3), read_after);
        assert_eq!(ids(&mut dead, "a"), [3]);
    }

    #[test]
    fn list_that_nobody_uses_is_dropped() {
        let mut dead = DeadLanes::default();
        walked(&mut dead, &[("a", 1)]);
        assert_eq!(dead.drop_unused(NOW), Some(NOW.after(KEPT)));
        assert_eq!(dead.drop_unused(NOW.after(KEPT)), None);
        assert_eq!(dead.of(&lane("a"), NOW), None);
    }

    #[test]
    fn list_says_how_far_it_goes() {
        let mut dead = DeadLanes::default();
        dead.walk_begins();
        let mut walk = Walk::new();
        let last = (1..).find(|id| !walk.found(&lane("a"), EventId(*id))).expect("a list has an end");
        dead.walked(walk, NOW);
        let listed = dead.of(&lane("a"), NOW).expect("there is a list");
        assert_eq!((listed.ids.len(), listed.through), (LETTERS_MAX, EventId(last)));
        dead.sent(&commit(&[("b", last + 1)]));
        assert_eq!(ids(&mut dead, "b"), [] as [u64; 0], "those behind it are walked");
    }
}
