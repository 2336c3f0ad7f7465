//! Planning: which due times fire now, and when to look again.
//!
//! The only memory is the newest due time that was fired or passed over. It is a due time, not the moment somebody
//! fired it, so it means the same on every node and after every restart.
//!
//! - A node that died between append and writing that memory plans the same due times again; two nodes plan the same
//!   ones at once. The store answers both with `duplicate`, because the due time numbers the firing.
//! - A clock that jumped forward makes missed firings, like a stopped cluster: the catch-up policy decides.
//! - A clock that jumped back brings nothing again. What was due until the newest firing stays fired, and the next
//!   firing is the first due time after it: the schedule is silent for what it already did, and not longer.
//!
//! Does not know whether the last firing's job has ended: the caller looks and [`Overlap::admit`] decides.

use std::time::Duration;

use laneway_core::Timestamp;

use super::definition::{CatchUp, Overlap};
use super::timetable::Timetable;

/// How late a firing may be and still not count as missed: a failover (lease of 10 s plus 2 s) and a slow start.
pub const LATE_MAX: Duration = Duration::from_secs(30);

/// What a schedule has behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Past {
    /// When the spec took effect.
    pub since: Timestamp,
    /// The newest due time that was fired or passed over.
    pub last_due: Option<Timestamp>,
}

/// What to do now. Append what fires, then remember `last_due`, then wait for `next`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The due times to fire, oldest first, at most `CATCH_UP_MAX`.
    pub fire: Vec<Timestamp>,
    /// The newest due time that is settled by this plan, fired or not: what to remember.
    pub last_due: Option<Timestamp>,
    /// When to plan again; the end of time if never.
    pub next: Timestamp,
}

/// How the job of the last firing stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastJob {
    /// It ended, or there is none.
    Ended,
    /// It waits or runs.
    Unended,
}

/// Says what fires now.
pub fn plan(timetable: &Timetable, catch_up: CatchUp, past: Past, now: Timestamp) -> Plan {
    let floor = floor(past, now);
    let newest = timetable.last_to(now).filter(|due| *due > floor);
    let fire = match (newest, catch_up) {
        (None, _) => Vec::new(),
        (Some(due), CatchUp::None) => {
            if due.after(LATE_MAX) >= now {
                vec![due]
            } else {
                Vec::new()
            }
        }
        (Some(due), CatchUp::Last) => vec![due],
        (Some(due), CatchUp::All { max }) => newest_up_to(timetable, floor, due, max),
    };
    let last_due = newest.or(past.last_due);
    let next = timetable.after(last_due.map_or(now, |last| last.max(now)));
    Plan { fire, last_due, next: next.unwrap_or(Timestamp(u64::MAX)) }
}

/// The plan of a paused schedule: whatever is due is passed over, so that resuming it does not look like catching up.
pub fn pass_over(timetable: &Timetable, past: Past, now: Timestamp) -> Plan {
    Plan { fire: Vec::new(), ..plan(timetable, CatchUp::Last, past, now) }
}

impl Overlap {
    /// Takes out of a plan what must not fire because of the firing before it.
    pub fn admit(self, plan: Plan, last_job: LastJob) -> Plan {
        let fire = match (self, last_job) {
            (Self::Allow | Self::Queue, _) => plan.fire,
            (Self::Skip, LastJob::Unended) => Vec::new(),
            // Of several that are due at once each would overlap the one before.
            (Self::Skip, LastJob::Ended) => plan.fire.last().copied().into_iter().collect(),
        };
        Plan { fire, ..plan }
    }
}

/// Due times up to this one are none of this plan's business.
fn floor(past: Past, now: Timestamp) -> Timestamp {
    // Before its own beginning the schedule lives on a clock that was put right since. Waiting for the wrong time to
    // come round would keep it silent for nothing: it fires what is due now, and nothing older.
    let begin = if past.since <= now { past.since } else { now.before(LATE_MAX) };
    past.last_due.map_or(begin, |last| last.max(begin))
}

/// From the newest back, so that a long absence costs no more than what fires.
fn newest_up_to(timetable: &Timetable, floor: Timestamp, newest: Timestamp, max: u32) -> Vec<Timestamp> {
    let earlier =
        |due: &Timestamp| timetable.last_to(Timestamp(due.0.checked_sub(1)?)).filter(|due| *due > floor);
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let mut fire: Vec<Timestamp> = std::iter::successors(Some(newest), earlier).take(max).collect();
    fire.reverse();
    fire
}
