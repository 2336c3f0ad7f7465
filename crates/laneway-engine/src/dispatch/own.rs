//! How a seat comes to its owner: seized, its lanes looked through, run, and seized again when it must be.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{Append, LaneSelect, LaneView, Lanes, Owner, Query, Resume, Rows, Seize};
use laneway_core::{BlockKind, Nonce, Partition, Result, Seat as SeatId, StoreError, StreamInfo};
use tokio::sync::watch;

use super::carry::Ground;
use super::run::{Ended, Order, run};
use super::seat::{Names, Seat};
use super::settings::ProcessorSettings;
use crate::lane::{Records, is_held_up};
use crate::observe::{Report, report};
use crate::service::contained;

/// Wait before a seat that was lost, or could not be had, is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// Records read in one page.
const PAGE: usize = 1_000;

/// Owns a seat until the order to stop, or until there is no engine any more: takes it, runs it, and takes it again when it was lost.
pub(crate) async fn own(
    ground: Arc<Ground>,
    seat: SeatId,
    settings: Arc<ProcessorSettings>,
    stream: Arc<StreamInfo>,
    names: Names,
    mut order: watch::Receiver<Order>,
) {
    loop {
        if order.has_changed().is_err() || *order.borrow() != Order::Run {
            return;
        }
        let ownership = async {
            let taking = take(&ground, seat, &settings, &stream, names.clone());
            // Nothing runs yet: whoever wants it to end need not wait for a store that does not answer.
            match unless(order.clone(), |order| order != Order::Run, taking).await {
                Some(Ok(owned)) => run(Arc::clone(&ground), owned, order.clone()).await,
                Some(Err(error)) => Ended::Lost(error),
                None => Ended::Drained,
            }
        };
        let ended = Box::pin(contained("seat", ownership)).await.unwrap_or_else(Ended::Faulty);
        match ended {
            Ended::Drained => return,
            Ended::Restart => continue,
            Ended::Lost(StoreError::NotFound { what }) => {
                tracing::info!(%seat, what, "a seat is no more");
                return;
            }
            Ended::Lost(error) => {
                tracing::warn!(%seat, %error, "a seat was lost and is tried again");
                let text = error.to_string();
                let report = match error {
                    StoreError::Fenced { .. } => Some(Report::SeatFenced { error: &text }),
                    // A commit is refused by a fault of the engine alone (contract 1.15): somebody must know.
                    StoreError::Refused(_) => Some(Report::SeatFailed { fault: &text }),
                    _ => None,
                };
                if let Some(report) = report {
                    tell(&ground, seat, &names, report, order.clone()).await;
                }
            }
            Ended::Faulty(fault) => {
                tell(&ground, seat, &names, Report::SeatFailed { fault: &fault }, order.clone()).await;
            }
        }
        tokio::select! {
            biased;
            _ = order.changed() => {}
            () = ground.env.sleep(TRY_AGAIN) => {}
        }
    }
}

/// Does something, unless an order of this kind comes first.
async fn unless<A>(
    mut order: watch::Receiver<Order>,
    ends: impl Fn(Order) -> bool,
    work: impl Future<Output = A>,
) -> Option<A> {
    tokio::select! {
        biased;
        done = work => Some(done),
        // Without an engine nobody waits for it either.
        _ = order.wait_for(|order| ends(*order)) => None,
    }
}

/// Reports a lost seat. It is not ours any more, so this is an append of its own, and it may fail.
async fn tell(ground: &Ground, seat: SeatId, names: &Names, what: Report<'_>, order: watch::Receiver<Order>) {
    let Some(system) = names.reports_to else { return };
    let draft = report(what, &names.processor, &names.stream, seat.shard);
    let told = async {
        let info = ground.catalogue.stream_of(system).await.map_err(|error| error.to_string())?;
        let append = Append {
            shard: info.shard(Partition(0)),
            incarnation: ground.store.about().incarnation,
            layout: info.layout,
            origin: None,
            drafts: vec![draft],
            object: None,
        };
        ground.store.append(append).await.map(|_| ()).map_err(|error| error.to_string())
    };
    let told = unless(order, |order| order == Order::Stop, told).await;
    if let Err(error) = told.unwrap_or_else(|| Err("the store did not answer in time".to_owned())) {
        tracing::warn!(%seat, error, "a lost seat could not be reported");
    }
}

async fn take(
    ground: &Ground,
    id: SeatId,
    settings: &Arc<ProcessorSettings>,
    stream: &StreamInfo,
    names: Names,
) -> Result<Seat> {
    let resume = seize(ground, id).await?;
    let was_clean = resume.progress.clean;
    let (records, ahead) = records(ground, id).await?;
    let mut seat = Seat::new(id, Arc::clone(settings), stream, names, resume, records)?;
    if ground.demand.is_some() {
        seat.serve_workers();
    }
    let now = ground.env.now();
    ahead.iter().for_each(|view| seat.resume_ahead(view));
    // Claimed lanes are left alone: their workers settle them, or their leases end.
    // Of each siding the head, and whether another waits behind it.
    for kind in [BlockKind::Running, BlockKind::Diverting] {
        let mut after = None;
        loop {
            let select = LaneSelect::Blocked { kind: Some(kind), after: after.clone(), limit: PAGE };
            let views = ground.store.lanes(Lanes { seat: id, select, siding: 2 }).await?;
            let Some(last) = views.last() else { break };
            after = Some(last.record.lane.clone());
            views.iter().for_each(|view| seat.resume_lane(view, was_clean, now));
        }
    }
    Ok(seat)
}

async fn seize(ground: &Ground, seat: SeatId) -> Result<Resume> {
    let nonce = ground.env.nonce();
    let node = Bytes::from_static(b"node");
    loop {
        let expect = owner_of(ground, seat).await?;
        let incarnation = ground.store.about().incarnation;
        let seize = Seize { seat, incarnation, expect, nonce, node: node.clone() };
        match ground.store.seize(seize).await {
            Err(StoreError::Adopt { shard, stored, .. }) => ground.catalogue.adopt(shard, stored).await?,
            answer => return answer,
        }
    }
}

async fn owner_of(ground: &Ground, seat: SeatId) -> Result<Option<Owner>> {
    let Rows::Seats(_, seats) = ground.store.query(Query::Seats(seat.shard)).await? else {
        return Err(StoreError::Corrupt { what: "the store answered another list than seats".to_owned() });
    };
    let found = seats.into_iter().find(|view| view.processor == seat.processor);
    let found = found.ok_or_else(|| StoreError::NotFound { what: format!("seat {seat}") })?;
    let fence = found.progress.fence;
    let nobody = fence.term.0 == 0 && fence.nonce == Nonce(0);
    Ok((!nobody).then_some(Owner { term: fence.term, nonce: fence.nonce }))
}

/// The names of all lanes that have a record, unless they are too many, and those among them that are ahead.
async fn records(ground: &Ground, seat: SeatId) -> Result<(Records, Vec<LaneView>)> {
    let mut ahead = Vec::new();
    let (mut names, mut held_up) = (BTreeSet::new(), BTreeSet::new());
    let mut after = None;
    while names.len() <= crate::lane::KNOWN_MAX {
        let select = LaneSelect::Blocked { kind: None, after: after.clone(), limit: PAGE };
        let views = ground.store.lanes(Lanes { seat, select, siding: 1 }).await?;
        let Some(last) = views.last() else { return Ok((Records::new(Some(names), held_up), ahead)) };
        after = Some(last.record.lane.clone());
        ahead.extend(views.iter().filter(|view| view.record.ahead.is_some()).cloned());
        held_up.extend(
            views.iter().filter(|view| is_held_up(&view.record)).map(|view| view.record.lane.clone()),
        );
        names.extend(views.into_iter().map(|view| view.record.lane));
    }
    Ok((Records::new(None, BTreeSet::new()), ahead))
}
