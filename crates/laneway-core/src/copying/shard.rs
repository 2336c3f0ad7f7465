//! Everything of one shard that belongs to no seat: events, lane ends, objects, names, schedule, ends of jobs.

use bytes::Bytes;

use super::rows::{Kind, Written, copy_rows, wrong_kind};
use super::shift::Shift;
use crate::error::{Result, StoreError};
use crate::ids::{EventId, Shard};
use crate::job::JobNumber;
use crate::store::{Define, EndRow, Import, JobResult, JobState, Jobs, Query, Rows, SeatView, Stash, Store};
use crate::stream::ShardInfo;

/// What the shard says of itself and of its seats.
pub(super) async fn seats(store: &dyn Store, shard: Shard) -> Result<(ShardInfo, Vec<SeatView>)> {
    match store.query(Query::Seats(shard)).await? {
        Rows::Seats(info, seats) => Ok((info, seats)),
        _ => Err(wrong_kind()),
    }
}

/// What was written of a shard.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ShardWritten {
    pub(super) events: Written,
    pub(super) ends: Written,
    pub(super) rest: Written,
}

/// One shard on its way.
pub(super) struct ShardCopy<'a> {
    pub(super) from: &'a dyn Store,
    pub(super) to: &'a dyn Store,
    pub(super) shard: Shard,
    pub(super) shift: Shift,
}

impl ShardCopy<'_> {
    /// Copies it. The target's stream is there and this shard of it is being imported.
    pub(super) async fn run(&self, info: &ShardInfo, seats: Vec<SeatView>) -> Result<ShardWritten> {
        let shard = self.shard;
        let begin = Import::Shard(shard, Rows::Seats(info.clone(), seats));
        self.to.define(Define::Import(begin)).await?;
        let events = self.events().await?;
        let mut rest = self.tails(info.trimmed).await?;
        rest += self.objects().await?;
        rest += self.names().await?;
        rest += self.schedule().await?;
        let ends = self.ends().await?;
        if let Rows::Counts(counts) = self.from.query(Query::Counts(shard)).await?
            && counts.expired > 0
        {
            self.to.define(Define::Import(Import::Shard(shard, Rows::Counts(counts)))).await?;
        }
        Ok(ShardWritten { events, ends, rest })
    }

    async fn events(&self) -> Result<Written> {
        let (shard, shift) = (self.shard, self.shift);
        let kind = Kind {
            ask: &|last: Option<&crate::Event>, limit| {
                Query::Events(shard, last.map_or(EventId(0), |event| event.id), limit)
            },
            open: |rows| if let Rows::Events(events) = rows { Some(events) } else { None },
            give: &|events| Import::Shard(shard, Rows::Events(events)),
        };
        copy_rows(self.from, self.to, kind, |event| Some(shift.event(event.clone()))).await
    }

    /// Ends of lanes whose last event is gone; the others follow from the events.
    async fn tails(&self, trimmed: EventId) -> Result<Written> {
        let shard = self.shard;
        let kind = Kind {
            ask: &|last: Option<&crate::store::LaneTail>, limit| {
                Query::Tails(shard, last.map(|found| found.key.clone()), limit)
            },
            open: |rows| if let Rows::Tails(tails) = rows { Some(tails) } else { None },
            give: &|tails| Import::Shard(shard, Rows::Tails(tails)),
        };
        copy_rows(self.from, self.to, kind, |found| (found.tail.id <= trimmed).then(|| found.clone())).await
    }

    async fn objects(&self) -> Result<Written> {
        let shard = self.shard;
        let kind = Kind {
            ask: &|last: Option<&crate::store::ObjectRow>, limit| {
                Query::Objects(shard, last.map(|found| found.key.clone()), limit)
            },
            open: |rows| if let Rows::Objects(objects) = rows { Some(objects) } else { None },
            give: &|objects| Import::Shard(shard, Rows::Objects(objects)),
        };
        copy_rows(self.from, self.to, kind, |row| Some(row.clone())).await
    }

    /// Dedup ids and sources.
    async fn names(&self) -> Result<Written> {
        let (shard, shift) = (self.shard, self.shift);
        let dedup = Kind {
            ask: &|last: Option<&crate::store::DedupRow>, limit| {
                Query::Dedup(shard, last.map(|found| found.name.clone()), limit)
            },
            open: |rows| if let Rows::Dedup(entries) = rows { Some(entries) } else { None },
            give: &|entries| Import::Shard(shard, Rows::Dedup(entries)),
        };
        let sources = Kind {
            ask: &|last: Option<&crate::store::SourceRow>, limit| {
                Query::Sources(shard, last.map(|found| found.source.clone()), limit)
            },
            open: |rows| if let Rows::Sources(sources) = rows { Some(sources) } else { None },
            give: &|sources| Import::Shard(shard, Rows::Sources(sources)),
        };
        let mut written = copy_rows(self.from, self.to, dedup, |row| Some(shift.dedup(row.clone()))).await?;
        written += copy_rows(self.from, self.to, sources, |row| Some(row.clone())).await?;
        Ok(written)
    }

    /// Drafts that wait, and what became of jobs that waited.
    async fn schedule(&self) -> Result<Written> {
        let (shard, shift) = (self.shard, self.shift);
        let drafts = Kind {
            ask: &|last: Option<&crate::store::ScheduledRow>, limit| {
                Query::Scheduled(shard, last.map_or(0, |found| found.ticket), limit)
            },
            open: |rows| if let Rows::Scheduled(drafts) = rows { Some(drafts) } else { None },
            give: &|drafts| Import::Shard(shard, Rows::Scheduled(drafts)),
        };
        let tickets = Kind {
            ask: &|last: Option<&crate::store::TicketRow>, limit| {
                Query::Tickets(shard, last.map_or(0, |found| found.ticket), limit)
            },
            open: |rows| if let Rows::Tickets(tickets) = rows { Some(tickets) } else { None },
            give: &|tickets| Import::Shard(shard, Rows::Tickets(tickets)),
        };
        let mut written =
            copy_rows(self.from, self.to, drafts, |row| Some(shift.scheduled(row.clone()))).await?;
        written += copy_rows(self.from, self.to, tickets, |row| Some(row.clone())).await?;
        Ok(written)
    }

    /// Ends of jobs. Chunks of large results go first, as they do when a job ends.
    async fn ends(&self) -> Result<Written> {
        let shard = self.shard;
        let kind = Kind {
            ask: &|last: Option<&EndRow>, limit| {
                Query::Ends(shard, last.map_or(EventId(0), |found| found.end.id), limit)
            },
            open: |rows| if let Rows::Ends(ends) = rows { Some(ends) } else { None },
            give: &|ends| Import::Shard(shard, Rows::Ends(ends)),
        };
        self.stash_all().await?;
        copy_rows(self.from, self.to, kind, |row| Some(row.clone())).await
    }

    async fn stash_all(&self) -> Result<()> {
        let (mut after, mut size) = (EventId(0), super::rows::PageSize::new());
        loop {
            let Rows::Ends(ends) = self.from.query(Query::Ends(self.shard, after, size.rows())).await? else {
                return Err(wrong_kind());
            };
            size.learn(&ends);
            let Some(last) = ends.last() else { return Ok(()) };
            after = last.end.id;
            for row in &ends {
                if let JobResult::Stashed { chunks, .. } = row.end.result
                    && chunks > 0
                {
                    self.stash(row, chunks as usize).await?;
                }
            }
        }
    }

    /// One large result, cut into as many chunks as it had: its end names their number.
    async fn stash(&self, row: &EndRow, chunks: usize) -> Result<()> {
        let JobResult::Stashed { nonce, .. } = row.end.result else { return Ok(()) };
        let (shard, id) = (self.shard, row.end.id);
        let Some(result) = result(self.from, shard, id).await? else {
            let what = format!("result of event {id} in shard {shard} cannot be read although its job ended");
            return Err(StoreError::Corrupt { what });
        };
        let (whole, longer) = (result.len() / chunks, result.len() % chunks);
        let mut rest = result;
        for index in 0..chunks {
            let bytes = rest.split_to(whole + usize::from(index < longer));
            let index = u32::try_from(index).expect("it is below a number of this size");
            self.to.stash(Stash { shard, id, nonce, index, bytes }).await?;
        }
        Ok(())
    }
}

/// The result of a job, while it can be read.
pub(super) async fn result(store: &dyn Store, shard: Shard, id: EventId) -> Result<Option<Bytes>> {
    let get = Jobs::Get { shard, numbers: vec![JobNumber::Event(id)], results: true };
    let found = store.jobs(get).await?.into_iter().next();
    Ok(match found.map(|view| view.state) {
        Some(JobState::Ended { result, .. }) => result,
        _ => None,
    })
}
