//! Claims: remote workers take lanes, settle them, and ask for more time.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use laneway::core::Refusal;
use laneway::core::limits::{EMITS_PER_COMMIT_MAX, RESULT_BYTES_MAX, VALUE_BYTES_MAX};
use laneway::engine::handler::{
    Claim, ClaimError, ClaimToken, ClaimWish, Desk, LaneAnswer, Outcome, Settlement, StateChange,
};
use laneway_client::wire;

use super::answer::Json;
use super::code::Code;
use super::error::{Failure, Result};
use super::{body, under_way, wire as convert};
use crate::node::Node;
use crate::seam;

const LANES_MAX: usize = 1_000;
const EVENTS_MAX: usize = 1_000;
const WAIT_MAX: Duration = Duration::from_secs(60);
/// How long even a worker that does not wait is kept: lanes are offered only while somebody asks, and an answer at once
/// would always come before the first offer.
const WAIT_MIN: Duration = Duration::from_millis(250);
const LEASE: Duration = Duration::from_secs(30);
const LEASE_MIN: Duration = Duration::from_millis(100);
const LEASE_MAX: Duration = Duration::from_secs(3_600);

/// Claims lanes of a processor; waits for the first one if there is none.
#[utoipa::path(
    post, path = "/v1/processors/{processor}/claim", tag = "claims",
    params(("processor" = String, Path, description = "its name")),
    request_body = wire::ClaimRequest,
    responses((status = 200, body = wire::Claims, description = "none when there is nothing to do")),
)]
pub(super) async fn claim(
    State(node): State<Node>,
    Path(processor): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<wire::Claims>> {
    let asked: wire::ClaimRequest = body::object(&headers, body).await?;
    let wish = wish(&asked)?;
    let until = seam::steady().after(wish.wait);
    let mut desk = desk(&node, &processor).await?;
    let claims = loop {
        let wait = until.since(seam::steady());
        tokio::select! {
            biased;
            // Nobody would work on what is claimed from here on.
            () = under_way::caller_gone() => break Vec::new(),
            claims = desk.claim(ClaimWish { wait, ..wish.clone() }) => break claims,
            () = node.stopping() => break Vec::new(),
            () = desk.closed() => {}
        }
        // Whoever closed it has not finished yet: only then it is known whether there is another desk, or none.
        drop(node.changing().await);
        desk = self::desk(&node, &processor).await?;
    };
    Ok(Json(wire::Claims { claims: claims.iter().map(told).collect() }))
}

fn wish(asked: &wire::ClaimRequest) -> Result<ClaimWish> {
    let count = |field, given: Option<usize>, max: usize| match given {
        None => Ok(1),
        Some(given) if (1..=max).contains(&given) => Ok(given),
        Some(given) => Err(Failure::value(field, given, format!("1 to {max}"))),
    };
    let wait = asked.wait.as_deref().map_or(Ok(Duration::ZERO), |wait| convert::length("wait", wait))?;
    if wait > WAIT_MAX {
        return Err(Failure::value("wait", convert::length_text(wait), "at most 60s"));
    }
    Ok(ClaimWish {
        lanes: count("max_lanes", asked.max_lanes, LANES_MAX)?,
        events: count("max_events", asked.max_events, EVENTS_MAX)?,
        lease: asked.lease.as_deref().map_or(Ok(LEASE), lease)?,
        wait: wait.max(WAIT_MIN),
        worker: asked.worker.clone().unwrap_or_else(|| "unnamed".to_owned()),
        request: asked.request.clone(),
    })
}

fn lease(text: &str) -> Result<Duration> {
    let lease = convert::length("lease", text)?;
    if !(LEASE_MIN..=LEASE_MAX).contains(&lease) {
        return Err(Failure::value("lease", text, "100ms to 1h"));
    }
    Ok(lease)
}

fn told(claim: &Claim) -> wire::Claim {
    let run = &claim.run;
    let key = run.events.first().and_then(|event| event.key.as_ref());
    let convert::Named { key, key_b64 } = convert::named(key);
    wire::Claim {
        claim: claim.token.clone(),
        stream: claim.stream.to_string(),
        key,
        key_b64,
        fence: run.fence.to_string(),
        attempt: run.attempt,
        expires_at: convert::date_of(convert::due(laneway::core::Due::Steady(claim.expires))),
        state: run.state.as_ref().and_then(|state| convert::payload(&state.bytes).0),
        last_done: run.last_done.as_ref().map(convert::last_done),
        events: run
            .events
            .iter()
            .map(|event| convert::claimed(&claim.stream, claim.partition, event))
            .collect(),
    }
}

/// Says what became of claims, in a body of up to 17 MiB. Each answer comes when what was said is durable.
#[utoipa::path(
    post, path = "/v1/processors/{processor}/settle", tag = "claims",
    params(("processor" = String, Path, description = "its name")),
    request_body = wire::Settle,
    responses((status = 200, body = wire::SettleAnswers)),
)]
pub(super) async fn settle(
    State(node): State<Node>,
    Path(processor): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<wire::SettleAnswers>> {
    let asked: wire::Settle = body::object_with_result(&headers, body).await?;
    bounded("settlements", asked.settlements.len())?;
    let place = Place { node: &node, desk: desk(&node, &processor).await?, processor: &processor };
    let settlements = asked.settlements.into_iter().map(|settlement| one(&place, settlement));
    let settlements = futures::future::join_all(settlements).await;
    Ok(Json(wire::SettleAnswers { settlements }))
}

/// Where a worker speaks.
struct Place<'a> {
    node: &'a Node,
    desk: Arc<Desk>,
    processor: &'a str,
}

impl Place<'_> {
    /// A claim by its text, if it is one of this processor.
    async fn claim(&self, text: &str) -> Result<ClaimToken> {
        let token: ClaimToken = text.parse().map_err(ClaimError::from).map_err(refused)?;
        let (_, processor) = self.node.engine().catalogue().processor(self.processor).await?;
        if token.seat.processor != processor {
            let limit = format!("a claim of processor {:?}", self.processor);
            return Err(Failure::value("claim", "one of another processor", limit));
        }
        Ok(token)
    }

    /// Refuses what would otherwise fail the event once it is handed in: the worker still has its claim and can mend it.
    async fn check(&self, answer: &LaneAnswer) -> Result<()> {
        for done in &answer.done {
            let result = done.result.as_ref().map_or(0, |result| result.len());
            Refusal::check_max("result bytes", result, RESULT_BYTES_MAX)?;
            Refusal::check_max("emit entries", done.emits.len(), EMITS_PER_COMMIT_MAX / 2)?;
            for emission in &done.emits {
                Failure::own_stream("emit.stream", &emission.stream)?;
                self.node.engine().catalogue().stream(&emission.stream).await?;
            }
        }
        if let StateChange::Set(state) = &answer.state {
            Refusal::check_max("state bytes", state.len(), VALUE_BYTES_MAX)?;
        }
        Ok(())
    }
}

async fn one(place: &Place<'_>, settlement: wire::Settlement) -> wire::SettleAnswer {
    let claim = settlement.claim.clone();
    let settled = async {
        let token = place.claim(&claim).await?;
        let answer = convert::answer(&settlement, &token.events)?;
        place.check(&answer).await?;
        decided(place.node, place.desk.settle(&claim, answer)).await
    };
    let accepted = |claim, already, outcome| wire::SettleAnswer {
        claim,
        accepted: true,
        already,
        outcome,
        code: None,
        detail: None,
    };
    match settled.await {
        Ok(Settlement::Accepted) => accepted(claim, false, None),
        // Saying it twice is saying it once: what was said first counts.
        Ok(Settlement::Already(said)) => {
            accepted(claim, true, said.map(|Outcome { done, failed }| wire::Settled { done, failed }))
        }
        Err(Failure { code, detail, .. }) => {
            // Whoever runs the workers wants to know that one of them is too slow, or was frozen.
            if code == Code::ClaimLost {
                tracing::warn!(processor = place.processor, "a worker settled too late: {detail}");
            }
            let code = Some(code.name().to_owned());
            let detail = Some(detail);
            wire::SettleAnswer { claim, accepted: false, already: false, outcome: None, code, detail }
        }
    }
}

/// What came of a claim; nobody decides it here once the process is drained.
async fn decided<A>(node: &Node, decision: impl Future<Output = Result<A, ClaimError>>) -> Result<A> {
    tokio::select! {
        biased;
        decided = decision => decided.map_err(refused),
        () = node.drained() => Err(refused(ClaimError::Undecided)),
    }
}

/// Why a claim can neither be settled nor extended.
fn refused(error: ClaimError) -> Failure {
    match error {
        ClaimError::Lost => Failure::new(Code::ClaimLost, error.to_string()),
        ClaimError::Undecided => Failure::new(Code::ClaimUndecided, error.to_string()),
        ClaimError::Refused(refusal) => refusal.into(),
        ClaimError::Operate(error) => error.into(),
    }
}

/// Gives workers more time, from now on.
#[utoipa::path(
    post, path = "/v1/processors/{processor}/extend", tag = "claims",
    params(("processor" = String, Path, description = "its name")),
    request_body = wire::Extend,
    responses((status = 200, body = wire::ExtendedClaims)),
)]
pub(super) async fn extend(
    State(node): State<Node>,
    Path(processor): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<wire::ExtendedClaims>> {
    let asked: wire::Extend = body::object(&headers, body).await?;
    bounded("claims", asked.claims.len())?;
    let lease = lease(&asked.lease)?;
    let place = Place { node: &node, desk: desk(&node, &processor).await?, processor: &processor };
    let claims = asked.claims.into_iter().map(|claim| extended(&place, claim, lease));
    Ok(Json(wire::ExtendedClaims { claims: futures::future::join_all(claims).await }))
}

async fn extended(place: &Place<'_>, claim: String, lease: Duration) -> wire::ExtendedClaim {
    let extended = async {
        place.claim(&claim).await?;
        decided(place.node, place.desk.extend(&claim, lease)).await
    };
    match extended.await {
        Ok(expires) => {
            let expires_at = Some(convert::date_of(convert::due(laneway::core::Due::Steady(expires))));
            wire::ExtendedClaim { claim, accepted: true, expires_at, code: None, detail: None }
        }
        Err(Failure { code, detail, .. }) => {
            let code = Some(code.name().to_owned());
            wire::ExtendedClaim { claim, accepted: false, expires_at: None, code, detail: Some(detail) }
        }
    }
}

fn bounded(field: &str, count: usize) -> Result<()> {
    if (1..=body::EVENTS_MAX).contains(&count) {
        return Ok(());
    }
    Err(Failure::value(field, format!("{count} entries"), format!("1 to {}", body::EVENTS_MAX)))
}

/// The desk of a processor that remote workers claim from.
async fn desk(node: &Node, processor: &str) -> Result<Arc<Desk>> {
    if let Some(desk) = node.desk(processor) {
        return Ok(desk);
    }
    // It does not exist, or is not for workers; which of both decides the answer.
    node.engine().catalogue().refresh().await?;
    node.engine().catalogue().processor(processor).await?;
    // Or another node was told of it a moment ago, and gave the worker its claim.
    if let Some(desk) = node.follow_now().await.ok().and_then(|()| node.desk(processor)) {
        return Ok(desk);
    }
    // Or it is just being changed or removed: what becomes of it decides.
    drop(node.changing().await);
    node.engine().catalogue().processor(processor).await?;
    if let Some(desk) = node.desk(processor) {
        return Ok(desk);
    }
    let detail = format!("processor {processor:?} is not for remote workers, or does not run now");
    Err(Failure::new(Code::NotPull, detail))
}
