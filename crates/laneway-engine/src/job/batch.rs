//! Batch ids: the jobs of one submission in one text, which carries their places so that no index is needed.
//!
//! Jobs of one partition in one call have consecutive numbers and one time, so a partition is mostly one range; a
//! duplicate of an earlier job is a range of its own. The order of the submission is not kept: jobs come by partition
//! and number.

use std::fmt;
use std::str::FromStr;

use laneway_core::limits::{NUMBER_MAX, PAGE_MAX, PARTITIONS_MAX, STREAMS_MAX};
use laneway_core::{EventId, JobId, JobNumber, Partition, Refusal, Shard, StreamId, Timestamp};

use super::text::{Reader, Writer};

const VERSION: u8 = 1;
/// Most jobs of one batch.
pub(super) const JOBS_MAX: usize = PAGE_MAX;

/// The name of all jobs of one submission.
///
/// ```
/// use laneway_core::{EventId, JobId, JobNumber, Partition, Shard, StreamId, Timestamp};
/// use laneway_engine::job::BatchId;
/// let shard = Shard { stream: StreamId(1), partition: Partition(3) };
/// let job = |id| JobId::new(Timestamp(1_794_700_000_000_000), shard, JobNumber::Event(EventId(id)));
/// let batch = BatchId::of([job(7), job(8), job(9)]).unwrap();
/// let text = batch.to_string();
/// assert_eq!(text.parse::<BatchId>().unwrap().ids(), [job(7), job(8), job(9)]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BatchId {
    stream: StreamId,
    ranges: Vec<Range>,
}

/// Jobs with consecutive numbers that were made at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Range {
    partition: u32,
    kind: NumberKind,
    first: u64,
    count: u64,
    millis: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum NumberKind {
    Event,
    Schedule,
}

impl BatchId {
    /// The batch of these jobs; nothing if there are none, too many, or of several streams.
    pub fn of(ids: impl IntoIterator<Item = JobId>) -> Option<Self> {
        let mut ids: Vec<JobId> = ids.into_iter().collect();
        let stream = ids.first()?.shard().stream;
        if ids.len() > JOBS_MAX || ids.iter().any(|id| id.shard().stream != stream) {
            return None;
        }
        ids.sort_unstable_by_key(|id| (id.shard(), id.number(), *id));
        ids.dedup();
        let mut ranges: Vec<Range> = Vec::new();
        for id in ids {
            let (kind, first) = match id.number() {
                JobNumber::Event(id) => (NumberKind::Event, id.0),
                JobNumber::Schedule(number) => (NumberKind::Schedule, number),
            };
            let next =
                Range { partition: id.shard().partition.0, kind, first, count: 1, millis: millis_of(id) };
            match ranges.last_mut() {
                Some(last) if last.goes_on_with(next) => last.count += 1,
                _ => ranges.push(next),
            }
        }
        Some(Self { stream, ranges })
    }

    /// Its jobs, by partition and number.
    pub fn ids(&self) -> Vec<JobId> {
        let ids = self.ranges.iter().flat_map(|range| {
            let shard = Shard { stream: self.stream, partition: Partition(range.partition) };
            (range.first..range.first + range.count).map(move |number| {
                let number = match range.kind {
                    NumberKind::Event => JobNumber::Event(EventId(number)),
                    NumberKind::Schedule => JobNumber::Schedule(number),
                };
                JobId::new(Timestamp(range.millis * 1_000), shard, number)
            })
        });
        ids.collect()
    }

    /// How many jobs it has.
    pub fn len(&self) -> usize {
        let count: u64 = self.ranges.iter().map(|range| range.count).sum();
        usize::try_from(count).expect("checked when the batch was made")
    }

    /// Never: a batch has at least one job.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    fn read(text: &str) -> Option<Self> {
        let mut from = Reader::new(text, VERSION)?;
        let stream = StreamId(from.small().filter(|stream| *stream <= STREAMS_MAX)?);
        let begin = from.number()?;
        let count = usize::try_from(from.number()?).ok().filter(|count| (1..=JOBS_MAX).contains(count))?;
        let mut ranges = Vec::new();
        for _ in 0..count {
            let place = from.number()?;
            let partition = u32::try_from(place >> 1).ok().filter(|partition| *partition < PARTITIONS_MAX)?;
            let kind = if place & 1 == 0 { NumberKind::Event } else { NumberKind::Schedule };
            let millis = begin.checked_add(from.number()?).filter(|millis| *millis < 1 << 48)?;
            let (first, count) = (from.number()?, from.number()?);
            first.checked_add(count).filter(|end| count > 0 && *end <= NUMBER_MAX)?;
            ranges.push(Range { partition, kind, first, count, millis });
        }
        from.end()?;
        let total = ranges.iter().try_fold(0u64, |total, range| total.checked_add(range.count))?;
        (total <= JOBS_MAX as u64).then_some(Self { stream, ranges })
    }
}

impl Range {
    fn goes_on_with(&self, next: Self) -> bool {
        (self.partition, self.kind, self.millis) == (next.partition, next.kind, next.millis)
            && self.first + self.count == next.first
    }
}

/// When a job was made, as its id tells.
pub(super) fn millis_of(id: JobId) -> u64 {
    id.created().as_millis()
}

impl fmt::Display for BatchId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Writer::new(VERSION);
        let begin = self.ranges.iter().map(|range| range.millis).min().unwrap_or(0);
        text.number(u64::from(self.stream.0));
        text.number(begin);
        text.number(self.ranges.len() as u64);
        for range in &self.ranges {
            text.number(u64::from(range.partition) << 1 | u64::from(range.kind == NumberKind::Schedule));
            text.number(range.millis - begin);
            text.number(range.first);
            text.number(range.count);
        }
        formatter.write_str(&text.text())
    }
}

impl FromStr for BatchId {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::read(text).ok_or_else(|| Refusal::new("batch", text, "a batch id as a submission answers it"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn jobs() -> impl Strategy<Value = Vec<JobId>> {
        let one =
            (0..3u32, any::<bool>(), 1..40u64, 0..3u64).prop_map(|(partition, scheduled, number, millis)| {
                let shard = Shard { stream: StreamId(9), partition: Partition(partition) };
                let number =
                    if scheduled { JobNumber::Schedule(number) } else { JobNumber::Event(EventId(number)) };
                JobId::new(Timestamp((1_794_700_000_000 + millis) * 1_000), shard, number)
            });
        prop::collection::vec(one, 1..60)
    }

    proptest! {
        #[test]
        fn batch_names_its_jobs_and_no_others(jobs in jobs()) {
            let batch = BatchId::of(jobs.clone()).expect("some jobs of one stream");
            let read: BatchId = batch.to_string().parse().expect("it was written so");
            let (mut found, mut expected) = (read.ids(), jobs);
            found.sort_unstable();
            expected.sort_unstable();
            expected.dedup();
            prop_assert_eq!(read.len(), expected.len());
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn thousand_jobs_of_one_call_are_a_short_text() {
        let job = |number: u64| {
            let shard = Shard {
                stream: StreamId(4),
                partition: Partition(u32::try_from(number % 16).expect("small")),
            };
            JobId::new(
                Timestamp(1_794_700_000_000_000),
                shard,
                JobNumber::Event(EventId(5_000_000 + number / 16)),
            )
        };
        let batch = BatchId::of((0..1_000).map(job)).expect("a thousand");
        assert_eq!((batch.len(), batch.ranges.len()), (1_000, 16));
        assert!(batch.to_string().len() < 200, "{batch}");
    }

    #[test]
    fn text_that_is_no_batch_is_refused_by_its_value() {
        for text in ["", "abc", "0190b3a4-0000-7000-8000-000000000000"] {
            let refused = text.parse::<BatchId>().expect_err("no batch").to_string();
            assert_eq!(refused, format!("batch is {text}, must be a batch id as a submission answers it"));
        }
        let mut huge = Writer::new(VERSION);
        for number in [1, 0, 1, 0, 0, 1, NUMBER_MAX - 1] {
            huge.number(number);
        }
        assert!(huge.text().parse::<BatchId>().is_err(), "more jobs than a batch can have");
    }
}
