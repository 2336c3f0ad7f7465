//! What operators ask of lanes and processors. Everything is a request that the owner applies in a commit; asking twice
//! with one token is asking once (contract 1.7).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::limits::RESULT_INLINE_BYTES_MAX;
use laneway_core::store::{Query, RedriveTo, Request, RequestOp, Reset, Rows};
use laneway_core::{
    EventId, Key, LaneName, Partition, ProcessorId, Refusal, Seat, Shard, Steady, Store, StoreError, TokenId,
    Topic, Wakeups,
};

use super::answer::{Answer, UnknownAnswer};
use super::outcome::outcome_of;
use crate::handler::{ClaimError, ClaimToken, LaneAnswer, Settlement, encode_answer};
use crate::log::{Catalogue, CatalogueError};
use crate::service::Env;

/// How soon, and how seldom, somebody who waits for a request looks again.
const LOOK_AFTER: Duration = Duration::from_millis(1);
const LOOK_AFTER_MAX: Duration = Duration::from_millis(100);

/// How long a worker waits for the owner of another seat to decide.
const DECIDED_WITHIN: Duration = Duration::from_secs(20);

/// Steers lanes and processors. Cheap to clone.
#[derive(Clone)]
pub struct Operator {
    env: Env,
    store: Arc<dyn Store>,
    wakeups: Arc<dyn Wakeups>,
    catalogue: Arc<Catalogue>,
}

/// A request that was stored; the owner of its seat applies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filed {
    /// Whose owner decides.
    pub seat: Seat,
    /// Its number there.
    pub number: u64,
    /// Its token, by which the answer is remembered.
    pub token: TokenId,
    /// It had been filed before.
    pub repeated: bool,
}

/// Why nothing was asked.
#[derive(Debug, thiserror::Error)]
pub enum OperateError {
    /// No such stream or processor.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Operator {
    pub(crate) fn new(
        env: Env,
        store: Arc<dyn Store>,
        wakeups: Arc<dyn Wakeups>,
        catalogue: Arc<Catalogue>,
    ) -> Self {
        Self { env, store, wakeups, catalogue }
    }

    /// Stops a lane for a processor; what runs goes on.
    pub async fn pause_lane(&self, processor: &str, key: &Key, by: &str) -> Result<Filed, OperateError> {
        let by = Bytes::copy_from_slice(by.as_bytes());
        self.ask_lane(processor, key, |lane| RequestOp::Pause { lane: Some(lane), by }).await
    }

    /// Lets a paused, parked or diverting lane go on.
    pub async fn resume_lane(&self, processor: &str, key: &Key) -> Result<Filed, OperateError> {
        self.ask_lane(processor, key, |lane| RequestOp::Resume { lane: Some(lane) }).await
    }

    /// Runs the head of a lane now, if it is this event.
    pub async fn retry(&self, processor: &str, key: &Key, head: EventId) -> Result<Filed, OperateError> {
        self.ask_lane(processor, key, |lane| RequestOp::Retry { lane, id: head }).await
    }

    /// Passes the head of a lane over, if it is this event.
    pub async fn skip(&self, processor: &str, key: &Key, head: EventId) -> Result<Filed, OperateError> {
        self.ask_lane(processor, key, |lane| RequestOp::Skip { lane, id: head }).await
    }

    /// Brings dead letters of a lane back: one, or all in order.
    pub async fn redrive(
        &self,
        processor: &str,
        key: &Key,
        id: Option<EventId>,
        to: RedriveTo,
    ) -> Result<Filed, OperateError> {
        self.ask_lane(processor, key, |lane| RequestOp::Redrive { id, lane, to }).await
    }

    /// Forgets dead letters of a lane for good: one, or all.
    pub async fn discard(
        &self,
        processor: &str,
        key: &Key,
        id: Option<EventId>,
    ) -> Result<Filed, OperateError> {
        self.ask_lane(processor, key, |lane| RequestOp::Discard { id, lane }).await
    }

    /// Stops a processor everywhere; what runs goes on.
    pub async fn pause(&self, processor: &str, by: &str) -> Result<Vec<Filed>, OperateError> {
        let by = Bytes::copy_from_slice(by.as_bytes());
        self.ask_all(processor, RequestOp::Pause { lane: None, by }).await
    }

    /// Lets a paused or halted processor go on everywhere.
    pub async fn resume(&self, processor: &str) -> Result<Vec<Filed>, OperateError> {
        self.ask_all(processor, RequestOp::Resume { lane: None }).await
    }

    /// Begins a processor anew everywhere (contract 1.18).
    pub async fn reset(&self, processor: &str, reset: Reset) -> Result<Vec<Filed>, OperateError> {
        self.ask_all(processor, RequestOp::Reset(reset)).await
    }

    async fn ask_lane(
        &self,
        processor: &str,
        key: &Key,
        op: impl FnOnce(LaneName) -> RequestOp,
    ) -> Result<Filed, OperateError> {
        let (info, id) = self.catalogue.processor(processor).await?;
        let shard = info.shard(key.partition(info.settings.partitions));
        self.ask(shard, id, op(LaneName::Key(key.clone()))).await
    }

    /// Asks all partitions. Carried to its end if the caller drops it: none is left out.
    async fn ask_all(&self, processor: &str, op: RequestOp) -> Result<Vec<Filed>, OperateError> {
        let (info, id) = self.catalogue.processor(processor).await?;
        let operator = self.clone();
        let asking = async move {
            let mut filed = Vec::new();
            for partition in 0..info.settings.partitions {
                filed.push(operator.ask(info.shard(Partition(partition)), id, op.clone()).await?);
            }
            Ok(filed)
        };
        self.env.finish(asking).await
    }

    async fn ask(&self, shard: Shard, processor: ProcessorId, op: RequestOp) -> Result<Filed, OperateError> {
        self.file(Seat { shard, processor }, self.env.token(), op).await
    }

    /// Files a request under a token of the caller's.
    pub async fn file(&self, seat: Seat, token: TokenId, op: RequestOp) -> Result<Filed, OperateError> {
        let accepted = self.store.request(Request { seat, token, op }).await?;
        self.wakeups.announce(Topic::Seat(seat)).await?;
        Ok(Filed { seat, number: accepted.number, token, repeated: accepted.repeated })
    }

    /// What the owner said to a request, waiting for it at most so long; nothing while it has not decided.
    pub async fn answer(&self, filed: Filed, within: Duration) -> Result<Option<Answer>, OperateError> {
        if !self.wait(&[filed], within).await? {
            return Ok(None);
        }
        let before = TokenId(filed.token.0.wrapping_sub(1));
        let after = (filed.token.0 > 0).then_some(before);
        let Rows::Tokens(rows) = self.store.query(Query::Tokens(filed.seat, after, 1)).await? else {
            return Err(corrupt("the store answered another list than tokens".to_owned()).into());
        };
        // A token is remembered for a day, an answer of before there were any is empty.
        let found = rows.into_iter().find(|row| row.token == filed.token && !row.answer.is_empty());
        let Some(row) = found else { return Ok(None) };
        let text = String::from_utf8_lossy(&row.answer);
        text.parse().map(Some).map_err(|unknown: UnknownAnswer| corrupt(unknown.to_string()).into())
    }

    /// Settles a claim of a remote worker with the owner of its seat, from whatever node. Answers when that is durable.
    pub async fn settle(&self, token: &str, answer: &LaneAnswer) -> Result<Settlement, ClaimError> {
        let claim: ClaimToken = token.parse()?;
        let answer = encode_answer(answer)?;
        Refusal::check_max("answer bytes", answer.len(), RESULT_INLINE_BYTES_MAX)?;
        let op = RequestOp::Settle { claim: Bytes::copy_from_slice(token.as_bytes()), answer };
        let filed = self.file(claim.seat, claim.settle_token(), op).await?;
        match self.answer(filed, DECIDED_WITHIN).await? {
            Some(Answer::Applied) if !filed.repeated => Ok(Settlement::Accepted),
            Some(Answer::Applied | Answer::Already) => {
                let outcome = outcome_of(&*self.store, &claim).await.map_err(OperateError::from)?;
                Ok(Settlement::Already(outcome))
            }
            Some(Answer::Refused(_)) => Err(ClaimError::Lost),
            None => Err(ClaimError::Undecided),
        }
    }

    /// Gives a remote worker more time, from whatever node. Answers until when.
    pub async fn extend(&self, token: &str, lease: Duration) -> Result<Steady, ClaimError> {
        let claim: ClaimToken = token.parse()?;
        let expires = self.env.now().steady.after(lease);
        let op = RequestOp::Extend { claim: Bytes::copy_from_slice(token.as_bytes()), lease };
        let filed = self.file(claim.seat, self.env.token(), op).await?;
        match self.answer(filed, DECIDED_WITHIN).await? {
            Some(Answer::Applied) => Ok(expires),
            Some(Answer::Already | Answer::Refused(_)) => Err(ClaimError::Lost),
            None => Err(ClaimError::Undecided),
        }
    }

    /// Waits until the owners have applied these requests, at most for so long; answers whether they have.
    pub async fn wait(&self, filed: &[Filed], within: Duration) -> Result<bool, OperateError> {
        let until = self.env.now().steady.after(within);
        let mut look_after = LOOK_AFTER;
        for request in filed {
            while self.is_open(*request).await? {
                if self.env.now().steady >= until {
                    return Ok(false);
                }
                self.env.sleep(look_after).await;
                look_after = (look_after * 2).min(LOOK_AFTER_MAX);
            }
        }
        Ok(true)
    }

    async fn is_open(&self, Filed { seat, number, .. }: Filed) -> Result<bool, StoreError> {
        match self.store.query(Query::Requests(seat, number - 1, 1)).await? {
            Rows::Requests(rows) => Ok(rows.first().is_some_and(|row| row.number == number)),
            _ => {
                Err(StoreError::Corrupt { what: "the store answered another list than requests".to_owned() })
            }
        }
    }
}

fn corrupt(what: String) -> StoreError {
    StoreError::Corrupt { what }
}

impl std::fmt::Debug for Operator {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Operator").finish_non_exhaustive()
    }
}
