//! Jobs: the submitter's view, from the job's place alone (contract 1.11 and 1.12).

use std::time::Duration;

use laneway_core::limits::PAGE_MAX;
use laneway_core::store::{JobState, JobView, Jobs};
use laneway_core::{
    ConflictReason, Event, EventId, JobId, JobNumber, LaneName, Refusal, Result, Seat, Shard, StoreError,
    Terminal, Timestamp,
};

use super::codec::{ScheduledJob, Stored, keys, load};
use super::job_ends::{alive_until, has_own_life, is_alive, result, set_life};
use super::lanes::{record, sided};
use super::promote::never_joined;
use super::schedule::{self, Place};
use super::state::look_at_all;
use super::{Now, State, StoredEnd, Table, View, expiry, gate, ids};

/// Reads jobs or changes how long their ends live. Also answers which jobs ended.
pub(crate) fn jobs<S: State>(state: &mut S, now: Now, jobs: &Jobs) -> Result<(Vec<JobView>, Vec<JobId>)> {
    match jobs {
        Jobs::Get { shard, numbers, results } => {
            Ok((get(state, now, *shard, numbers, *results)?, Vec::new()))
        }
        Jobs::Take { shard, number, grace } => {
            Ok((vec![take(state, now, *shard, *number, *grace)?], Vec::new()))
        }
        Jobs::Forget { shard, number } => Ok((vec![forget(state, now, *shard, *number)?], Vec::new())),
        Jobs::CancelScheduled { shard, ticket } => {
            let (view, ended) = cancel(state, now, *shard, *ticket)?;
            Ok((vec![view], ended.into_iter().collect()))
        }
    }
}

/// Reads jobs, one view per number. The only part of [`jobs`] that changes nothing.
pub(crate) fn get<S: View>(
    state: &S,
    now: Now,
    shard: Shard,
    numbers: &[JobNumber],
    results: bool,
) -> Result<Vec<JobView>> {
    Refusal::check_max("jobs", numbers.len(), PAGE_MAX)?;
    look_at_all(numbers, |number| {
        let state = find(state, now, shard, *number)?.view(state, shard, results)?;
        Ok(JobView { number: *number, state })
    })
}

/// What an end says that can be read now and whose life nobody has changed.
pub(crate) fn untouched_end<S: View>(
    state: &S,
    now: Now,
    shard: Shard,
    end: StoredEnd,
    results: bool,
) -> Result<Option<JobState>> {
    let until = end.keep_until;
    if state.shard(shard).is_none() || has_own_life(state, shard, end.end.id)? || !is_alive(now, until) {
        return Ok(None);
    }
    Found::Ended { end, until }.view(state, shard, results).map(Some)
}

/// A job as found.
enum Found {
    /// Not ended, or nothing known.
    Plain(JobState),
    /// Ended, and still to be read. Ends of events are found by event, others by ticket.
    Ended { end: StoredEnd, until: Timestamp },
}

impl Found {
    fn view<S: View>(self, state: &S, shard: Shard, results: bool) -> Result<JobState> {
        match self {
            Self::Plain(state) => Ok(state),
            Self::Ended { end, until } => {
                let result = if results { result(state, shard, &end.end)? } else { None };
                Ok(JobState::Ended { end: Box::new(end.end), result, keep_until: until })
            }
        }
    }
}

fn find<S: View>(state: &S, now: Now, shard: Shard, number: JobNumber) -> Result<Found> {
    let ticket = match number {
        JobNumber::Event(id) => return find_event(state, now, shard, id),
        JobNumber::Schedule(ticket) => ticket,
    };
    let info = gate::shard(state, shard)?;
    if ticket == 0 || ticket > info.scheduled {
        return Ok(Found::Plain(JobState::Unknown));
    }
    if let Some(waiting) = schedule::find(state, shard, ticket)? {
        return Ok(Found::Plain(JobState::Scheduled { due: waiting.due }));
    }
    match load::<ScheduledJob>(state, Table::ScheduledJob, &keys::shard_number(shard, ticket))? {
        Some(ScheduledJob::Joined(id)) => find_event(state, now, shard, id),
        Some(ScheduledJob::Ended { end, .. }) if is_alive(now, end.keep_until) => {
            Ok(Found::Ended { until: end.keep_until, end })
        }
        Some(ScheduledJob::Ended { .. }) | None => Ok(Found::Plain(JobState::Gone)),
    }
}

fn find_event<S: View>(state: &S, now: Now, shard: Shard, id: EventId) -> Result<Found> {
    let info = gate::shard(state, shard)?;
    if id.0 == 0 || id > info.head || ids::in_gap(info, id) {
        return Ok(Found::Plain(JobState::Unknown));
    }
    // The event tells whether there can be an end: looking for one that is not there costs most.
    let event = state.event(shard, id)?;
    let is_open = event.as_ref().map_or(Ok(false), |event| is_open(state, shard, event))?;
    if !is_open && let Some(end) = state.job_end(shard, id)? {
        return Ok(match alive_until(state, now, shard, &end)? {
            Some(until) => Found::Ended { end, until },
            None => Found::Plain(JobState::Gone),
        });
    }
    let Some(event) = event else { return Ok(Found::Plain(JobState::Gone)) };
    let Some(job) = event.job else { return Ok(Found::Plain(JobState::Unknown)) };
    let seat = Seat { shard, processor: job.responder };
    let Some(stored) = state.seat(seat) else { return Ok(Found::Plain(JobState::Gone)) };
    let life = stored.head.incarnation;
    if stored.window.contains(id) && sided(state, seat, life, id)?.is_none() {
        return Ok(Found::Plain(JobState::Gone));
    }
    let lane = event.key.clone().map_or(LaneName::Event(id), LaneName::Key);
    let lane = record(state, seat, life, &lane)?.filter(|record| record.head == Some(id));
    Ok(Found::Plain(JobState::Pending { id, key: event.key, lane }))
}

/// Whether the one processor that answers a job has not come to its event yet: then it has no end, unless its lane was
/// run ahead. A processor in its second life may have ended it in its first.
fn is_open<S: View>(state: &S, shard: Shard, event: &Event) -> Result<bool> {
    let Some(job) = event.job else { return Ok(false) };
    let seat = Seat { shard, processor: job.responder };
    let Some(stored) = state.seat(seat) else { return Ok(false) };
    if stored.head.incarnation > 0 || stored.window.contains(event.id) {
        return Ok(false);
    }
    let lane = event.key.clone().map_or(LaneName::Event(event.id), LaneName::Key);
    let ahead = record(state, seat, stored.head.incarnation, &lane)?.and_then(|record| record.ahead);
    Ok(ahead.is_none_or(|ahead| ahead < event.id))
}

fn take<S: State>(
    state: &mut S,
    now: Now,
    shard: Shard,
    number: JobNumber,
    grace: Duration,
) -> Result<JobView> {
    let found = ended_or_gone(find(state, now, shard, number)?)?;
    let Found::Ended { end, until } = found else {
        return Ok(JobView { number, state: found.view(state, shard, true)? });
    };
    let shorter = until.min(now.wall.after(grace));
    let view = Found::Ended { end: end.clone(), until: shorter }.view(state, shard, true)?;
    if shorter < until {
        shorten(state, shard, number, end, shorter)?;
    }
    Ok(JobView { number, state: view })
}

fn forget<S: State>(state: &mut S, now: Now, shard: Shard, number: JobNumber) -> Result<JobView> {
    let found = ended_or_gone(find(state, now, shard, number)?)?;
    let state = match found {
        Found::Ended { end, .. } => {
            shorten(state, shard, number, end, Timestamp(0))?;
            JobState::Gone
        }
        Found::Plain(state) => state,
    };
    Ok(JobView { number, state })
}

fn ended_or_gone(found: Found) -> Result<Found> {
    match found {
        Found::Plain(JobState::Pending { .. } | JobState::Scheduled { .. }) => {
            Err(StoreError::conflict(ConflictReason::Unfinished))
        }
        found => Ok(found),
    }
}

fn shorten<S: State>(
    state: &mut S,
    shard: Shard,
    number: JobNumber,
    end: StoredEnd,
    until: Timestamp,
) -> Result<()> {
    match number {
        // An end without event is found by its ticket alone.
        JobNumber::Schedule(ticket) if end.end.id.0 == 0 => {
            let row = keys::shard_number(shard, ticket);
            let accepted_at = match load(state, Table::ScheduledJob, &row)? {
                Some(ScheduledJob::Ended { accepted_at, .. }) => accepted_at,
                Some(ScheduledJob::Joined(_)) | None => None,
            };
            let end = StoredEnd { keep_until: until, ..end };
            put_ticket(state, shard, ticket, &ScheduledJob::Ended { end, accepted_at });
        }
        _ => set_life(state, shard, end.end.id, until),
    }
    Ok(())
}

fn cancel<S: State>(state: &mut S, now: Now, shard: Shard, ticket: u64) -> Result<(JobView, Option<JobId>)> {
    let number = JobNumber::Schedule(ticket);
    gate::shard(state, shard)?;
    let Some(waiting) = schedule::find(state, shard, ticket)? else {
        let row = keys::shard_number(shard, ticket);
        if let Some(ScheduledJob::Joined(_)) = load(state, Table::ScheduledJob, &row)? {
            return Err(StoreError::conflict(ConflictReason::AlreadyDue));
        }
        let state = find(state, now, shard, number)?.view(state, shard, false)?;
        return Ok((JobView { number, state }, None));
    };
    schedule::leave(state, shard, Place { due: waiting.due, ticket });
    let Some(wish) = waiting.draft.job else {
        return Ok((JobView { number, state: JobState::Gone }, None));
    };
    let end = never_joined(now.wall, wish, Terminal::Cancelled, "cancelled before it was due".to_owned());
    let ended = ScheduledJob::Ended { end: end.clone(), accepted_at: Some(waiting.accepted_at) };
    put_ticket(state, shard, ticket, &ended);
    let state = JobState::Ended { keep_until: end.keep_until, end: Box::new(end.end), result: None };
    let job = JobId::new(waiting.accepted_at, shard, JobNumber::Schedule(ticket));
    Ok((JobView { number, state }, Some(job)))
}

/// Whether the end of a job that joined its lane can be read at this time.
pub(crate) fn is_readable<S: View>(state: &S, now: Timestamp, shard: Shard, end: &StoredEnd) -> Result<bool> {
    let now = Now { expiry: now, ..Now::default() };
    Ok(alive_until(state, now, shard, end)?.is_some())
}

/// Writes what became of a draft that had a ticket.
pub(super) fn put_ticket<S: State>(state: &mut S, shard: Shard, ticket: u64, job: &ScheduledJob) {
    let row = keys::shard_number(shard, ticket);
    state.put(Table::ScheduledJob, &row, &job.to_row());
    let until = match job {
        ScheduledJob::Joined(_) => Timestamp(0),
        ScheduledJob::Ended { end, .. } => end.keep_until,
    };
    expiry::note(state, Table::ScheduledJob, &row, until);
}

/// When nothing can be read of a job any more: `None` if that is so now, and no time if nobody knows yet.
pub(super) fn gone_at<S: View>(
    state: &S,
    now: Now,
    shard: Shard,
    number: JobNumber,
) -> Result<Option<Option<Timestamp>>> {
    Ok(match find(state, now, shard, number)? {
        Found::Plain(JobState::Gone) => None,
        Found::Plain(_) => Some(None),
        Found::Ended { until, .. } => Some(Some(until)),
    })
}
