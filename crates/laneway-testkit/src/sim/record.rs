//! The history: what was asked of the store and answered, what handlers began and ended, in the order in which it
//! happened. Every record is judged as it is written, and kept as text where somebody wants to read it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{Append, Appended, Commit, Committed, JobEnd, Receipt, Request, Seize};
use laneway_core::{Event, EventId, Fence, JobNumber, LaneName, RunFence, Seat, Shard, Steady, StoreError};
use parking_lot::Mutex;

use super::judge::Judge;
use super::life::{SimClock, Skew};

/// Who made a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct By {
    /// Which life of the process.
    pub(crate) life: u32,
    /// Which call of that life.
    pub(crate) call: u64,
    /// When it was sent.
    pub(crate) sent_at: Steady,
    /// Its sender has given up waiting, or is dead.
    pub(crate) late: bool,
}

/// Why a call had no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Fenced,
    Input(String),
    Other(String),
}

impl From<&StoreError> for Refused {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::Fenced { .. } => Self::Fenced,
            StoreError::Refused(refusal) => Self::Input(refusal.to_string()),
            other => Self::Other(other.to_string()),
        }
    }
}

/// One lane of a run as its handler sees it.
#[derive(Clone, Debug)]
pub(crate) struct LaneStart {
    pub(crate) lane: LaneName,
    pub(crate) ids: Vec<EventId>,
    pub(crate) attempt: u32,
    pub(crate) fence: RunFence,
    pub(crate) state: Option<(u64, Bytes)>,
}

/// What was to become of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// There was none.
    Create,
    /// It was there, at the version that its writer had seen.
    Replace,
    Delete,
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub(crate) enum Record {
    Began {
        life: u32,
        skew: Skew,
    },
    Died {
        life: u32,
        why: &'static str,
    },
    NotStarted {
        life: u32,
        error: String,
    },
    Drained {
        life: u32,
    },
    /// Nothing that it sends arrives for so long.
    CutOff {
        life: u32,
        length: Duration,
    },
    /// It does nothing for so long, while time goes on.
    Frozen {
        life: u32,
        length: Duration,
    },
    /// The store is as it was so long ago.
    FailedOver {
        behind: Duration,
    },
    /// The wall clock of its machine was set.
    ClockSet {
        life: u32,
        by_micros: i64,
    },
    Calm,
    /// A node may own something again.
    Lifted {
        wish: String,
    },
    Fault {
        by: By,
        call: &'static str,
        what: &'static str,
    },
    /// The append arrived at the store, which answered this.
    Append {
        by: By,
        append: Arc<Append>,
        answer: Result<Appended, Refused>,
    },
    /// The caller was told so.
    Acked {
        by: By,
        append: Arc<Append>,
        receipts: Vec<Receipt>,
    },
    /// Events that have joined their lanes.
    Joined {
        shard: Shard,
        events: Vec<Event>,
    },
    Seize {
        by: By,
        seize: Seize,
        answer: Result<Fence, Refused>,
    },
    Commit {
        by: By,
        commit: Arc<Commit>,
        answer: Result<Committed, Refused>,
    },
    Request {
        by: By,
        request: Request,
        answer: Result<u64, Refused>,
    },
    /// A document of the cluster was to be changed.
    Document {
        by: By,
        name: String,
        change: Change,
        answer: Result<(), Refused>,
    },
    /// Somebody was shown the end of a job.
    EndSeen {
        by: By,
        shard: Shard,
        number: JobNumber,
        end: Box<JobEnd>,
        result: Option<Bytes>,
    },
    /// The end of a job may be gone from now on.
    Forgot {
        by: By,
        shard: Shard,
        number: JobNumber,
    },
    /// A scheduled job was ended by its submitter.
    CancelledScheduled {
        by: By,
        shard: Shard,
        ticket: u64,
    },
    Start {
        life: u32,
        run: u64,
        seat: Seat,
        lanes: Vec<LaneStart>,
        remote: bool,
    },
    End {
        run: u64,
        how: String,
    },
}

/// The history of one world.
pub(crate) struct Log {
    clock: Arc<SimClock>,
    inner: Mutex<Inner>,
}

struct Inner {
    judge: Judge,
    text: Option<Vec<String>>,
    records: u64,
}

impl Log {
    pub(crate) fn new(clock: Arc<SimClock>, judge: Judge, keep_text: bool) -> Self {
        let inner = Inner { judge, text: keep_text.then(Vec::new), records: 0 };
        Self { clock, inner: Mutex::new(inner) }
    }

    pub(crate) fn push(&self, record: Record) {
        let now = self.clock.true_now();
        let mut inner = self.inner.lock();
        inner.records += 1;
        if let Some(text) = &mut inner.text {
            text.push(format!("{:>12} {record}", now.steady.0));
        }
        inner.judge.step(now, &record);
    }

    /// Looks at or changes what is judged.
    pub(crate) fn judge<A>(&self, look: impl FnOnce(&mut Judge) -> A) -> A {
        look(&mut self.inner.lock().judge)
    }

    pub(crate) fn take_text(&self) -> Vec<String> {
        self.inner.lock().text.take().unwrap_or_default()
    }

    pub(crate) fn records(&self) -> u64 {
        self.inner.lock().records
    }
}

fn shown(data: &[u8]) -> String {
    let text = String::from_utf8_lossy(&data[..data.len().min(60)]).into_owned();
    if data.len() > 60 { format!("{text}… {} bytes", data.len()) } else { text }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}{}", self.life, self.call, if self.late { " late" } else { "" })
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Began { life, skew: Skew { ahead, fast } } => {
                write!(f, "life {life} begins, {ahead} us ahead and {fast} ppm fast")
            }
            Self::Died { life, why } => write!(f, "life {life} ends: {why}"),
            Self::NotStarted { life, error } => write!(f, "life {life} could not start: {error}"),
            Self::Drained { life } => write!(f, "life {life} is drained"),
            Self::CutOff { life, length } => write!(f, "life {life} is cut off for {length:?}"),
            Self::Frozen { life, length } => write!(f, "life {life} is frozen for {length:?}"),
            Self::FailedOver { behind } => write!(f, "the store loses what it took in the last {behind:?}"),
            Self::ClockSet { life, by_micros } => {
                write!(f, "the wall clock of life {life} is set by {by_micros} us")
            }
            Self::Calm => write!(f, "faults end"),
            Self::Lifted { wish } => write!(f, "{wish} is lifted"),
            Self::Fault { by, call, what } => write!(f, "{by} {call}: {what}"),
            Self::Append { by, append, answer } => {
                write!(f, "{by} append {}", append.shard)?;
                for draft in &append.drafts {
                    write!(f, " [{:?} {}]", draft.key, shown(&draft.data))?;
                }
                match answer {
                    Ok(appended) => write!(f, " -> {:?}", appended.receipts),
                    Err(refused) => write!(f, " -> {refused:?}"),
                }
            }
            Self::Acked { by, receipts, .. } => {
                write!(f, "{by} append acknowledged: {} drafts", receipts.len())
            }
            Self::Joined { shard, events } => {
                write!(f, "joined {shard}:")?;
                events.iter().try_for_each(|event| {
                    write!(f, " {}={:?}/{:?} {}", event.id, event.key, event.seq, shown(&event.data))
                })
            }
            Self::Seize { by, seize, answer } => {
                write!(f, "{by} seize {} expects {:?} -> {answer:?}", seize.seat, seize.expect)
            }
            Self::Commit { by, commit, answer } => write_commit(f, *by, commit, answer),
            Self::Request { by, request, answer } => {
                write!(f, "{by} request {} {:?} -> {answer:?}", request.seat, request.op)
            }
            Self::Document { by, name, change, answer } => {
                write!(f, "{by} document {name} {change:?} -> {answer:?}")
            }
            Self::EndSeen { by, shard, number, end, result } => {
                let result = result.as_ref().map(|bytes| shown(bytes));
                write!(f, "{by} sees the end of {shard}/{number:?}: {:?} of {} {result:?}", end.end, end.id)
            }
            Self::Forgot { by, shard, number } => write!(f, "{by} forgets {shard}/{number:?}"),
            Self::CancelledScheduled { by, shard, ticket } => {
                write!(f, "{by} cancels scheduled {shard}/{ticket}")
            }
            Self::Start { life, run, seat, lanes, .. } => {
                write!(f, "life {life} starts run {run} of {seat}:")?;
                lanes.iter().try_for_each(|lane| {
                    write!(f, " {} {:?} attempt {} {}", lane.lane, lane.ids, lane.attempt, lane.fence)
                })
            }
            Self::End { run, how } => write!(f, "run {run} ends: {how}"),
        }
    }
}

fn write_commit(
    f: &mut fmt::Formatter<'_>,
    by: By,
    commit: &Commit,
    answer: &Result<Committed, Refused>,
) -> fmt::Result {
    let fence = commit.fence;
    write!(f, "{by} commit {} {}#{:x} v{}", commit.seat, fence.term, fence.nonce.0 >> 96, fence.version)?;
    write!(f, " passed {:?}", commit.passed.ids().map(|id| id.0).collect::<Vec<_>>())?;
    for ending in &commit.endings {
        write!(f, " {}={:?}", ending.id, ending.end)?;
    }
    for lane in &commit.lanes {
        let block =
            lane.record.as_ref().map(|record| (&record.block, record.head, record.attempts, record.crashes));
        write!(f, " lane {} {block:?} side {:?} unside {:?}", lane.lane, lane.side, lane.unside)?;
    }
    for emit in &commit.emits {
        write!(f, " emit {} {}", emit.stream, shown(&emit.draft.data))?;
    }
    for job in &commit.jobs {
        write!(f, " job {}={:?}", job.id, job.end)?;
    }
    write!(f, " states {} dead {}", commit.states.len(), commit.dead.len())?;
    write!(f, " revived {:?} forwarded {:?}", commit.revived, commit.forwarded)?;
    write!(f, " applied {:?} clean {} reset {:?}", commit.requests_applied, commit.clean, commit.reset)?;
    match answer {
        Ok(committed) => write!(f, " -> v{} floor {}", committed.fence.version, committed.floor),
        Err(refused) => write!(f, " -> {refused:?}"),
    }
}
