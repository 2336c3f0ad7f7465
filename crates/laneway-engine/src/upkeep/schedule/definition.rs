//! What a user asks for: when, what to do with overlapping and missed firings, and what to append.
//!
//! Says nothing about the present: see `timetable.rs` for the due times and `plan.rs` for what fires.

use std::time::Duration;

use laneway_core::limits::{DATA_BYTES_MAX, EVENTS_PER_APPEND_MAX, NAME_BYTES_MAX};
use laneway_core::store::Source;
use laneway_core::{Bytes, Draft, Headers, Key, Kind, Partition, Refusal, Timestamp};

use super::timetable::Timetable;

/// Most missed firings that one plan may fire: what one append can take.
pub const CATCH_UP_MAX: u32 = EVENTS_PER_APPEND_MAX as u32;

/// A named schedule, as it is stored.
///
/// A report every night, and one only for a night that was missed:
///
/// ```
/// use laneway_core::Timestamp;
/// use laneway_engine::upkeep::schedule::{CatchUp, Firing, Overlap, Past, Schedule, Spec, Timetable, plan};
///
/// let since = Timestamp(1_767_222_000_000_000); // 2026-01-01T00:00+01:00
/// let schedule = Schedule {
///     name: "nightly-report".into(),
///     spec: Spec::Cron { expression: "30 2 * * *".into(), zone: "Europe/Berlin".into() },
///     overlap: Overlap::Queue,
///     catch_up: CatchUp::Last,
///     paused: false,
///     since,
///     firing: Firing::new("reports"),
/// };
/// schedule.check()?;
///
/// let two_nights_later = Timestamp(since.0 + 48 * 3_600_000_000);
/// let past = Past { since: schedule.since, last_due: None };
/// let plan = plan(&Timetable::new(&schedule.spec)?, schedule.catch_up, past, two_nights_later);
/// let drafts: Vec<_> = plan.fire.iter().map(|due| schedule.draft(*due)).collect();
/// assert_eq!(drafts.len(), 1);
/// # Ok::<(), laneway_core::Refusal>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Its name, unique in the store.
    pub name: String,
    /// When it fires.
    pub spec: Spec,
    /// What happens when the firing before has not ended. Default: queue.
    pub overlap: Overlap,
    /// What happens to firings that nobody was there for. Default: the last one.
    pub catch_up: CatchUp,
    /// Whether due times are passed over until somebody resumes it. Default: no.
    pub paused: bool,
    /// When this spec took effect; nothing due earlier is a missed firing.
    pub since: Timestamp,
    /// What it appends.
    pub firing: Firing,
}

/// When a schedule fires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    /// First at the anchor, then again after every length of real time, whatever the clocks of a zone do.
    Every {
        /// From one due time to the next; 1 s to 10 years.
        length: Duration,
        /// The first due time; a past one only sets the beat.
        anchor: Timestamp,
    },
    /// At the times of a zone's clocks that match an expression.
    Cron {
        /// Minute, hour, day, month, weekday, with seconds before them if there are six fields.
        expression: String,
        /// An IANA time zone.
        zone: String,
    },
}

/// What happens when a firing is due and the one before has not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Overlap {
    /// It is appended without a key, so that the two may run side by side.
    Allow,
    /// It is passed over.
    Skip,
    /// It is appended to the lane of the one before and waits there for its turn.
    #[default]
    Queue,
}

/// What happens to due times that passed while nobody planned: a stopped cluster, a clock that jumped forward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CatchUp {
    /// They are passed over.
    None,
    /// The newest one fires, the others are passed over.
    #[default]
    Last,
    /// They fire, oldest first.
    All {
        /// Most that fire; of more, the oldest are passed over. 1 to 1,000.
        max: u32,
    },
}

/// What a schedule appends each time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Firing {
    /// The stream.
    pub stream: String,
    /// The lane. Default: one named after the schedule, or none where firings may overlap.
    pub key: Option<Key>,
    /// The event's type. Default: empty.
    pub kind: Kind,
    /// Its payload. Default: empty.
    pub data: Bytes,
    /// Its headers. Default: none.
    pub headers: Headers,
    /// Makes it a job that this processor answers. Default: a plain event.
    pub processor: Option<String>,
}

impl Firing {
    /// An empty event for a stream.
    pub fn new(stream: impl Into<String>) -> Self {
        Self {
            stream: stream.into(),
            key: None,
            kind: Kind::default(),
            data: Bytes::new(),
            headers: Headers::default(),
            processor: None,
        }
    }
}

impl Schedule {
    /// Refuses what could never fire, or never as asked.
    ///
    /// # Errors
    /// A refusal that names the field, its value and what it must be.
    pub fn check(&self) -> Result<(), Refusal> {
        check_name("name of a schedule", &self.name)?;
        check_name("stream", &self.firing.stream)?;
        if let Some(processor) = &self.firing.processor {
            check_name("processor", processor)?;
        }
        Refusal::check_max("data bytes", self.firing.data.len(), DATA_BYTES_MAX)?;
        self.catch_up.check()?;
        self.check_overlap()?;
        Timetable::new(&self.spec).map(drop)
    }

    /// An option that changes nothing is a misunderstanding, so it is refused where it would be one.
    fn check_overlap(&self) -> Result<(), Refusal> {
        match self.overlap {
            Overlap::Allow if self.firing.key.is_some() => {
                let limit = "queue or skip when there is a key, because a lane runs one event at a time";
                Err(Refusal::new("overlap", "allow", limit))
            }
            Overlap::Skip if self.firing.processor.is_none() => {
                let limit =
                    "queue or allow unless there is a processor, because only the end of a job is known";
                Err(Refusal::new("overlap", "skip", limit))
            }
            Overlap::Allow | Overlap::Skip | Overlap::Queue => Ok(()),
        }
    }

    /// Who numbers the firings at the store.
    ///
    /// It is the name alone. Due times grow from one life of a name to the next as well, and a node that still has
    /// the definition of before an edit cannot fire a due time a second time.
    pub fn source(&self) -> Source {
        Source::Named(Bytes::from(format!("schedule/{}", self.name)))
    }

    /// The event of one due time, numbered by it. A job still needs its responder.
    pub fn draft(&self, due: Timestamp) -> Draft {
        let mut draft = Draft::new(self.lane(), self.firing.kind.clone(), self.firing.data.clone());
        draft.headers = self.firing.headers.clone();
        draft.origin_seq = Some(due.0);
        draft
    }

    /// The partition of every firing.
    ///
    /// A shard remembers the numbers of a source for itself, so firings without a key must not be spread: the same due
    /// time would be new in another shard.
    pub fn partition(&self, partitions: u32) -> Partition {
        self.lane().or_else(|| self.named_lane()).map_or(Partition(0), |key| key.partition(partitions))
    }

    fn lane(&self) -> Option<Key> {
        match self.overlap {
            Overlap::Allow => self.firing.key.clone(),
            Overlap::Skip | Overlap::Queue => self.firing.key.clone().or_else(|| self.named_lane()),
        }
    }

    /// The lane named after the schedule; none if the name was never checked.
    fn named_lane(&self) -> Option<Key> {
        Key::new(self.name.clone()).ok()
    }
}

impl CatchUp {
    fn check(self) -> Result<(), Refusal> {
        match self {
            Self::All { max } if max == 0 || max > CATCH_UP_MAX => {
                Err(Refusal::new("catch_up max", max.to_string(), format!("1 to {CATCH_UP_MAX}")))
            }
            Self::None | Self::Last | Self::All { .. } => Ok(()),
        }
    }
}

/// The rule of the store for names of streams and processors, so that all names look alike.
fn check_name(field: &'static str, name: &str) -> Result<(), Refusal> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_plain) {
        let limit = format!("1 to {NAME_BYTES_MAX} letters, digits, '.', '_' or '-'");
        return Err(Refusal::new(field, format!("{name:?}"), limit));
    }
    Ok(())
}
