//! The store seam over a folder: each transition is a call in the open group or a look at the state.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use laneway_core::store::{
    About, Accepted, Append, Appended, Commit, Committed, Define, Defined, Held, Import, JobView, Jobs,
    LaneView, Lanes, Page, Promote, Promoted, Query, Read, Request, Resume, Rows, Seize, Stash, Trim,
    Trimmed,
};
use laneway_core::{
    Bytes, Capabilities, ClockReport, Document, Documents, Durability, Partition, Result, Shard, Store,
    StoreError, Timestamp, Topic, Wakeups, limits,
};

use super::group::Cost;
use super::options::SyncMode;
use super::state::{Fetched, FileState, FoundTails, Missing, Seen};
use super::store::FileStore;
use super::{cost, counts, held, marks, read};
use crate::machine::promote::Bounds;
use crate::machine::{self, View};

/// The most that a promotion moves while it holds the lock once.
const PROMOTE: Bounds = Bounds { drafts: 128, bytes: 512 << 10 };

impl FileStore {
    fn durability(&self) -> Durability {
        match self.shared().options.sync {
            SyncMode::Always => Durability::Synced,
            SyncMode::Os => Durability::Buffered,
        }
    }
}

impl FileStore {
    /// The ends of an append's lanes that are not in memory. Those that a checkpoint has overtaken would not count, so they
    /// are read again.
    async fn cold_tails(&self, append: &Append) -> Result<Option<FoundTails>> {
        let (shard, keys) = (append.shard, append.drafts.iter().filter_map(|draft| draft.key.as_ref()));
        let missing = self.shared().state.read().tails.missing(shard, keys);
        let Some(keys) = missing.map(Missing::into_keys) else { return Ok(None) };
        let shared = Arc::clone(self.shared());
        let look_up = move || loop {
            let missing = shared.state.read().tails.missing(shard, keys.iter());
            let Some(missing) = missing else { return Ok(None) };
            let found = missing.look_up()?;
            if shared.state.read().tails.are_of_now(&found) {
                return Ok(Some(found));
            }
        };
        self.shared().read_files(look_up).await
    }

    fn define_cost(&self, define: &Define) -> Cost {
        let state = self.shared().state.read();
        let mut there = cost::Catalogue::default();
        for stream in state.streams() {
            let partitions = stream.settings.partitions;
            let shards =
                (0..partitions).filter_map(|partition| state.shard(stream.shard(Partition(partition))));
            there.partitions = there.partitions.max(partitions);
            there.seats = there.seats.max(partitions as usize * stream.processors.len());
            there.gaps = there.gaps.max(shards.map(|info| info.gaps.len()).sum());
            let settings = stream.processors.iter();
            let settings = settings.map(|processor| processor.settings.len() + processor.name.len() + 64);
            there.settings += settings.sum::<usize>();
        }
        cost::define(define, there)
    }

    fn trim_cost(&self, shard: Shard) -> Cost {
        let state = self.shared().state.read();
        let (seats, forgets) = state.stream(shard.stream).map_or((0, false), |stream| {
            (stream.processors.len(), stream.settings.forget_lanes_after.is_some())
        });
        cost::trim(seats, forgets)
    }

    /// How many outbox rows and requests a commit removes: known only to the seat.
    fn rows_removed(&self, commit: &Commit) -> usize {
        if commit.forwarded.is_none() && commit.requests_applied.is_none() {
            return 0;
        }
        let state = self.shared().state.read();
        let before = state.seat(commit.seat).map(|seat| (seat.head.forwarded, seat.head.requests_applied));
        let (forwarded, applied) = before.unwrap_or_default();
        let removed = |upto: Option<u64>, from: u64| upto.map_or(0, |upto| upto.saturating_sub(from));
        let rows = removed(commit.forwarded, forwarded) + removed(commit.requests_applied, applied);
        usize::try_from(rows).unwrap_or(usize::MAX).min(limits::PAGE_MAX)
    }
}

#[async_trait]
impl Store for FileStore {
    fn clock_report(&self) -> Option<ClockReport> {
        Some(self.shared().clock.report())
    }

    async fn held(&self) -> Result<Vec<Held>> {
        held::held(self.shared()).await
    }

    fn about(&self) -> About {
        let capabilities = Capabilities { durability: self.durability(), persistent: true, shared: false };
        About { capabilities, incarnation: self.shared().incarnation }
    }

    async fn define(&self, define: Define) -> Result<Defined> {
        if matches!(define, Define::Import(Import::Stream(_))) {
            self.shared().clock.unsettle();
        }
        let cost = self.define_cost(&define);
        let removed = if let Define::RemoveStream { stream, .. } = &define { Some(*stream) } else { None };
        let work = |state: &mut FileState, now| machine::define::define(state, now, define.clone());
        let defined = self.shared().call_with(cost, Fetched::default(), work).await?;
        if let Some(stream) = removed {
            self.shared().recent_marks.forget(stream);
        }
        Ok(defined)
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        let shared = self.shared();
        if shared.log_bytes.load(Ordering::Relaxed) >= shared.options.backlog_bytes {
            shared.wait_for_checkpoint().await;
        }
        // Cold lane ends are read before the state's lock is taken: nobody else waits for them.
        let in_memory = shared.tails_in_memory.load(Ordering::Acquire);
        let found = if in_memory { None } else { self.cold_tails(&append).await? };
        let (cost, durability) = (cost::append(&append), self.durability());
        // Events wake their shard when they are pushed. Delayed drafts wake it too: its owner must know when they are due.
        let (shard, is_delayed) = (append.shard, append.drafts.iter().any(|draft| draft.delay.is_some()));
        let work = move |state: &mut FileState, now| {
            if let Some(found) = found {
                state.tails.warm(found);
            }
            let appended = machine::append::append(state, now, append, durability)?;
            state.announce(is_delayed.then_some(Topic::Shard(shard)).into_iter());
            Ok(appended)
        };
        shared.call(cost, work).await
    }

    async fn promote(&self, promote: Promote) -> Result<Promoted> {
        let mut all = Promoted { moved: 0, next: None };
        let piece = |state: &mut FileState, now: machine::Now| {
            let limit = promote.limit - all.moved;
            let (promoted, ended) =
                machine::promote::promote(state, now, Promote { limit, ..promote }, PROMOTE)?;
            state.announce(ended.into_iter().map(Topic::Job));
            let is_full = promoted.moved > 0 && promoted.next == Some(Duration::ZERO);
            all = Promoted { moved: all.moved + promoted.moved, next: promoted.next };
            Ok(is_full && all.moved < promote.limit)
        };
        self.shared().call_in_pieces(cost::promote(), piece).await?;
        Ok(all)
    }

    async fn read(&self, read: Read) -> Result<Page> {
        read::read(self.shared(), read).await
    }

    async fn seize(&self, seize: Seize) -> Result<Resume> {
        let cost = cost::settling(seize.node.len());
        self.shared().call(cost, move |state, now| machine::seize::seize(state, now, seize)).await
    }

    async fn lanes(&self, lanes: Lanes) -> Result<Vec<LaneView>> {
        self.shared().observe(move |state, now| machine::lanes::lanes(state, now, &lanes)).await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed> {
        let shard = commit.seat.shard;
        let cost = cost::commit(&commit, self.rows_removed(&commit));
        let ended = commit.jobs.iter().map(|end| end.id).collect::<Vec<_>>();
        let mut fetched = Fetched::default();
        if !ended.is_empty() {
            fetched = Fetched::of_jobs(shard, marks::job_marks(self.shared(), shard, ended).await?);
        }
        // Only these may have to look into files: for ends that are there already, or for the first event of a time.
        let again = !commit.jobs.is_empty() || commit.reset.is_some();
        let mut commit = Some(commit);
        let work = move |state: &mut FileState, now| {
            let this = if again { commit.clone() } else { commit.take() };
            let this =
                this.ok_or_else(|| StoreError::Down { reason: "the commit was applied before".to_owned() })?;
            let (committed, ended) = machine::commit::commit(state, now, this)?;
            state.announce(ended.into_iter().map(Topic::Job));
            Ok(committed)
        };
        self.shared().call_with(cost, fetched, work).await
    }

    async fn request(&self, request: Request) -> Result<Accepted> {
        let cost = cost::request(&request);
        self.shared().call(cost, move |state, now| machine::request::request(state, now, request)).await
    }

    async fn jobs(&self, jobs: Jobs) -> Result<Vec<JobView>> {
        if let Jobs::Get { shard, numbers, results } = jobs {
            let now = self.shared().clock.now();
            let ended = self.shared().state.read().durable_ends(now, shard, &numbers, results)?;
            if let Some(views) = ended {
                return Ok(views);
            }
            let look = |state: &Seen<'_>, now| machine::jobs::get(state, now, shard, &numbers, results);
            return self.shared().observe(look).await;
        }
        let work = |state: &mut FileState, now| {
            let (views, ended) = machine::jobs::jobs(state, now, &jobs)?;
            state.announce(ended.into_iter().map(Topic::Job));
            Ok(views)
        };
        self.shared().call_with(cost::jobs(), Fetched::default(), work).await
    }

    async fn stash(&self, stash: Stash) -> Result<()> {
        let cost = cost::settling(stash.bytes.len());
        self.shared().call(cost, move |state, now| machine::stash::stash(state, now, &stash)).await
    }

    async fn query(&self, query: Query) -> Result<Rows> {
        if let Query::Events(shard, after, limit) = query {
            return read::events(self.shared(), shard, after, limit).await.map(Rows::Events);
        }
        if let Query::Counts(shard) = query {
            return counts::counts(self.shared(), shard).await.map(Rows::Counts);
        }
        self.shared().observe(move |state, now| machine::query::query(state, now, &query)).await
    }

    async fn trim(&self, trim: Trim) -> Result<Trimmed> {
        let cost = self.trim_cost(trim.shard);
        let work = |state: &mut FileState, now| machine::trim::trim(state, now, trim);
        self.shared().call_with(cost, Fetched::default(), work).await
    }
}

#[async_trait]
impl Documents for FileStore {
    async fn get(&self, name: &str) -> Result<Option<Document>> {
        self.shared().observe(|state, _| machine::documents::get(state, name)).await
    }

    async fn put(&self, name: &str, expect: Option<u64>, bytes: Bytes) -> Result<u64> {
        let (name, cost) = (name.to_owned(), cost::settling(bytes.len()));
        self.shared().call(cost, move |state, _| machine::documents::put(state, &name, expect, bytes)).await
    }

    async fn delete(&self, name: &str, expect: u64) -> Result<()> {
        let name = name.to_owned();
        self.shared()
            .call(cost::settling(0), move |state, _| machine::documents::delete(state, &name, expect))
            .await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Document>> {
        self.shared().observe(|state, _| machine::documents::list(state, prefix)).await
    }

    async fn clock(&self) -> Result<Option<Timestamp>> {
        Ok(Some(self.shared().clock.now().wall))
    }
}

#[async_trait]
impl Wakeups for FileStore {
    async fn announce(&self, topic: Topic) -> Result<()> {
        self.shared().wakeups.announce(topic).await
    }

    async fn wait(&self, topic: Topic, seen: u64) -> Result<u64> {
        Ok(self.shared().wakeups.announced(topic, seen).await)
    }
}
