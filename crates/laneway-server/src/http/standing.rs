//! Where an event stands, processor by processor.

use std::sync::Arc;

use laneway::core::store::{LaneSelect, Lanes, Query, Rows, SeatView};
use laneway::core::{Block, Key, LaneName, Seat, Shard, Store, StreamInfo};
use laneway::{EventId, Status};
use laneway_client::wire;

use super::error::Result;
use crate::node::Node;

/// The processors of one shard, as they stood when they were read.
pub(super) struct Seats {
    store: Arc<dyn Store>,
    shard: Shard,
    seats: Vec<(String, SeatView)>,
}

impl Seats {
    pub(super) async fn read(node: &Node, info: &StreamInfo, shard: Shard) -> Result<Self> {
        let store = Arc::clone(&node.engine().stores().store);
        let Rows::Seats(_, views) = store.query(Query::Seats(shard)).await? else {
            return Ok(Self { store, shard, seats: Vec::new() });
        };
        let named = info.processors.iter().filter_map(|processor| {
            let view = views.iter().find(|view| view.processor == processor.id)?;
            Some((processor.name.clone(), view.clone()))
        });
        let seats = named.collect();
        Ok(Self { store, shard, seats })
    }

    /// Where an event of this lane stands for each of them.
    pub(super) async fn statuses(&self, id: EventId, key: Option<&Key>) -> Result<Vec<wire::EventStatus>> {
        let mut statuses = Vec::with_capacity(self.seats.len());
        for (processor, view) in &self.seats {
            let (status, reason) = self.status(view, id, key).await?;
            let (processor, status) = (processor.clone(), status.to_string());
            statuses.push(wire::EventStatus { processor, status, reason });
        }
        Ok(statuses)
    }

    async fn status(
        &self,
        view: &SeatView,
        id: EventId,
        key: Option<&Key>,
    ) -> Result<(Status, Option<String>)> {
        let seat = Seat { shard: self.shard, processor: view.processor };
        let before = EventId(id.0.saturating_sub(1));
        if view.progress.window.contains(id) {
            // Passed: it has ended, or waits in the siding of its lane.
            let Rows::Sided(sided) = self.store.query(Query::Sided(seat, before, 1)).await? else {
                return Ok((Status::Waiting, None));
            };
            if sided.first().is_none_or(|(sided, _)| *sided != id) {
                return self.end(seat, id).await;
            }
        }
        let lane = key.map_or(LaneName::Event(id), |key| LaneName::Key(key.clone()));
        let select = LaneSelect::Names(vec![lane]);
        let lanes = self.store.lanes(Lanes { seat, select, siding: 1 }).await?;
        let lane = lanes.into_iter().next();
        let lane = lane.filter(|lane| lane.siding.first().copied().or(lane.record.head) == Some(id));
        Ok(match lane.and_then(|lane| lane.record.block) {
            Some(Block::Retry { cause, .. }) => (Status::Retrying, Some(text(&cause))),
            Some(Block::Parked { cause, .. }) => (Status::Parked, Some(text(&cause))),
            Some(Block::Running { .. } | Block::Claimed(_)) => (Status::Running, None),
            Some(Block::Hold { .. } | Block::Paused { .. } | Block::Diverting { .. }) | None => {
                (Status::Waiting, None)
            }
        })
    }

    /// How an event that has ended did: only ends other than `done` are written down.
    async fn end(&self, seat: Seat, id: EventId) -> Result<(Status, Option<String>)> {
        let before = EventId(id.0.saturating_sub(1));
        let ending = match self.store.query(Query::Endings(seat, before, 1)).await? {
            Rows::Endings(endings) => endings.into_iter().find(|ending| ending.id == id),
            _ => None,
        };
        Ok(match ending {
            Some(ending) => {
                (Status::Ended(ending.end), Some(text(&ending.reason)).filter(|reason| !reason.is_empty()))
            }
            None => (Status::Ended(laneway::Terminal::Done), None),
        })
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
