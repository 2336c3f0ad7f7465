//! Drafts on their way to the end of their lanes: the chain, and the judgement of generations.
//!
//! Used by `append` and `promote`. Works on its own copy of the tails that change inside the call and touches
//! the state only to read, so a call that turns out to be a conflict has changed nothing.

use hashbrown::HashMap;
use laneway_core::{
    DelayMode, Draft, Due, Event, EventId, JobId, JobMark, JobNumber, Key, Mode, Result, Seq, Shard,
    ShardInfo, StartAfter, Timestamp,
};

use super::{Now, Tail, View};

/// What becomes of a draft that is due.
pub(super) enum Verdict {
    /// It is the last of [`Joins::events`].
    Joined,
    /// A newer one was accepted before.
    Stale { newest: EventId, generation: u64 },
}

/// The events of one call, in order.
pub(super) struct Joins {
    shard: Shard,
    mode: Mode,
    now: Now,
    /// Log time: never before the event before.
    time: Timestamp,
    head: EventId,
    tails: Tails,
    pub(super) events: Vec<Event>,
}

impl Joins {
    pub(super) fn new(shard: Shard, info: &ShardInfo, mode: Mode, now: Now, capacity: usize) -> Self {
        Self {
            shard,
            mode,
            now,
            time: info.time.max(now.calendar),
            head: info.head,
            tails: Tails::default(),
            events: Vec::with_capacity(capacity),
        }
    }

    /// The last id given, in this call or before.
    pub(super) fn head(&self) -> EventId {
        self.head
    }

    /// The end of a lane as the call would leave it.
    pub(super) fn tail<S: View>(&mut self, state: &S, key: &Key) -> Result<Option<Tail>> {
        let at = self.tails.find(state, self.shard, key)?;
        Ok(self.tails.entries[at].1)
    }

    /// Gives a draft its place, unless it is stale. `job` is the id that a scheduled job was given before.
    pub(super) fn offer<S: View>(&mut self, state: &S, draft: Draft, job: Option<JobId>) -> Result<Verdict> {
        let id = self.head.next();
        let (mut prev, mut seq, mut generation) = (None, None, draft.generation);
        if let Some(key) = &draft.key {
            let at = self.tails.find(state, self.shard, key)?;
            let tail = self.tails.entries[at].1;
            if self.mode == Mode::Latest {
                match judge(tail.as_ref(), &draft) {
                    Ok(accepted) => generation = Some(accepted),
                    Err(stale) => return Ok(stale),
                }
            }
            let number = tail.map_or(Seq(1), |tail| Seq(tail.seq.0 + 1));
            prev = tail.map(|tail| tail.id);
            seq = Some(number);
            let (incarnation, deleted) = (draft.incarnation, draft.delete);
            self.tails.entries[at].1 = Some(Tail { id, seq: number, generation, incarnation, deleted });
        }
        let hold = draft.delay.filter(|delay| delay.mode == DelayMode::Hold);
        self.head = id;
        self.events.push(Event {
            id,
            prev,
            seq,
            key: draft.key,
            kind: draft.kind,
            data: draft.data,
            headers: draft.headers,
            time: self.time,
            generation,
            incarnation: draft.incarnation,
            delete: draft.delete,
            priority: draft.priority,
            expires_at: draft.ttl.map(|ttl| self.now.wall.after(ttl)),
            hold_until: hold.map(|delay| due(delay.until, self.now)),
            job: draft.job.map(|wish| JobMark {
                id: job.unwrap_or_else(|| JobId::new(self.now.calendar, self.shard, JobNumber::Event(id))),
                responder: wish.responder,
                keep: wish.keep,
            }),
        });
        Ok(Verdict::Joined)
    }
}

/// The moment at which a delay is over: lengths by the steady clock, dates by the calendar.
pub(super) fn due(until: StartAfter, now: Now) -> Due {
    match until {
        StartAfter::Delay(length) => Due::Steady(now.steady.after(length)),
        StartAfter::At(time) => Due::Calendar(time),
    }
}

/// Latest mode: the generation that a draft has if it is accepted (contract 1.14).
fn judge(tail: Option<&Tail>, draft: &Draft) -> Result<u64, Verdict> {
    let Some(tail) = tail else { return Ok(draft.generation.unwrap_or(1)) };
    let newest = tail.generation.unwrap_or(0);
    let stale = Verdict::Stale { newest: tail.id, generation: newest };
    if draft.incarnation > tail.incarnation {
        return Ok(draft.generation.unwrap_or(1));
    }
    if draft.incarnation < tail.incarnation || tail.deleted {
        return Err(stale);
    }
    match draft.generation {
        None => Ok(newest.saturating_add(1)),
        Some(generation) if generation >= newest => Ok(generation),
        Some(_) => Err(stale),
    }
}

/// Tails that were looked up in this call. Most calls have few lanes, and events of one lane follow each
/// other, so a list is enough until it is long.
#[derive(Default)]
struct Tails {
    entries: Vec<(Key, Option<Tail>)>,
    index: HashMap<Key, usize>,
}

const LIST_MAX: usize = 16;

impl Tails {
    fn find<S: View>(&mut self, state: &S, shard: Shard, key: &Key) -> Result<usize> {
        let known = if self.entries.len() <= LIST_MAX {
            self.entries.iter().rposition(|(known, _)| known == key)
        } else {
            self.index.get(key).copied()
        };
        if let Some(at) = known {
            return Ok(at);
        }
        self.entries.push((key.clone(), state.tail(shard, key)?));
        let at = self.entries.len() - 1;
        if at == LIST_MAX {
            self.index = self.entries.iter().enumerate().map(|(at, (key, _))| (key.clone(), at)).collect();
        } else if at > LIST_MAX {
            self.index.insert(key.clone(), at);
        }
        Ok(at)
    }
}
