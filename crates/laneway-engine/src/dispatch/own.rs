//! How a seat comes to its owner: seized, its lanes looked through, run, and seized again when it must be.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{Append, LaneSelect, LaneView, Lanes, Owner, Progress, Query, Resume, Rows, Seize};
use laneway_core::{
    BlockKind, Nonce, Partition, Result, Seat as SeatId, Steady, StoreError, StreamInfo, Topic,
};
use tokio::sync::watch;

use super::carry::Ground;
use super::run::{Ended, Order, run};
use super::seat::{Names, Seat};
use super::settings::ProcessorSettings;
use crate::cluster::{NodeToken, Standing};
use crate::lane::{Records, is_held_up};
use crate::observe::{Report, report};
use crate::service::{contained, hint};

/// Wait before a seat that was lost, or could not be had, is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// Longer than any call of ours can be under way.
const UNSURE_FOR: Duration = Duration::from_secs(60);
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
    // The record may name this node although it does not hold the seat: nobody else could take it then.
    let mut unsure_until = None;
    loop {
        if next_order(&ground, seat, &mut order, &mut unsure_until).await != Some(Order::Run) {
            if unsure_until.is_some() {
                give_up(&ground, seat).await;
            }
            return;
        }
        unsure_until = Some(ground.env.steady().after(UNSURE_FOR));
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
            Ended::Drained => {
                announce(&ground, seat).await;
                // Unless it was told to stop at once, its last commit said that it is nobody's.
                if *order.borrow() != Order::Stop {
                    unsure_until = None;
                }
                continue;
            }
            Ended::HeldUp => {
                tracing::warn!(%seat, "a run did not stop in time: its seat moves without it");
                continue;
            }
            Ended::Unleased => {
                tracing::warn!(%seat, "a seat is dropped: this node has no lease to rely on");
                continue;
            }
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

/// Waits while the seat is to rest. As long as a call for it may still be under way, it is looked whether the seat came to
/// this node after all, and then it is let go: whoever is to have it waits for a living owner. Answers nothing when there is no
/// engine any more.
async fn next_order(
    ground: &Ground,
    seat: SeatId,
    order: &mut watch::Receiver<Order>,
    unsure_until: &mut Option<Steady>,
) -> Option<Order> {
    while let Some(until) = *unsure_until {
        order.has_changed().ok()?;
        if *order.borrow() != Order::Rest {
            return Some(*order.borrow());
        }
        give_up(ground, seat).await;
        if ground.env.steady() >= until {
            *unsure_until = None;
        }
        tokio::select! {
            biased;
            _ = order.changed() => {}
            () = ground.env.sleep(TRY_AGAIN) => {}
        }
    }
    order.wait_for(|order| *order != Order::Rest).await.map(|order| *order).ok()
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
    tracing::debug!(seat = %id, term = %resume.progress.fence.term, "a seat was taken");
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

/// Takes the seat as soon as this node has a lease and nobody who lives owns it.
async fn seize(ground: &Ground, seat: SeatId) -> Result<Resume> {
    let mut seen = 0;
    loop {
        let node = ground.standing.granted(&ground.env).await.node;
        let progress = progress_of(ground, seat).await?;
        if is_free(ground, &progress, node).await? {
            return seize_as(ground, seat, &progress, node.bytes()).await;
        }
        // Its owner is about to hand it over, or its lease about to end.
        tokio::select! {
            biased;
            point = hint(&ground.env, &*ground.wakeups, Topic::Seat(seat), seen) => seen = point,
            () = ground.env.sleep(TRY_AGAIN) => {}
        }
    }
}

async fn seize_as(ground: &Ground, seat: SeatId, from: &Progress, node: Bytes) -> Result<Resume> {
    let nonce = ground.env.nonce();
    let nobody = from.fence.term.0 == 0 && from.fence.nonce == Nonce(0);
    let expect = (!nobody).then_some(Owner { term: from.fence.term, nonce: from.fence.nonce });
    loop {
        let incarnation = ground.store.about().incarnation;
        let seize = Seize { seat, incarnation, expect: expect.clone(), nonce, node: node.clone() };
        match ground.store.seize(seize).await {
            Err(StoreError::Adopt { shard, stored, .. }) => ground.catalogue.adopt(shard, stored).await?,
            answer => return answer,
        }
    }
}

/// Whether a seat may be taken by this node. The document is asked for itself: a node that joined a moment ago is in no
/// list yet.
async fn is_free(ground: &Ground, progress: &Progress, node: NodeToken) -> Result<bool> {
    if matches!(ground.standing, Standing::Alone) || progress.clean || progress.fence.term.0 == 0 {
        return Ok(true);
    }
    match NodeToken::of_bytes(&progress.node) {
        Some(owner) if owner != node => Ok(!owner.lives(&*ground.documents).await?),
        Some(_) | None => Ok(true),
    }
}

/// Lets go of a seat that names this node and could not be handed over in good order: it is taken from ourselves for nobody, so that
/// whatever still runs here is fenced, and the next owner need not wait for our lease to end.
async fn give_up(ground: &Ground, seat: SeatId) {
    let Standing::Member(_) = &ground.standing else { return };
    let given_up = async {
        let progress = progress_of(ground, seat).await?;
        let ours = ground.standing.grant(ground.env.steady()).map(|grant| grant.node.bytes());
        if ours == Some(progress.node.clone()) && !progress.clean {
            seize_as(ground, seat, &progress, Bytes::new()).await?;
            announce(ground, seat).await;
        }
        Ok::<(), StoreError>(())
    };
    let given_up = tokio::select! {
        biased;
        given_up = given_up => given_up.map_err(|error| error.to_string()),
        () = ground.env.sleep(TRY_AGAIN) => Err("the store did not answer in time".to_owned()),
    };
    if let Err(error) = given_up {
        tracing::warn!(%seat, error, "a seat could not be given up: it is free when this node's lease ends");
    }
}

/// Whoever is to have the seat need not wait until it looks.
async fn announce(ground: &Ground, seat: SeatId) {
    if matches!(ground.standing, Standing::Alone) {
        return;
    }
    if let Err(error) = ground.wakeups.announce(Topic::Seat(seat)).await {
        tracing::debug!(%seat, %error, "nobody was told that a seat is free; they look by themselves");
    }
}

pub(super) async fn progress_of(ground: &Ground, seat: SeatId) -> Result<Progress> {
    let Rows::Seats(_, seats) = ground.store.query(Query::Seats(seat.shard)).await? else {
        return Err(StoreError::Corrupt { what: "the store answered another list than seats".to_owned() });
    };
    let found = seats.into_iter().find(|view| view.processor == seat.processor);
    let found = found.ok_or_else(|| StoreError::NotFound { what: format!("seat {seat}") })?;
    Ok(found.progress)
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
