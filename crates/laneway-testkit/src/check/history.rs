//! What was asked and answered, and what can be read at the end.

use std::collections::BTreeMap;

use laneway_core::store::{Commit, Committed, JobEnd, Receipt};
use laneway_core::{Draft, Event, EventId, Fence, Key, Seat, Seq, Shard};

use crate::bench::Snapshot;

/// What is known of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome<T> {
    /// It happened, with this answer.
    Answered(T),
    /// It was refused: it did not happen.
    Refused,
    /// Nobody knows: both must be right (D3).
    Unknown,
}

/// One append, with all of its repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct AppendRecord {
    /// Where to.
    pub shard: Shard,
    /// What. Payloads are unique per event that is meant, so that events can be told apart.
    pub drafts: Vec<Draft>,
    /// What is known of it.
    pub outcome: Outcome<Vec<Receipt>>,
}

/// An event that a commit ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Its id.
    pub id: EventId,
    /// Its lane and number there; `None` for a keyless event.
    pub place: Option<(Key, Seq)>,
}

/// One commit, with all of its repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct CommitRecord {
    /// When it was first sent, in ticks of the history.
    pub began: u64,
    /// What was sent.
    pub commit: Commit,
    /// The events that it ended, in the order in which they were run.
    pub settled: Vec<Settled>,
    /// What is known of it.
    pub outcome: Outcome<Committed>,
}

/// A seat that was given to somebody.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    /// Which.
    pub seat: Seat,
    /// Its fence.
    pub fence: Fence,
}

/// An end of a job that somebody read.
#[derive(Clone, Debug, PartialEq)]
pub struct EndSeen {
    /// When the answer came, in ticks of the history.
    pub ended: u64,
    /// Where the job lives.
    pub shard: Shard,
    /// What was read.
    pub end: JobEnd,
}

/// Everything about one run.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Appends of producers and of forwarders.
    pub appends: Vec<AppendRecord>,
    /// Commits of owners.
    pub commits: Vec<CommitRecord>,
    /// Seats that were given.
    pub grants: Vec<Grant>,
    /// Ends that were read.
    pub ends: Vec<EndSeen>,
    /// Every event that anybody read, at any time.
    pub events: BTreeMap<(Shard, EventId), Event>,
    /// Events that were read twice and differed.
    pub changed: Vec<(Shard, EventId)>,
    /// Every shard at the end.
    pub finals: BTreeMap<Shard, Snapshot>,
}

impl History {
    /// Somebody read this event.
    pub fn saw(&mut self, shard: Shard, event: Event) {
        let id = event.id;
        match self.events.get(&(shard, id)) {
            Some(before) if *before != event => self.changed.push((shard, id)),
            Some(_) => {}
            None => drop(self.events.insert((shard, id), event)),
        }
    }

    /// Events of one shard, by id.
    pub fn events_of(&self, shard: Shard) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |((found, _), _)| *found == shard).map(|(_, event)| event)
    }

    /// Seats for which there are commits or grants.
    pub fn seats(&self) -> Vec<Seat> {
        let granted = self.grants.iter().map(|grant| grant.seat);
        let mut seats: Vec<Seat> =
            granted.chain(self.commits.iter().map(|record| record.commit.seat)).collect();
        seats.sort();
        seats.dedup();
        seats
    }

    /// Version of a seat at the end.
    pub fn final_version(&self, seat: Seat) -> Option<u64> {
        let snapshot = self.finals.get(&seat.shard)?;
        let found = snapshot.seats.iter().find(|view| view.view.processor == seat.processor)?;
        Some(found.view.progress.fence.version)
    }

    /// The commits of a seat that happened, in order. An unanswered one happened if nothing else fills its
    /// version: of several candidates the newest grant's, because it saw that the version was still free.
    pub fn accepted(&self, seat: Seat) -> Vec<&CommitRecord> {
        let versions = 0..self.final_version(seat).unwrap_or(0);
        let of_seat = || self.commits.iter().filter(|record| record.commit.seat == seat);
        let at = |version: u64| {
            let candidates = of_seat().filter(|record| record.commit.fence.version == version);
            let candidates: Vec<&CommitRecord> =
                candidates.filter(|record| record.outcome != Outcome::Refused).collect();
            let answered = candidates.iter().find(|record| matches!(record.outcome, Outcome::Answered(_)));
            answered.or(candidates.iter().max_by_key(|record| record.commit.fence.term)).copied()
        };
        versions.filter_map(at).collect()
    }
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which invariant.
    pub invariant: &'static str,
    /// What was found.
    pub detail: String,
}

/// Adds a violation.
pub(super) fn report(violations: &mut Vec<Violation>, invariant: &'static str, detail: String) {
    violations.push(Violation { invariant, detail });
}
