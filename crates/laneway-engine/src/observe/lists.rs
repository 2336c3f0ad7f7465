//! Lists of one processor over all partitions: lanes that are held up, dead letters.

use laneway_core::store::{LaneSelect, Lanes, Query, Rows};
use laneway_core::{BlockKind, EventId, LaneName, Partition, Seat};

use super::facts::{LookError, Looker, other_list};
use super::lanes::{DeadLetter, HeldLane};

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
        let mut held = Vec::new();
        for seat in self.seats_of(processor).await? {
            let mut after: Option<LaneName> = None;
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
        let mut dead = Vec::new();
        for seat in self.seats_of(processor).await? {
            let mut after = EventId(0);
            while dead.len() < limit {
                let query = Query::Dead(seat, after, PAGE.min(limit - dead.len()));
                let Rows::Dead(letters) = self.store.query(query).await? else {
                    return Err(other_list("dead letters").into());
                };
                let Some(last) = letters.last() else { break };
                after = last.event.id;
                let partition = seat.shard.partition;
                dead.extend(letters.into_iter().map(|letter| DeadLetter { partition, letter }));
            }
        }
        Ok(dead)
    }

    async fn seats_of(&self, processor: &str) -> Result<Vec<Seat>, LookError> {
        let (info, processor) = self.catalogue.processor(processor).await?;
        let partitions = (0..info.settings.partitions).map(Partition);
        Ok(partitions.map(|partition| Seat { shard: info.shard(partition), processor }).collect())
    }
}
