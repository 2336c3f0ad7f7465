//! What became of the events of a claim, as the store tells it: their owner may have changed since, and with it went what was
//! known of the claim itself.

use std::collections::BTreeMap;

use laneway_core::limits::PAGE_MAX;
use laneway_core::store::{LaneSelect, Lanes, Query, Rows};
use laneway_core::{EventId, Result, Store, StoreError, Terminal};

use crate::handler::{ClaimToken, Outcome};

/// How many events of a claim were done, and whether the one after them failed. Nothing when they are gone from the log, and
/// with them how they ended.
pub(super) async fn outcome_of(store: &dyn Store, claim: &ClaimToken) -> Result<Option<Outcome>> {
    let Rows::Seats(info, seats) = store.query(Query::Seats(claim.seat.shard)).await? else {
        return Err(another_list("seats"));
    };
    let found = seats.into_iter().find(|seat| seat.processor == claim.seat.processor);
    let Some(seat) = found.filter(|_| claim.first() > info.trimmed) else { return Ok(None) };
    let select = LaneSelect::Names(vec![claim.lane.clone()]);
    let lanes =
        store.lanes(Lanes { seat: claim.seat, select, siding: claim.events.len(), states: false }).await?;
    let lane = lanes.first();
    let endings = endings_of(store, claim).await?;
    let is_passed = |id: &EventId| {
        seat.progress.window.contains(*id) && lane.is_none_or(|view| !view.siding.contains(id))
    };
    let is_done = |id: &&EventId| is_passed(id) && !endings.contains_key(*id);
    let done = claim.events.iter().take_while(is_done).count();
    let failed = claim.events.get(done).is_some_and(|next| {
        let waits = lane.is_some_and(|view| view.record.head == Some(*next) && view.record.attempts > 0);
        waits || endings.get(next) == Some(&Terminal::Failed)
    });
    Ok(Some(Outcome { done, failed }))
}

/// How the events of a claim have ended, other than done.
async fn endings_of(store: &dyn Store, claim: &ClaimToken) -> Result<BTreeMap<EventId, Terminal>> {
    let (mut after, mut found) = (EventId(claim.first().0 - 1), BTreeMap::new());
    while after < claim.last() {
        // There is at most one of each id; most claims are of one event.
        let ids = usize::try_from(claim.last().0 - after.0).unwrap_or(PAGE_MAX);
        let query = Query::Endings(claim.seat, after, ids.min(PAGE_MAX));
        let Rows::Endings(rows) = store.query(query).await? else {
            return Err(another_list("endings"));
        };
        let Some(last) = rows.last() else { break };
        after = last.id;
        let ours = rows.iter().filter(|ending| claim.events.contains(&ending.id));
        found.extend(ours.map(|ending| (ending.id, ending.end)));
    }
    Ok(found)
}

fn another_list(wanted: &str) -> StoreError {
    StoreError::Corrupt { what: format!("the store answered another list than {wanted}") }
}
