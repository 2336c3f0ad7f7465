//! How a seat comes to its owner: seized, its lanes looked through, run, and seized again when it must be.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{LaneSelect, LaneView, Lanes, Owner, Progress, Query, Resume, Rows, Seize};
use laneway_core::{BlockKind, Incarnation, Nonce, Result, Seat as SeatId, StoreError, StreamInfo, Topic};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::carry::Ground;
use super::run::{Begin, Ended, Holder, News, Order, run};
use super::seat::{Names, Seat};
use super::settings::ProcessorSettings;
use crate::cluster::{NodeToken, Standing};
use crate::lane::{Records, is_held_up};
use crate::observe::{Report, report, send_report};
use crate::service::{contained, hint};

/// Wait before a seat that was lost, or could not be had, is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// Records read in one page.
const PAGE: usize = 1_000;

/// Owns a seat until the order to stop, or until there is no engine any more: takes it, runs it, and takes it again when it was lost.
///
/// A node may own thousands of idle seats, so what a seat does not do all the time is in a box of its own.
pub(crate) async fn own(
    ground: Arc<Ground>,
    seat: SeatId,
    settings: Arc<ProcessorSettings>,
    stream: Arc<StreamInfo>,
    names: Names,
    mut order: watch::Receiver<Order>,
) {
    // What was asked of the store last, until it is known that the seat is not in our name.
    let asked = Mutex::new(None);
    loop {
        if *order.borrow() == Order::Rest {
            Box::pin(clear_doubt(&ground, seat, &asked, order.clone())).await;
        }
        // Without an engine nobody could ever tell it anything again, and the last order stands for ever.
        let is_over = order.has_changed().is_err();
        let next = order.wait_for(|order| *order != Order::Rest).await.map(|order| *order);
        let (Ok(order_now), false) = (next, is_over) else { return };
        if order_now != Order::Run {
            return Box::pin(let_go_at_the_end(&ground, seat, asked.into_inner())).await;
        }
        // In a box of its own, which is gone when the seat runs.
        let taking = Box::pin(take(&ground, seat, &settings, &stream, names.clone(), &asked));
        let ownership = take_and_hold(&ground, taking, &stream, &order);
        let ended = Box::pin(contained("seat", ownership)).await.unwrap_or_else(Ended::Faulty);
        match ended {
            Ended::Drained => {
                // One that was told to stop at once did not say in a last commit that the seat is nobody's.
                if *order.borrow() != Order::Stop {
                    *asked.lock() = None;
                }
                Box::pin(announce(&ground, seat)).await;
                continue;
            }
            Ended::HeldUp => {
                tracing::warn!(%seat, "a run did not stop in time: its seat moves without it");
                continue;
            }
            ended @ (Ended::Unleased | Ended::Outlived) => {
                tracing::warn!(%seat, ?ended, "a seat is dropped: what is known of it may not count any more");
                continue;
            }
            // A dormant one is woken before.
            Ended::Restart | Ended::Dormant(_) => continue,
            Ended::Lost(StoreError::NotFound { what }) => {
                tracing::info!(%seat, what, "a seat is no more");
                return;
            }
            Ended::Lost(error) => {
                tracing::warn!(%seat, %error, "a seat was lost and is tried again");
                Box::pin(tell_lost(&ground, seat, &names, &error, order.clone())).await;
            }
            Ended::Faulty(fault) => {
                let report = Report::SeatFailed { fault: &fault };
                Box::pin(tell(&ground, seat, &names, report, order.clone())).await;
            }
        }
        tokio::select! {
            biased;
            _ = order.changed() => {}
            () = Box::pin(ground.env.sleep(TRY_AGAIN)) => {}
        }
    }
}

async fn take_and_hold(
    ground: &Arc<Ground>,
    taking: impl Future<Output = Result<Taken>>,
    stream: &StreamInfo,
    order: &watch::Receiver<Order>,
) -> Ended {
    // Nothing runs yet: whoever wants it to end need not wait for a store that does not answer.
    match unless(order.clone(), |order| order != Order::Run, taking).await {
        Some(Ok(taken)) => hold(ground, taken, stream, order.clone()).await,
        Some(Err(error)) => Ended::Lost(error),
        None => Ended::Restart,
    }
}

/// Runs a seat that was taken until it ends. While it is dormant, its loop takes no memory.
async fn hold(
    ground: &Arc<Ground>,
    taken: Taken,
    stream: &StreamInfo,
    mut order: watch::Receiver<Order>,
) -> Ended {
    let Taken { mut seat, holder, one_of_few } = taken;
    let id = seat.id();
    let mut news = News::new(ground, id);
    let mut begin = Begin::Taken(one_of_few);
    loop {
        let ended = Box::pin(run(Arc::clone(ground), seat, holder, begin, &mut news, order.clone())).await;
        let Ended::Dormant(dormant) = ended else { return ended };
        begin = news.wake(ground, id, &mut order).await;
        seat = match dormant.wake(stream) {
            Ok(woken) => Box::new(woken),
            Err(error) => return Ended::Lost(error),
        };
        if ground.demand.is_some() {
            seat.serve_workers();
        }
    }
}

/// Makes sure that a seat that is to rest is not in our name.
async fn clear_doubt(
    ground: &Ground,
    seat: SeatId,
    asked: &Mutex<Option<Asked>>,
    order: watch::Receiver<Order>,
) {
    let Some(doubt) = asked.lock().clone() else { return };
    if unless(order, |order| order != Order::Rest, let_go(ground, seat, &doubt)).await.is_some() {
        *asked.lock() = None;
        announce(ground, seat).await;
    }
}

/// Reports why a seat was lost, if somebody should know.
async fn tell_lost(
    ground: &Ground,
    seat: SeatId,
    names: &Names,
    error: &StoreError,
    order: watch::Receiver<Order>,
) {
    let text = error.to_string();
    let report = match error {
        StoreError::Fenced { .. } => Report::SeatFenced { error: &text },
        // A commit is refused by a fault of the engine alone (contract 1.15): somebody must know.
        StoreError::Refused(_) => Report::SeatFailed { fault: &text },
        _ => return,
    };
    tell(ground, seat, names, report, order).await;
}

/// A seizure that was sent.
#[derive(Debug, Clone)]
struct Asked {
    /// Whom it names.
    node: Bytes,
    /// From whom it takes the seat.
    expect: Option<Owner>,
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
    let sending = send_report(&*ground.store, &ground.catalogue, system, draft);
    let sent = unless(order, |order| order == Order::Stop, sending).await;
    if let Err(error) = sent.unwrap_or_else(|| Err("the store did not answer in time".to_owned())) {
        tracing::warn!(%seat, error, "a lost seat could not be reported");
    }
}

/// A seat that was just taken.
struct Taken {
    seat: Box<Seat>,
    holder: Holder,
    one_of_few: OwnedSemaphorePermit,
}

async fn take(
    ground: &Ground,
    id: SeatId,
    settings: &Arc<ProcessorSettings>,
    stream: &StreamInfo,
    names: Names,
    asked: &Mutex<Option<Asked>>,
) -> Result<Taken> {
    let (resume, holder, one_of_few) = seize(ground, id, asked).await?;
    tracing::debug!(seat = %id, term = %resume.progress.fence.term, "a seat was taken");
    let was_clean = resume.progress.clean;
    let (records, ahead) = records(ground, id).await?;
    let mut seat = Box::new(Seat::new(id, Arc::clone(settings), stream, names, resume, records)?);
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
            let views = ground.store.lanes(Lanes { seat: id, select, siding: 2, states: true }).await?;
            let Some(last) = views.last() else { break };
            after = Some(last.record.lane.clone());
            views.iter().for_each(|view| seat.resume_lane(view, was_clean, now));
        }
    }
    Ok(Taken { seat, holder, one_of_few })
}

/// Takes the seat as soon as this node has a lease and nobody who lives owns it.
///
/// A node takes few of its seats at a time, because it may have thousands of them. One that waits for its owner is none of
/// these few; one that was taken is, until the permit goes.
async fn seize(
    ground: &Ground,
    seat: SeatId,
    asked: &Mutex<Option<Asked>>,
) -> Result<(Resume, Holder, OwnedSemaphorePermit)> {
    let mut seen = 0;
    loop {
        let one_of_few = Arc::clone(&ground.taking).acquire_owned().await.expect("it is never closed");
        let node = ground.standing.granted(&ground.env).await.node;
        let life = ground.catalogue.life();
        let progress = progress_of(ground, seat).await?;
        if is_free(ground, &progress, node).await? {
            let (name, expect) = (node.bytes(), owner_of(&progress));
            *asked.lock() = Some(Asked { node: name.clone(), expect });
            let resume = seize_as(ground, seat, &progress, life, name).await?;
            return Ok((resume, Holder { node, life }, one_of_few));
        }
        drop(one_of_few);
        // Its owner is about to hand it over, or its lease about to end.
        tokio::select! {
            biased;
            point = hint(&ground.env, &*ground.wakeups, Topic::Seat(seat), seen) => seen = point,
            () = ground.env.sleep(TRY_AGAIN) => {}
        }
    }
}

/// Takes a seat as it was found in a life of the store. In another one its owner may be one that lives.
async fn seize_as(
    ground: &Ground,
    seat: SeatId,
    from: &Progress,
    life: Incarnation,
    node: Bytes,
) -> Result<Resume> {
    let (nonce, expect) = (ground.env.nonce(), owner_of(from));
    let seize = Seize { seat, incarnation: life, expect, nonce, node };
    ground.catalogue.while_life_lasts(life, || ground.store.seize(seize.clone())).await
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

/// Lets go of a seat that was not handed over in good order, or that may be in our name without our knowledge: a seizure
/// whose answer was lost, or that nobody waited for, may have had its effect or may still have it. As long as the
/// node lives nobody else would take the seat. So it is taken for nobody: from ourselves, which fences whatever still
/// runs here, or from the owner that the seizure expects, so that it can have no effect any more.
async fn let_go(ground: &Ground, seat: SeatId, doubt: &Asked) {
    if matches!(ground.standing, Standing::Alone) {
        return;
    }
    loop {
        let given_up = async {
            let life = ground.catalogue.life();
            let progress = progress_of(ground, seat).await?;
            if progress.node == doubt.node || owner_of(&progress) == doubt.expect {
                seize_as(ground, seat, &progress, life, Bytes::new()).await?;
            }
            Ok::<(), StoreError>(())
        };
        match given_up.await {
            Ok(()) | Err(StoreError::NotFound { .. }) => return,
            Err(error) => {
                tracing::warn!(%seat, %error, "a seat could not be given up and is tried again");
            }
        }
        ground.env.sleep(TRY_AGAIN).await;
    }
}

/// The node may live on without this processor. A store that does not answer is not waited for.
async fn let_go_at_the_end(ground: &Ground, seat: SeatId, doubt: Option<Asked>) {
    let Some(doubt) = doubt else { return };
    tokio::select! {
        biased;
        () = let_go(ground, seat, &doubt) => announce(ground, seat).await,
        () = ground.env.sleep(TRY_AGAIN) => {}
    }
}

/// Whom a seizure must expect; nothing when the seat never had an owner.
fn owner_of(progress: &Progress) -> Option<Owner> {
    let fence = progress.fence;
    let nobody = fence.term.0 == 0 && fence.nonce == Nonce(0);
    (!nobody).then_some(Owner { term: fence.term, nonce: fence.nonce })
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
        let views = ground.store.lanes(Lanes { seat, select, siding: 1, states: false }).await?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::dormant::Dormant;

    /// Bytes that a dormant seat may take in memory, apart from its wake-ups and its meters.
    const DORMANT_BYTES_MAX: usize = 2 << 10;

    type Owning<F> =
        fn(Arc<Ground>, SeatId, Arc<ProcessorSettings>, Arc<StreamInfo>, Names, watch::Receiver<Order>) -> F;

    fn size_of_own<F>(_: Owning<F>) -> usize {
        size_of::<F>()
    }

    type Holding<'a, F> = fn(&'a Arc<Ground>, Taken, &'a StreamInfo, watch::Receiver<Order>) -> F;

    fn size_of_hold<'a, F>(_: Holding<'a, F>) -> usize {
        size_of::<F>()
    }

    #[test]
    fn dormant_seat_is_small() {
        let parts = [size_of_own(own), size_of_hold(hold), size_of::<Dormant>()];
        assert!(
            parts.iter().sum::<usize>() <= DORMANT_BYTES_MAX,
            "task, its future, what is kept: {parts:?}"
        );
    }
}
