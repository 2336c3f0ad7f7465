//! Streams and processors as the store registers them.

use std::time::Duration;

use bytes::Bytes;

use crate::clock::Timestamp;
use crate::error::Refusal;
use crate::ids::{EventId, Incarnation, ProcessorId, Shard, StreamId, Term};
use crate::limits;

/// Which events of a lane run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// All of them.
    #[default]
    Queue,
    /// Only the newest generation.
    Latest,
}

/// What a stream is asked to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSettings {
    /// How many partitions. Default 16.
    pub partitions: u32,
    /// Which events run. Default queue.
    pub mode: Mode,
    /// How long events stay readable after every processor passed them. Default 7 days.
    pub keep: Duration,
    /// Most events waiting, over all partitions, at least one for each. Each partition gets an equal part, rounded up, and
    /// refuses what goes beyond its own part, however empty the others are. An event waits until the slowest processor has
    /// passed it and it is in no siding; of events that are set aside in sidings, [`limits::PAGE_MAX`] per partition and
    /// processor are counted at most. Default none.
    pub max_pending: Option<u64>,
    /// How long a dedup id is remembered: the same again within that time is the same event, unless `dedup_max` newer ids
    /// have come to its partition since. A change counts for events that are appended afterwards. Default: a day.
    pub dedup_window: Duration,
    /// Most dedup ids remembered per partition; beyond it the oldest go before their time, which is counted. Default
    /// 100,000.
    pub dedup_max: u64,
    /// How long dead letters are kept. Default 30 days.
    pub dead_keep: Duration,
    /// How long the end of a job is kept unless its submitter says otherwise. A change counts for jobs that are submitted
    /// afterwards. Default: a day.
    pub keep_done: Duration,
    /// The processor that answers jobs whose submitter names none, once it is registered. Default none: the only one.
    pub responder: Option<String>,
    /// How long a lane must have had no event before its end is forgotten, once its last event is gone by `keep`. Its next
    /// event is then its first: it has no `prev`, processors have no state for it, and in latest mode any generation is the
    /// newest. A lane that ever had an object is not forgotten. Default never: every key costs a little for ever.
    pub forget_lanes_after: Option<Duration>,
}

impl Default for StreamSettings {
    fn default() -> Self {
        let day = Duration::from_secs(24 * 60 * 60);
        Self {
            partitions: 16,
            mode: Mode::Queue,
            keep: 7 * day,
            max_pending: None,
            dedup_window: day,
            dedup_max: 100_000,
            dead_keep: 30 * day,
            keep_done: day,
            responder: None,
            forget_lanes_after: None,
        }
    }
}

impl StreamSettings {
    /// Refuses what no stream can be asked to be.
    pub fn check(&self) -> Result<(), Refusal> {
        self.check_form()?;
        for (field, length, max) in [
            ("keep", self.keep, limits::KEEP_MAX),
            ("dead_keep", self.dead_keep, limits::KEEP_MAX),
            ("keep_done", self.keep_done, limits::JOB_KEEP_MAX),
            ("forget_lanes_after", self.forget_lanes_after.unwrap_or_default(), limits::KEEP_MAX),
        ] {
            Refusal::check_longest(field, length, max)?;
        }
        Refusal::check_longest("dedup_window", self.dedup_window, limits::DEDUP_WINDOW_MAX)?;
        if self.dedup_window.is_zero() {
            return Err(Refusal::new("dedup_window", "0", "more than nothing"));
        }
        if !(1..=limits::DEDUP_IDS_MAX).contains(&self.dedup_max) {
            let limit = format!("1 to {}", limits::DEDUP_IDS_MAX);
            return Err(Refusal::new("dedup_max", self.dedup_max.to_string(), limit));
        }
        Ok(())
    }

    /// Refuses what no store can be. Streams that were made before there were limits of length pass: they are moved as
    /// they are, and corrected when they are next changed.
    pub fn check_form(&self) -> Result<(), Refusal> {
        if self.partitions == 0 || self.partitions > limits::PARTITIONS_MAX {
            let limit = format!("1 to {}", limits::PARTITIONS_MAX);
            return Err(Refusal::new("partitions", self.partitions.to_string(), limit));
        }
        if let Some(max) = self.max_pending.filter(|max| *max < u64::from(self.partitions)) {
            let limit =
                format!("at least {}, one per partition (leave it out for no bound)", self.partitions);
            return Err(Refusal::new("max_pending", max.to_string(), limit));
        }
        if self.keep_done.is_zero() {
            return Err(Refusal::new("keep_done", "0", "more than nothing, or no result could be read"));
        }
        if self.forget_lanes_after.is_some_and(|length| length.is_zero()) {
            return Err(Refusal::new(
                "forget_lanes_after",
                "0",
                "more than nothing (leave it out for never)",
            ));
        }
        if let Some(responder) = &self.responder {
            check_name("responder", responder)?;
        }
        Ok(())
    }

    /// How long the end of a job is kept whose submitter says nothing. A stream that was made before there was a limit
    /// keeps it as long as may be.
    pub fn job_keep(&self) -> Duration {
        self.keep_done.min(limits::JOB_KEEP_MAX)
    }

    /// Most events waiting in one partition.
    pub fn max_pending_of_partition(&self) -> Option<u64> {
        self.max_pending.map(|max| max.div_ceil(u64::from(self.partitions.max(1))))
    }

    /// Refuses a change of what never changes.
    pub fn check_change(&self, before: &Self) -> Result<(), Refusal> {
        self.check()?;
        if before.partitions != self.partitions {
            let limit = format!("{}, which never changes", before.partitions);
            return Err(Refusal::new("partitions", self.partitions.to_string(), limit));
        }
        if before.mode != self.mode {
            let limit = format!("{:?}, which never changes", before.mode);
            return Err(Refusal::new("mode", format!("{:?}", self.mode), limit));
        }
        Ok(())
    }
}

/// Refuses what can be no name of a stream or processor.
pub fn check_name(field: &'static str, name: &str) -> Result<(), Refusal> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if name.is_empty() || name.len() > limits::NAME_BYTES_MAX || !name.bytes().all(is_plain) {
        let limit = format!("1 to {} letters, digits, '.', '_' or '-'", limits::NAME_BYTES_MAX);
        return Err(Refusal::new(field, format!("{name:?}"), limit));
    }
    Ok(())
}

/// Where a processor begins on a stream that has events already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartAt {
    /// The first event there is.
    #[default]
    Beginning,
    /// The first event to come.
    End,
    /// The first event with this id or a higher one, in every partition.
    Id(EventId),
    /// The first event of this time or a later one.
    Time(Timestamp),
}

/// A stream as registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamInfo {
    /// Its number.
    pub id: StreamId,
    /// Its name.
    pub name: String,
    /// Grows with every change of its definition.
    pub version: u64,
    /// What it was asked to be.
    pub settings: StreamSettings,
    /// Version of the rule from keys to partitions.
    pub layout: u32,
    /// Its processors, by number.
    pub processors: Vec<ProcessorInfo>,
}

impl StreamInfo {
    /// The shard of a partition.
    pub fn shard(&self, partition: crate::ids::Partition) -> Shard {
        Shard { stream: self.id, partition }
    }
}

/// A processor as registered: trim respects it until it is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessorInfo {
    /// Its number.
    pub id: ProcessorId,
    /// Its name, unique in the store.
    pub name: String,
    /// Policy and handler, as the engine wrote them; opaque here.
    pub settings: Bytes,
}

/// What a shard keeps about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardInfo {
    /// Life of the store that wrote it last.
    pub incarnation: Incarnation,
    /// How often it was adopted.
    pub adoptions: u32,
    /// Layout it belongs to.
    pub layout: u32,
    /// Appends are refused for good: its keys moved.
    pub sealed: bool,
    /// First id it ever gives: above every parent's head.
    pub first_id: EventId,
    /// Lowest term it gives: above every parent's.
    pub first_term: Term,
    /// Last id given.
    pub head: EventId,
    /// Last schedule number given.
    pub scheduled: u64,
    /// Ids up to this are gone.
    pub trimmed: EventId,
    /// Time of its newest event; log time never goes back.
    pub time: Timestamp,
    /// Ids that were never given: (first, last) of each jump.
    pub gaps: Vec<(EventId, EventId)>,
}
