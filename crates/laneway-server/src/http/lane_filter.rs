//! What an operator asks of all lanes that stand alike, up to a bound per call.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use laneway::Partition;
use laneway::core::store::RequestOp;
use laneway::core::{BlockKind, LaneName, Seat, StreamInfo};
use laneway::engine::lane::{Answer, Filed};
use laneway::engine::observe::HeldLane;
use laneway_client::wire::{self, LaneStatus};

use super::answer::Json;
use super::error::{Failure, Result};
use super::lane_list::{self, Place};
use super::lane_wishes::Wish;
use super::lanes::processor_of;
use super::paging;
use super::processors::APPLIED_WITHIN;
use super::under_way;
use crate::node::Node;
use crate::seam;

/// Most lanes of one call.
const LANES_MAX: usize = 1_000;
/// Requests that are filed side by side: they share the syncs of the store.
const FILED_AT_ONCE: usize = 64;

/// Asks the same of every lane that the filter finds.
pub(super) async fn ask(
    node: &Node,
    info: &Arc<StreamInfo>,
    wish: Wish,
    asked: &wire::LaneRequest,
) -> Result<(StatusCode, Json<wire::LaneAnswer>)> {
    let Some(filter) = asked.filter else { return Err(Failure::value("filter", "absent", "set")) };
    if asked.key.is_some() || asked.key_b64.is_some() || asked.reference.is_some() {
        return Err(Failure::value("filter", "set beside a key or ref", "the only one of them"));
    }
    let kind = kind_of(filter.status)?;
    let processor = processor_of(info, asked.processor.as_deref())?;
    // The same cursor for the same processor and filter, whatever is asked of the lanes.
    let list = format!("lanes of {processor} {:?}", filter.status);
    let after: Option<Place> = paging::place("cursor", &list, asked.cursor.as_ref().map(AsRef::as_ref))?;
    let after = after.map(|place| place.lane()).transpose()?;
    let looker = node.engine().looker();
    // One more than is changed, to know that there are more.
    let mut lanes = looker.held_lanes_after(&processor, Some(kind), after, LANES_MAX + 1).await?;
    let has_more = lanes.len() > LANES_MAX;
    lanes.truncate(LANES_MAX);
    let next = lanes
        .last()
        .filter(|_| has_more)
        .map(|last| paging::cursor(&list, &Place::new(last.partition, &last.record.lane)));
    let found = lanes.len() as u64;
    let stands: Vec<Partition> =
        looker.stopped(&processor).await?.iter().map(|seat| seat.partition).collect();
    let (_, id) = node.engine().catalogue().processor(&processor).await?;
    let ops = lanes.into_iter().filter_map(|lane| {
        let seat = Seat { shard: info.shard(lane.partition), processor: id };
        // Nothing that is let go moves while the whole processor stands.
        let is_let_go = matches!(wish, Wish::Resume | Wish::Retry) && kind != BlockKind::Paused;
        if is_let_go && stands.contains(&lane.partition) {
            return None;
        }
        Some((seat, op(wish, lane)?))
    });
    let ops: Vec<(Seat, RequestOp)> = ops.collect();
    let mut count = ops.len() as u64;
    if asked.dry_run {
        let told = wire::LaneAnswer { count, applied: false, refused: found - count, next };
        return Ok((StatusCode::OK, Json(told)));
    }
    let filed = file(node, ops).await?;
    let (refused, applied) = decided(node, filed).await?;
    count -= refused;
    let refused = found - count;
    let status = if applied { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(wire::LaneAnswer { count, applied, refused, next })))
}

/// The index that answers to a status.
fn kind_of(status: LaneStatus) -> Result<BlockKind> {
    lane_list::indexed(status).ok_or_else(|| {
        let told = lane_list::word(status);
        Failure::value("filter.status", format!("{told:?}"), "retrying, parked, paused or diverting")
    })
}

/// The request for one lane; nothing for a lane without a head, which can be neither retried nor skipped.
fn op(wish: Wish, lane: HeldLane) -> Option<RequestOp> {
    let head = match &lane.record.lane {
        LaneName::Key(_) => lane.head,
        LaneName::Event(id) => Some(*id),
    };
    let name = lane.record.lane;
    Some(match wish {
        Wish::Pause => RequestOp::Pause { lane: Some(name), by: under_way::by().into() },
        Wish::Resume => RequestOp::Resume { lane: Some(name) },
        Wish::Retry => RequestOp::Retry { lane: name, id: head? },
        Wish::Skip => RequestOp::Skip { lane: name, id: head? },
    })
}

async fn file(node: &Node, ops: Vec<(Seat, RequestOp)>) -> Result<Vec<Filed>> {
    let engine = node.engine();
    let filed = stream::iter(ops)
        .map(|(seat, op)| engine.operator().file(seat, engine.env().token(), op))
        .buffered(FILED_AT_ONCE);
    Ok(filed.try_collect().await?)
}

/// How many the owners refused, and whether they have decided about all.
async fn decided(node: &Node, filed: Vec<Filed>) -> Result<(u64, bool)> {
    let until = seam::steady().after(under_way::patience(APPLIED_WITHIN));
    let (mut refused, mut applied) = (0, true);
    for request in filed {
        let left = Duration::from_micros(until.0.saturating_sub(seam::steady().0));
        match node.engine().operator().answer(request, left).await? {
            Some(Answer::Refused(_)) => refused += 1,
            Some(Answer::Applied | Answer::Already) => {}
            None => applied = false,
        }
    }
    Ok((refused, applied))
}
