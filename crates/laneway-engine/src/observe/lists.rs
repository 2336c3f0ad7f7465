//! Lists of one processor over all partitions: lanes that are held up, dead letters, partitions it does not run on.

use bytes::Bytes;
use laneway_core::store::{LaneSelect, Lanes, Query, Rows, SeatStatus};
use laneway_core::{Block, BlockKind, EventId, Key, LaneName, Partition, Seat};

use super::facts::{LookError, Looker, other_list};
use super::lanes::{DeadLetter, HeldLane, StoppedSeat};

/// Rows read from one partition at a time.
const PAGE: usize = 1_000;

impl Looker {
    /// Lanes that a processor cannot go on with, by partition and name: all, or those held up in one way. At most
    /// `limit`.
    pub async fn held_lanes(
        &self,
        processor: &str,
        kind: Option<BlockKind>,
        limit: usize,
    ) -> Result<Vec<HeldLane>, LookError> {
        self.held_lanes_after(processor, kind, None, limit).await
    }

    /// The same from a place on: behind this lane of this partition.
    pub async fn held_lanes_after(
        &self,
        processor: &str,
        kind: Option<BlockKind>,
        after: Option<(Partition, LaneName)>,
        limit: usize,
    ) -> Result<Vec<HeldLane>, LookError> {
        let (from, mut behind) = after.map_or((Partition(0), None), |(from, lane)| (from, Some(lane)));
        let mut held = Vec::new();
        for seat in self.seats_of(processor).await?.into_iter().filter(|seat| seat.shard.partition >= from) {
            let mut after = behind.take();
            while held.len() < limit {
                let select = LaneSelect::Blocked { kind, after, limit: PAGE.min(limit - held.len()) };
                let views = self.store.lanes(Lanes { seat, select, siding: 1 }).await?;
                let Some(last) = views.last() else { break };
                after = Some(last.record.lane.clone());
                held.extend(views.into_iter().map(|view| HeldLane {
                    partition: seat.shard.partition,
                    head: view.siding.first().copied().or(view.record.head),
                    record: view.record,
                }));
            }
        }
        Ok(held)
    }

    /// Dead letters of a processor, by partition and id. At most `limit`.
    pub async fn dead_letters(&self, processor: &str, limit: usize) -> Result<Vec<DeadLetter>, LookError> {
        self.dead_letters_of(processor, None, limit).await
    }

    /// Dead letters of a processor, or of one lane of it, by partition and id. At most `limit`.
    pub async fn dead_letters_of(
        &self,
        processor: &str,
        key: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, LookError> {
        let mut seats = self.seats_of(processor).await?;
        if let Some(key) = key {
            let partitions = u32::try_from(seats.len()).expect("a stream has fewer partitions");
            seats.retain(|seat| seat.shard.partition == key.partition(partitions));
        }
        let mut dead = Vec::new();
        for seat in seats {
            let mut after = EventId(0);
            while dead.len() < limit {
                let page = if key.is_some() { PAGE } else { PAGE.min(limit - dead.len()) };
                let query = Query::Dead(seat, after, page);
                let Rows::Dead(letters) = self.store.query(query).await? else {
                    return Err(other_list("dead letters").into());
                };
                let Some(last) = letters.last() else { break };
                after = last.event.id;
                let partition = seat.shard.partition;
                let of_lane =
                    letters.into_iter().filter(|letter| key.is_none() || letter.event.key.as_ref() == key);
                dead.extend(of_lane.map(|letter| DeadLetter { partition, letter }));
            }
        }
        dead.truncate(limit);
        Ok(dead)
    }

    /// One dead letter of a processor, if it is one.
    pub async fn dead_letter(
        &self,
        processor: &str,
        partition: Partition,
        id: EventId,
    ) -> Result<Option<DeadLetter>, LookError> {
        let seats = self.seats_of(processor).await?;
        let Some(seat) = seats.into_iter().find(|seat| seat.shard.partition == partition) else {
            return Ok(None);
        };
        let query = Query::Dead(seat, EventId(id.0.saturating_sub(1)), 1);
        let Rows::Dead(letters) = self.store.query(query).await? else {
            return Err(other_list("dead letters").into());
        };
        let found = letters.into_iter().find(|letter| letter.event.id == id);
        Ok(found.map(|letter| DeadLetter { partition, letter }))
    }

    /// The partitions on which a processor is paused or halted, by number.
    pub async fn stopped(&self, processor: &str) -> Result<Vec<StoppedSeat>, LookError> {
        let mut stopped = Vec::new();
        for seat in self.seats_of(processor).await? {
            let Rows::Seats(_, views) = self.store.query(Query::Seats(seat.shard)).await? else {
                return Err(other_list("seats").into());
            };
            let found = views.into_iter().find(|view| view.processor == seat.processor);
            let Some(status) = found.map(|view| view.progress.status).filter(|now| *now != SeatStatus::Run)
            else {
                continue;
            };
            let failed = if status == SeatStatus::Halted { self.first_parked(seat).await? } else { None };
            stopped.push(StoppedSeat { partition: seat.shard.partition, status, failed });
        }
        Ok(stopped)
    }

    async fn first_parked(&self, seat: Seat) -> Result<Option<(EventId, Bytes)>, LookError> {
        let select = LaneSelect::Blocked { kind: Some(BlockKind::Parked), after: None, limit: 1 };
        let views = self.store.lanes(Lanes { seat, select, siding: 1 }).await?;
        Ok(views.into_iter().next().and_then(|view| match view.record.block {
            Some(Block::Parked { cause, .. }) => Some((view.record.head?, cause)),
            _ => None,
        }))
    }

    async fn seats_of(&self, processor: &str) -> Result<Vec<Seat>, LookError> {
        let (info, processor) = self.catalogue.processor(processor).await?;
        let partitions = (0..info.settings.partitions).map(Partition);
        Ok(partitions.map(|partition| Seat { shard: info.shard(partition), processor }).collect())
    }
}
