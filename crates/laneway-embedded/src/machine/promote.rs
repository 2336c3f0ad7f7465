//! Promote: drafts that are due join their lanes, those due for longest first.

use laneway_core::limits::{NUMBER_MAX, PAGE_MAX};
use laneway_core::store::{JobEnd, JobResult, Promote, Promoted};
use laneway_core::{Bytes, EventId, JobDraft, JobId, JobNumber, Result, Shard, Terminal, Timestamp};

use super::append::{join_all, used_up};
use super::codec::{ScheduledJob, Stored, keys};
use super::dedup::{self, Promotion};
use super::joins::{Joins, Verdict};
use super::schedule::{self, Place};
use super::{Now, State, StoredEnd, Table, gate};

/// Rows and marks that a moved draft leaves beside the event itself, at most.
const OVERHEAD: usize = 1 << 10;

/// Moves what is due. Also answers which jobs ended because a newer generation came first.
pub(crate) fn promote<S: State>(state: &mut S, now: Now, promote: Promote) -> Result<(Promoted, Vec<JobId>)> {
    let shard = promote.shard;
    let limit = promote.limit.min(PAGE_MAX);
    let mut places = schedule::first(state, now, shard, limit + 1)?;
    let stream = gate::stream(state, shard.stream)?;
    let info = gate::shard(state, shard)?;
    gate::adopted(state, shard, info)?;
    gate::unsealed(stream, shard, info)?;
    let due = places.iter().take(limit).take_while(|place| place.age(now) >= 0).count();
    let next = places.get(due).map(|place| schedule::until(place.age(now)));
    places.truncate(due);

    let mut moves = Moves {
        joins: Joins::new(shard, info, stream.settings.mode, now, due),
        dedup: Vec::new(),
        jobs: Vec::new(),
        ended: Vec::new(),
    };
    for place in &places {
        moves.decide(state, now, shard, *place)?;
    }
    for place in &places {
        schedule::leave(state, shard, *place);
    }
    join_all(state, shard, moves.joins.events);
    moves.dedup.into_iter().for_each(|promotion| promotion.apply(state));
    for (ticket, job) in moves.jobs {
        state.put(Table::ScheduledJob, &keys::shard_number(shard, ticket), &job.to_row());
    }
    Ok((Promoted { moved: due, next }, moves.ended))
}

/// How many of the next drafts move no more than so many bytes, but at least one: for stores that bound what one
/// transition may write.
pub(crate) fn within<S: State>(state: &S, now: Now, promote: Promote, bytes_max: usize) -> Result<usize> {
    let places = schedule::first(state, now, promote.shard, promote.limit.min(PAGE_MAX))?;
    let (mut count, mut bytes) = (0, 0);
    for place in places.iter().take_while(|place| place.age(now) >= 0) {
        let row = state.get(Table::Schedule, &keys::shard_number(promote.shard, place.ticket))?;
        bytes += row.map_or(0, |row| row.len()) + OVERHEAD;
        if count > 0 && bytes > bytes_max {
            break;
        }
        count += 1;
    }
    Ok(count)
}

/// One promotion while it is being decided. Only reads.
struct Moves {
    joins: Joins,
    dedup: Vec<Promotion>,
    jobs: Vec<(u64, ScheduledJob)>,
    ended: Vec<JobId>,
}

impl Moves {
    fn decide<S: State>(&mut self, state: &S, now: Now, shard: Shard, place: Place) -> Result<()> {
        let Some(waiting) = schedule::find(state, shard, place.ticket)? else {
            let what = format!("schedule of shard {shard}: ticket {} has no draft", place.ticket);
            return Err(laneway_core::StoreError::Corrupt { what });
        };
        if self.joins.head().0 >= NUMBER_MAX {
            return Err(used_up(shard));
        }
        let draft = waiting.draft;
        let (wish, remembered, key) = (draft.job, draft.dedup.clone(), draft.key.clone());
        let job = wish.map(|_| JobId::new(waiting.accepted_at, shard, JobNumber::Schedule(place.ticket)));
        match self.joins.offer(state, draft, job)? {
            Verdict::Joined => {
                let id = self.joins.head();
                if job.is_some() {
                    self.jobs.push((place.ticket, ScheduledJob::Joined(id)));
                }
                if let Some(remembered) = remembered {
                    let joined = (place.ticket, id);
                    let place = (shard, key.as_ref());
                    self.dedup.extend(dedup::promotion(state, now, place, &remembered, joined)?);
                }
            }
            Verdict::Stale { newest, .. } => {
                if let (Some(wish), Some(job)) = (wish, job) {
                    let reason = format!("event {newest} is newer");
                    let end = never_joined(now.wall, wish, Terminal::Superseded, reason);
                    let accepted_at = Some(waiting.accepted_at);
                    self.jobs.push((place.ticket, ScheduledJob::Ended { end, accepted_at }));
                    self.ended.push(job);
                }
            }
        }
        Ok(())
    }
}

/// The end of a job that never joined its lane, so that no event stands for it.
pub(super) fn never_joined(at: Timestamp, wish: JobDraft, end: Terminal, reason: String) -> StoredEnd {
    let end = JobEnd {
        id: EventId(0),
        end,
        error: Bytes::from(reason),
        attempts: 0,
        started_at: None,
        finished_at: at,
        result: JobResult::None,
        keep: wish.keep,
    };
    let keep_until = at.after(end.keep);
    StoredEnd { end, keep_until }
}
