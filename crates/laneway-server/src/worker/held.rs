//! One claim: its run, its lease, its settlement.

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use laneway::Steady;
use laneway::core::period;
use laneway_client::wire::{Claim, Extend, Outcome, Settle, SettleAnswer, Settlement};
use tokio::sync::watch;

use super::crew::Crew;
use crate::handlers::failed;
use crate::seam;

/// So many times per lease more time is asked for.
const EXTENSIONS_PER_LEASE: u32 = 3;
/// Wait before something is said again that was not heard; less where the lease is short.
const AGAIN: Duration = Duration::from_millis(500);
const AGAIN_PER_LEASE: u32 = 10;

/// Why a run was ended before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Lost,
    GivenBack,
}

/// What a claim is about, for the log: its token carries the key of the lane and the right to settle it.
struct Place {
    reference: String,
    attempt: u32,
}

impl Place {
    fn of(claim: &Claim) -> Self {
        let reference = claim.events.first().map(|event| event.reference.clone()).unwrap_or_default();
        Self { reference, attempt: claim.attempt }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} attempt {}", self.reference, self.attempt)
    }
}

/// Runs a claim and settles it, unless it is lost before.
pub(super) async fn run(crew: &Crew, claim: Claim, mut given_back: watch::Receiver<bool>) {
    let name = claim.claim.as_str();
    let place = Place::of(&claim);
    // The server counts from when it handed the lane out, which was a little earlier: it is the server that decides, and
    // this only says when to stop hoping.
    let until = Cell::new(seam::steady().after(crew.lease));
    let ending = Cell::new(None);
    let cancelled = async {
        tokio::select! {
            () = keep(crew, name, &place, &until) => ending.set(Some(Ending::Lost)),
            // A crew that is gone gives everything back.
            _ = given_back.wait_for(|given| *given) => ending.set(Some(Ending::GivenBack)),
        }
    };
    // It ends its processes before it returns.
    let settlement = Box::pin(crew.command.run(&claim, cancelled)).await;
    match ending.get() {
        Some(Ending::Lost) => tracing::warn!(%place, "a claim was lost: its run is ended"),
        Some(Ending::GivenBack) => {
            let words = "its worker was asked to end, and the run took too long".to_owned();
            settle(crew, failed(name, Outcome::Retry, words), &place, until.get()).await;
        }
        None => settle(crew, settlement, &place, until.get()).await,
    }
}

/// Asks for more time again and again. Returns when the claim is lost: when it is said so, or when nobody answered in time.
async fn keep(crew: &Crew, claim: &str, place: &Place, until: &Cell<Steady>) {
    let between = crew.lease / EXTENSIONS_PER_LEASE;
    let mut wait = between;
    loop {
        seam::pass(wait).await;
        // The new lease counts from when the server hears this, which is later.
        let asked = seam::steady();
        let extend = Extend { claims: vec![claim.to_owned()], lease: period::text(crew.lease) };
        let left = until.get().since(asked);
        if left.is_zero() {
            return;
        }
        let extended = seam::within(left, crew.client.extend(&crew.processor, &extend)).await;
        let Some(extended) = extended else { return };
        wait = again(crew);
        match extended.map(|extended| extended.claims.into_iter().next()) {
            Ok(Some(extended)) if extended.accepted => {
                until.set(asked.after(crew.lease));
                wait = between;
            }
            Ok(Some(extended)) if extended.code.as_deref() == Some("claim_lost") => return,
            Ok(extended) => {
                let code = extended.and_then(|extended| extended.code);
                tracing::warn!(%place, code, "no more time was given");
            }
            Err(error) => {
                let error = crate::http::chain(&error);
                tracing::warn!(%place, error, "no more time can be asked for now");
            }
        }
    }
}

/// Says what became of a claim until that is heard, or the claim is lost. It is said at least once, however late: the server
/// decides.
async fn settle(crew: &Crew, mut settlement: Settlement, place: &Place, until: Steady) {
    let claim = settlement.claim.clone();
    loop {
        let said = Settle { settlements: vec![settlement.clone()] };
        match crew
            .client
            .settle(&crew.processor, &said)
            .await
            .map(|answers| answers.settlements.into_iter().next())
        {
            Ok(Some(SettleAnswer { accepted: true, .. })) => return,
            Ok(Some(SettleAnswer { code: Some(code), detail, .. })) => match code.as_str() {
                "claim_lost" => {
                    tracing::warn!(%place, "a claim was lost before it was settled");
                    return;
                }
                "claim_undecided" => {}
                // What the handler said cannot be: that is its failure, for good.
                _ if settlement.outcome != Outcome::Fail => {
                    settlement = failed(&claim, Outcome::Fail, detail.unwrap_or(code));
                    continue;
                }
                _ => {
                    tracing::error!(%place, code, detail, "a claim cannot be settled");
                    return;
                }
            },
            Ok(_) => tracing::warn!(%place, "a settlement was not answered; it is said again"),
            Err(error) => {
                let error = crate::http::chain(&error);
                tracing::warn!(%place, error, "a settlement was not heard; it is said again");
            }
        }
        if until <= seam::steady() {
            tracing::warn!(%place, "a claim was lost: nobody heard in time what became of it");
            return;
        }
        seam::pass(again(crew)).await;
    }
}

fn again(crew: &Crew) -> Duration {
    AGAIN.min(crew.lease / AGAIN_PER_LEASE)
}
