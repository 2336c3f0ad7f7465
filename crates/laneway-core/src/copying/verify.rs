//! Checking a copy: both stores are read again, and what was promised to be the same must be.

use std::collections::VecDeque;
use std::fmt;

use super::copy::streams;
use super::rows::{PageSize, wrong_kind};
use super::shard::{result, seats};
use crate::error::{Result, StoreError};
use crate::event::Event;
use crate::ids::{EventId, Partition, Seat, Shard};
use crate::key::Key;
use crate::store::import_bytes::Weighed;
use crate::store::{DeadLetter, EndRow, JobResult, LaneTail, Query, Rows, SeatView, Store, Versioned};
use crate::stream::{ShardInfo, StreamInfo};

/// How much was compared and found the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Events, each with its id, `prev`, `seq`, key, job and data.
    pub events: u64,
    /// Ends of lanes.
    pub lanes: u64,
    /// Ends of jobs.
    pub jobs: u64,
    /// States of lanes.
    pub states: u64,
    /// Dead letters.
    pub dead: u64,
}

impl fmt::Display for VerifyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { events, lanes, jobs, states, dead } = self;
        write!(
            f,
            "verified {events} events, {lanes} lanes, {jobs} job ends, {states} states and {dead} dead letters"
        )
    }
}

/// Compares what [`copy`](super::copy()) brought over, before anybody works on either store. The first difference is an error
/// that names its place.
///
/// Compared are definitions, progress of seats, events, ends of lanes, ends of jobs with the results that can still be read,
/// states and dead letters. Times by the steady clock are not: each store has its own.
pub async fn verify(from: &dyn Store, to: &dyn Store) -> Result<VerifyReport> {
    let mut report = VerifyReport::default();
    let copies = streams(to).await?;
    for stream in streams(from).await? {
        let is_same = |copy: &StreamInfo| {
            (copy.id, &copy.name, &copy.settings) == (stream.id, &stream.name, &stream.settings)
        };
        if !copies.iter().any(|copy| is_same(copy) && copy.processors == stream.processors) {
            return Err(differs(&format!("definition of stream {}", stream.name)));
        }
        for partition in 0..stream.settings.partitions {
            let shard = stream.shard(Partition(partition));
            let pair = Pair { from, to };
            pair.shard(shard, &mut report).await?;
            for processor in &stream.processors {
                pair.seat(Seat { shard, processor: processor.id }, &mut report).await?;
            }
        }
    }
    Ok(report)
}

/// Rows may hold what users wrote, so only their place is told.
fn differs(place: &str) -> StoreError {
    StoreError::Corrupt { what: format!("the copy differs from its source: {place}") }
}

/// A store and its copy.
#[derive(Clone, Copy)]
struct Pair<'a> {
    from: &'a dyn Store,
    to: &'a dyn Store,
}

impl Pair<'_> {
    async fn shard(self, shard: Shard, report: &mut VerifyReport) -> Result<()> {
        let (source, copy) = (seats(self.from, shard).await?, seats(self.to, shard).await?);
        let progress = |(info, views): &(ShardInfo, Vec<SeatView>)| {
            let place = |view: &SeatView| (view.processor, view.progress.window.clone(), view.request_no);
            (info.head, info.trimmed, views.iter().map(place).collect::<Vec<_>>())
        };
        if progress(&source) != progress(&copy) {
            return Err(differs(&format!("progress of shard {shard}")));
        }
        let events = List {
            place: format!("events of shard {shard}"),
            ask: &|last: Option<&Event>, limit| {
                Query::Events(shard, last.map_or(EventId(0), |event| event.id), limit)
            },
            open: |rows| if let Rows::Events(events) = rows { Some(events) } else { None },
            compared: |event| Event { hold_until: None, ..event },
        };
        report.events += self.compare(&events).await?;
        let tails = List {
            place: format!("lanes of shard {shard}"),
            ask: &|last: Option<&LaneTail>, limit| {
                Query::Tails(shard, last.map(|found| found.key.clone()), limit)
            },
            open: |rows| if let Rows::Tails(tails) = rows { Some(tails) } else { None },
            compared: |tail| tail,
        };
        report.lanes += self.compare(&tails).await?;
        let ends = List {
            place: format!("ends of jobs in shard {shard}"),
            ask: &|last: Option<&EndRow>, limit| {
                Query::Ends(shard, last.map_or(EventId(0), |found| found.end.id), limit)
            },
            open: |rows| if let Rows::Ends(ends) = rows { Some(ends) } else { None },
            compared: |mut row| {
                row.end.result = JobResult::None;
                row
            },
        };
        report.jobs += self.compare(&ends).await?;
        self.results(shard, &ends).await
    }

    /// Compares what can be read of the results of jobs.
    async fn results(self, shard: Shard, ends: &List<'_, EndRow>) -> Result<()> {
        let mut rows = Reader::new(self.from, ends);
        while let Some(row) = rows.next().await? {
            let id = row.end.id;
            if row.end.result == JobResult::None || self.has_same_result(shard, id).await? {
                continue;
            }
            // It may have come to the end of its life between the two looks.
            if result(self.from, shard, id).await?.is_some() {
                return Err(differs(&format!("result of the job of event {id} in shard {shard}")));
            }
        }
        Ok(())
    }

    async fn has_same_result(self, shard: Shard, id: EventId) -> Result<bool> {
        Ok(result(self.from, shard, id).await? == result(self.to, shard, id).await?)
    }

    async fn seat(self, seat: Seat, report: &mut VerifyReport) -> Result<()> {
        let states = List {
            place: format!("states of seat {seat}"),
            ask: &|last: Option<&(Key, Versioned)>, limit| {
                Query::States(seat, last.map(|(key, _)| key.clone()), limit)
            },
            open: |rows| if let Rows::States(states) = rows { Some(states) } else { None },
            compared: |state| state,
        };
        report.states += self.compare(&states).await?;
        let dead = List {
            place: format!("dead letters of seat {seat}"),
            ask: &|last: Option<&DeadLetter>, limit| {
                Query::Dead(seat, last.map_or(EventId(0), |found| found.event.id), limit)
            },
            open: |rows| if let Rows::Dead(dead) = rows { Some(dead) } else { None },
            compared: |letter| DeadLetter { event: Event { hold_until: None, ..letter.event }, ..letter },
        };
        report.dead += self.compare(&dead).await?;
        Ok(())
    }

    /// Compares a list row by row; answers how many rows both have.
    async fn compare<T: Weighed + Clone + PartialEq + Send>(self, list: &List<'_, T>) -> Result<u64> {
        let (mut source, mut copy) = (Reader::new(self.from, list), Reader::new(self.to, list));
        let mut count = 0;
        loop {
            let (one, other) = (source.next().await?, copy.next().await?);
            if one.clone().map(list.compared) != other.map(list.compared) {
                return Err(differs(&format!("{}, row {}", list.place, count + 1)));
            }
            if one.is_none() {
                return Ok(count);
            }
            count += 1;
        }
    }
}

/// A list that both have in the same order.
struct List<'a, T> {
    place: String,
    /// The page after this row.
    ask: &'a (dyn Fn(Option<&T>, usize) -> Query + Sync),
    /// The rows of its answer; `None` if it is of another kind.
    open: fn(Rows) -> Option<Vec<T>>,
    /// What of a row must be the same.
    compared: fn(T) -> T,
}

/// Reads a list row by row: pages of two stores need not be of one length.
struct Reader<'a, T> {
    store: &'a dyn Store,
    list: &'a List<'a, T>,
    page: VecDeque<T>,
    last: Option<T>,
    size: PageSize,
}

impl<'a, T: Weighed + Clone> Reader<'a, T> {
    fn new(store: &'a dyn Store, list: &'a List<'a, T>) -> Self {
        Self { store, list, page: VecDeque::new(), last: None, size: PageSize::new() }
    }

    async fn next(&mut self) -> Result<Option<T>> {
        if self.page.is_empty() {
            let rows = self.store.query((self.list.ask)(self.last.as_ref(), self.size.rows())).await?;
            let page = (self.list.open)(rows).ok_or_else(wrong_kind)?;
            self.size.learn(&page);
            self.last = page.last().cloned().or(self.last.take());
            self.page = page.into();
        }
        Ok(self.page.pop_front())
    }
}
