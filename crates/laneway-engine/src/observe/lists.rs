//! Lists of one processor over all partitions: lanes that are held up, dead letters, partitions it does not run on.

use bytes::Bytes;
use laneway_core::limits::PAGE_BYTES_MAX;
use laneway_core::store::{LaneSelect, Lanes, Query, Rows, SeatStatus};
use laneway_core::{Block, BlockKind, EventId, Key, LaneName, Partition, Seat};

use super::facts::{LookError, Looker, other_list, paused_by};
use super::lanes::{DeadLetter, HeldLane, OwnedSeat, StoppedSeat};

/// Rows read from one partition at a time.
const PAGE: usize = 1_000;
/// Dead letters read at a time: each may carry a payload of a megabyte.
const DEAD_PAGE: usize = 32;
/// Dead letters looked at for one page.
const EXAMINED_MAX: usize = 10_000;

/// A page of dead letters, by partition and id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetters {
    /// The letters.
    pub letters: Vec<DeadLetter>,
    /// Where to go on: behind this event of this partition; nothing when this is the last page.
    pub next: Option<(Partition, EventId)>,
}

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
                let views = self.store.lanes(Lanes { seat, select, siding: 1, states: false }).await?;
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
        let mut found: Vec<DeadLetter> = Vec::new();
        let mut after = None;
        loop {
            let page = self.dead_letters_after(processor, key, after, limit - found.len()).await?;
            found.extend(page.letters);
            after = page.next;
            if after.is_none() || found.len() >= limit {
                return Ok(found);
            }
        }
    }

    /// The same from a place on, one page at a time: at most `limit`, and no more than a bounded number is looked at, so
    /// that a page may be shorter, or empty, and still have a next one.
    pub async fn dead_letters_after(
        &self,
        processor: &str,
        key: Option<&Key>,
        after: Option<(Partition, EventId)>,
        limit: usize,
    ) -> Result<DeadLetters, LookError> {
        let mut seats = self.seats_of(processor).await?;
        if let Some(key) = key {
            let partitions = u32::try_from(seats.len()).expect("a stream has fewer partitions");
            seats.retain(|seat| seat.shard.partition == key.partition(partitions));
        }
        let (from, mut behind) = after.unwrap_or((Partition(0), EventId(0)));
        let (mut letters, mut examined, mut bytes) = (Vec::new(), 0, 0);
        for seat in seats.into_iter().filter(|seat| seat.shard.partition >= from) {
            let partition = seat.shard.partition;
            let mut after = if partition == from { std::mem::take(&mut behind) } else { EventId(0) };
            loop {
                let page = DEAD_PAGE.min(limit - letters.len());
                let Rows::Dead(rows) = self.store.query(Query::Dead(seat, after, page)).await? else {
                    return Err(other_list("dead letters").into());
                };
                let Some(last) = rows.last() else { break };
                after = last.event.id;
                examined += rows.len();
                bytes += rows.iter().map(|dead| dead.event.data.len()).sum::<usize>();
                let of_lane = rows.into_iter().filter(|dead| key.is_none() || dead.event.key.as_ref() == key);
                letters.extend(of_lane.map(|letter| DeadLetter { partition, letter }));
                if letters.len() >= limit || examined >= EXAMINED_MAX || bytes >= PAGE_BYTES_MAX {
                    return Ok(DeadLetters { letters, next: Some((partition, after)) });
                }
            }
        }
        Ok(DeadLetters { letters, next: None })
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

    /// The seats whose owner is this node, by stream, partition and processor.
    pub async fn owned_seats(&self) -> Result<Vec<OwnedSeat>, LookError> {
        let mut owned = Vec::new();
        for seat in self.nearby.owned() {
            let info = self.catalogue.stream_of(seat.shard.stream).await?;
            let Rows::Seats(_, views) = self.store.query(Query::Seats(seat.shard)).await? else {
                return Err(other_list("seats").into());
            };
            let view = views.into_iter().find(|view| view.processor == seat.processor);
            let name = info.processors.iter().find(|processor| processor.id == seat.processor);
            let (Some(view), Some(name)) = (view, name) else { continue };
            owned.push(OwnedSeat {
                stream: info.name.clone(),
                partition: seat.shard.partition,
                processor: name.name.clone(),
                term: view.progress.fence.term,
            });
        }
        Ok(owned)
    }

    /// The partitions on which a processor is paused or halted, by number.
    pub async fn stopped(&self, processor: &str) -> Result<Vec<StoppedSeat>, LookError> {
        let mut stopped = Vec::new();
        for seat in self.seats_of(processor).await? {
            let Rows::Seats(_, views) = self.store.query(Query::Seats(seat.shard)).await? else {
                return Err(other_list("seats").into());
            };
            let found = views.into_iter().find(|view| view.processor == seat.processor);
            let Some(view) = found.filter(|view| view.progress.status != SeatStatus::Run) else { continue };
            let (status, paused) = (view.progress.status, paused_by(&view)?);
            let failed = if status == SeatStatus::Halted { self.first_parked(seat).await? } else { None };
            stopped.push(StoppedSeat { partition: seat.shard.partition, status, paused, failed });
        }
        Ok(stopped)
    }

    async fn first_parked(&self, seat: Seat) -> Result<Option<(EventId, Bytes)>, LookError> {
        let select = LaneSelect::Blocked { kind: Some(BlockKind::Parked), after: None, limit: 1 };
        let views = self.store.lanes(Lanes { seat, select, siding: 1, states: false }).await?;
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
