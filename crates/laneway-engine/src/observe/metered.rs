//! A store that is metered: how long every call takes, what it could not do, and how many events were appended.
//!
//! The engine sees its store through this alone, so that no store and no caller can forget to count. A call costs two
//! readings of the steady clock and one box more, however many events it is about.

use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use hashbrown::HashMap;
use laneway_core::store::{
    About, Accepted, Append, Appended, Commit, Committed, Define, Defined, JobView, Jobs, LaneView, Lanes,
    Page, Promote, Promoted, Query, Read, Receipt, Request, Resume, Rows, Seize, Stash, Trim, Trimmed,
};
use laneway_core::{Result, Shard, Store, StoreError, StreamId};
use metrics::{Counter, Histogram};
use parking_lot::RwLock;

use super::names;
use crate::service::Env;

/// A store with meters around it.
pub(crate) struct Metered {
    inner: Arc<dyn Store>,
    env: Env,
    ops: [Histogram; Op::ALL.len()],
    appended: RwLock<HashMap<Shard, Counter>>,
    /// Names of streams, as they were last heard of.
    streams: RwLock<HashMap<StreamId, String>>,
}

/// The calls of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Define,
    Append,
    Promote,
    Read,
    Seize,
    Lanes,
    Commit,
    Request,
    Jobs,
    Stash,
    Query,
    Trim,
}

impl Op {
    const ALL: [Self; 12] = [
        Self::Define,
        Self::Append,
        Self::Promote,
        Self::Read,
        Self::Seize,
        Self::Lanes,
        Self::Commit,
        Self::Request,
        Self::Jobs,
        Self::Stash,
        Self::Query,
        Self::Trim,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Define => "define",
            Self::Append => "append",
            Self::Promote => "promote",
            Self::Read => "read",
            Self::Seize => "seize",
            Self::Lanes => "lanes",
            Self::Commit => "commit",
            Self::Request => "request",
            Self::Jobs => "jobs",
            Self::Stash => "stash",
            Self::Query => "query",
            Self::Trim => "trim",
        }
    }
}

impl Metered {
    pub(crate) fn new(inner: Arc<dyn Store>, env: Env) -> Self {
        let ops = Op::ALL.map(|op| names::STORE_OP.histogram(&[op.name()]));
        Self { inner, env, ops, appended: RwLock::default(), streams: RwLock::default() }
    }

    async fn timed<A>(&self, op: Op, call: impl Future<Output = Result<A>>) -> Result<A> {
        let began = self.env.steady();
        let answer = call.await;
        self.ops[op as usize].record(self.env.steady().since(began).as_secs_f64());
        if let Some(error) = answer.as_ref().err().and_then(inability) {
            names::STORE_ERRORS.counter(&[op.name(), error]).increment(1);
        }
        answer
    }

    fn appended(&self, shard: Shard, events: usize) {
        if events == 0 {
            return;
        }
        let count = |counter: &Counter| counter.increment(events as u64);
        if let Some(counter) = self.appended.read().get(&shard) {
            return count(counter);
        }
        let known = self.streams.read().get(&shard.stream).cloned();
        let stream = known.unwrap_or_else(|| shard.stream.0.to_string());
        let counter = names::APPENDED.counter(&[&stream, &shard.partition.0.to_string()]);
        count(&counter);
        self.appended.write().insert(shard, counter);
    }
}

/// What a store could not do, in one word; nothing for what it rightly refused.
fn inability(error: &StoreError) -> Option<&'static str> {
    match error {
        StoreError::Full(_) => Some("full"),
        StoreError::Unknown { .. } => Some("unknown"),
        StoreError::Down { .. } => Some("down"),
        StoreError::Corrupt { .. } => Some("corrupt"),
        StoreError::Fenced { .. }
        | StoreError::Adopt { .. }
        | StoreError::Moved { .. }
        | StoreError::Conflict(_)
        | StoreError::Trimmed { .. }
        | StoreError::NotFound { .. }
        | StoreError::Refused(_) => None,
    }
}

#[async_trait]
impl Store for Metered {
    fn clock_report(&self) -> Option<laneway_core::ClockReport> {
        self.inner.clock_report()
    }

    async fn held(&self) -> Result<Vec<laneway_core::store::Held>> {
        self.inner.held().await
    }

    fn about(&self) -> About {
        self.inner.about()
    }

    async fn define(&self, define: Define) -> Result<Defined> {
        let defined = self.timed(Op::Define, self.inner.define(define)).await?;
        if let Some(info) = &defined.stream {
            self.streams.write().insert(info.id, info.name.clone());
        }
        Ok(defined)
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        let shard = append.shard;
        let answer = self.timed(Op::Append, self.inner.append(append)).await?;
        let is_new = |receipt: &&Receipt| matches!(receipt, Receipt::New { .. });
        self.appended(shard, answer.receipts.iter().filter(is_new).count());
        Ok(answer)
    }

    async fn promote(&self, promote: Promote) -> Result<Promoted> {
        let shard = promote.shard;
        let answer = self.timed(Op::Promote, self.inner.promote(promote)).await?;
        self.appended(shard, answer.moved);
        Ok(answer)
    }

    async fn read(&self, read: Read) -> Result<Page> {
        self.timed(Op::Read, self.inner.read(read)).await
    }

    async fn seize(&self, seize: Seize) -> Result<Resume> {
        self.timed(Op::Seize, self.inner.seize(seize)).await
    }

    async fn lanes(&self, lanes: Lanes) -> Result<Vec<LaneView>> {
        self.timed(Op::Lanes, self.inner.lanes(lanes)).await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed> {
        self.timed(Op::Commit, self.inner.commit(commit)).await
    }

    async fn request(&self, request: Request) -> Result<Accepted> {
        self.timed(Op::Request, self.inner.request(request)).await
    }

    async fn jobs(&self, jobs: Jobs) -> Result<Vec<JobView>> {
        self.timed(Op::Jobs, self.inner.jobs(jobs)).await
    }

    async fn stash(&self, stash: Stash) -> Result<()> {
        self.timed(Op::Stash, self.inner.stash(stash)).await
    }

    async fn query(&self, query: Query) -> Result<Rows> {
        let rows = self.timed(Op::Query, self.inner.query(query)).await?;
        if let Rows::Streams(streams) = &rows {
            // Whoever appends has looked its stream up before.
            *self.streams.write() = streams.iter().map(|info| (info.id, info.name.clone())).collect();
        }
        Ok(rows)
    }

    async fn trim(&self, trim: Trim) -> Result<Trimmed> {
        self.timed(Op::Trim, self.inner.trim(trim)).await
    }
}
