//! Promote: drafts that are due join their lanes, those due for longest first.

use laneway_core::limits::{NUMBER_MAX, PAGE_MAX};
use laneway_core::store::{JobEnd, JobResult, Promote, Promoted};
use laneway_core::{Bytes, Draft, EventId, JobDraft, JobId, JobNumber, Result, Shard, Terminal, Timestamp};

use super::append::{join_all, used_up};
use super::codec::{ScheduledJob, Waiting};
use super::dedup::{self, Promotion};
use super::jobs::put_ticket;
use super::joins::{Joins, Verdict};
use super::schedule::{self, Drafts, Place};
use super::{Now, State, StoredEnd, View, gate};

/// Rows that a moved draft leaves and takes with it, beside the event itself.
const OVERHEAD: usize = 320;
/// The same of a dedup id, for each of its bytes and those of its key: four rows, in which a zero byte takes two.
const DEDUP_OVERHEAD: usize = 8;

/// What one promotion may move: at least one draft.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) drafts: usize,
    /// Of everything that is written for them.
    pub(crate) bytes: usize,
}

/// Moves what is due. Also answers which jobs ended because a newer generation came first.
pub(crate) fn promote<S: State>(
    state: &mut S,
    now: Now,
    promote: Promote,
    bounds: Bounds,
) -> Result<(Promoted, Vec<JobId>)> {
    let shard = promote.shard;
    let limit = promote.limit.min(PAGE_MAX).min(bounds.drafts);
    let mut places = schedule::first(state, now, shard, limit + 1)?;
    let stream = gate::stream(state, shard.stream)?;
    let info = gate::shard(state, shard)?;
    gate::adopted(state, shard, info)?;
    gate::unsealed(stream, shard, info)?;
    let due = places.iter().take(limit).take_while(|place| place.age(now) >= 0).count();

    let mut moves = Moves {
        joins: Joins::new(shard, info, stream.settings.mode, now, due),
        dedup: Vec::new(),
        jobs: Vec::new(),
        ended: Vec::new(),
        bytes: 0,
    };
    let mut moved = 0;
    let mut drafts = Drafts::new(shard, &places[..due]);
    while let Some((place, waiting)) = drafts.next(state)?
        && moves.decide(state, now, shard, (place, waiting), bounds.bytes)?
    {
        moved += 1;
    }
    let next = places.get(moved).map(|place| schedule::until(place.age(now)));
    places.truncate(moved);
    for place in &places {
        schedule::leave(state, shard, *place);
    }
    join_all(state, shard, moves.joins.events);
    moves.dedup.into_iter().for_each(|promotion| promotion.apply(state));
    for (ticket, job) in moves.jobs {
        put_ticket(state, shard, ticket, &job);
    }
    Ok((Promoted { moved, next }, moves.ended))
}

/// One promotion while it is being decided. Only reads.
struct Moves {
    joins: Joins,
    dedup: Vec<Promotion>,
    jobs: Vec<(u64, ScheduledJob)>,
    ended: Vec<JobId>,
    /// What is written for them, at most.
    bytes: usize,
}

impl Moves {
    /// Decides about the next draft; false if there is no room for it beside the others.
    fn decide<S: View>(
        &mut self,
        state: &S,
        now: Now,
        shard: Shard,
        (place, waiting): (Place, Waiting),
        bytes_max: usize,
    ) -> Result<bool> {
        if self.joins.head().0 >= NUMBER_MAX {
            return Err(used_up(shard));
        }
        let draft = waiting.draft;
        let is_first = self.bytes == 0;
        self.bytes += bytes_of(&draft);
        if !is_first && self.bytes > bytes_max {
            return Ok(false);
        }
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
        Ok(true)
    }
}

/// What is written when a draft moves, at most.
fn bytes_of(draft: &Draft) -> usize {
    let key = draft.key.as_ref().map_or(0, |key| key.bytes().len());
    let dedup = draft.dedup.as_ref().map_or(0, |dedup| DEDUP_OVERHEAD * (key + dedup.id.len()) + OVERHEAD);
    key + draft.kind.bytes().len() + draft.headers.bytes().len() + draft.data.len() + dedup + OVERHEAD
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
