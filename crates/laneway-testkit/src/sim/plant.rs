//! The twelve bugs of `reliability.md`, four of leases and two of failovers, as this design could have them: each is a store, or the layer
//! that makes it durable, or the clock it reads, with one plausible mistake. Those of documents are in `plant_documents.rs`. What each of them stands for is in
//! `docs/design/simulation.md`; a simulation that misses one proves nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fastrand::Rng;
use laneway_core::store::{
    About, Accepted, Append, Appended, Commit, Committed, Define, Defined, JobEnd, JobState, JobView, Jobs,
    LaneChange, LaneSelect, LaneView, Lanes, Origin, Owner, Page, Promote, Promoted, Query, Read, Receipt,
    Request, Resume, Rows, Seize, Source, Stash, Trim, Trimmed,
};
use laneway_core::{
    CommitId, EventId, Fence, Incarnation, LaneName, LaneRecord, Nonce, Result, Seat, Shard, Store, Term,
    Timestamp,
};
use parking_lot::Mutex;

use super::life::SimClock;

/// The bugs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// A commit is accepted whoever was granted the seat: term and nonce are not compared.
    SkipNonceCheck,
    /// A commit is accepted under any version.
    SkipHeadCheck,
    /// What gives something back, a seat in good order or a lane that is plain again, needs no fence.
    ReleaseWithoutFence,
    /// An append is answered when it is in a buffer, and a crash empties the buffer.
    AckBeforeSync,
    /// Emits are written before the fence is compared.
    EmitOutsideTheCommit,
    /// A seat is taken from whoever has it, not only from the expected owner.
    RescueByIdOnly,
    /// The store goes by the clock of whichever process is running, and those differ.
    LocalClockInExpiry,
    /// Terms begin anew once an owner has left in good order.
    TermResetOnRelease,
    /// All grants of the node have one nonce, which alone is the fence.
    TokenPerNode,
    /// A lane that was found empty loses its record in a second step, by name, whatever has joined it meanwhile.
    TwoStepRelease,
    /// After a failed sync the next one succeeds and counts, though it wrote nothing.
    RetryAfterSyncError,
    /// The end of a job is shown before its commit is accepted.
    ResultBeforeCommit,
    /// A seat is taken without looking whether its owner lives.
    TakeFromTheLiving,
    /// A lease is renewed though its node was buried.
    RenewTheBuried,
    /// A node counts its lease by a clock that stands still while the machine sleeps.
    ClockThatSleeps,
    /// Leases end by the clock of whoever looks.
    LocalClockInLeases,
    /// A replica that takes over passes for the store that it followed: nothing is adopted.
    FailoverUnnoticed,
    /// A shard is adopted, and whoever owned a seat before still owns it.
    FenceWithoutAdoptions,
}

impl Plant {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::SkipNonceCheck,
        Self::SkipHeadCheck,
        Self::ReleaseWithoutFence,
        Self::AckBeforeSync,
        Self::EmitOutsideTheCommit,
        Self::RescueByIdOnly,
        Self::LocalClockInExpiry,
        Self::TermResetOnRelease,
        Self::TokenPerNode,
        Self::TwoStepRelease,
        Self::RetryAfterSyncError,
        Self::ResultBeforeCommit,
        Self::TakeFromTheLiving,
        Self::RenewTheBuried,
        Self::ClockThatSleeps,
        Self::LocalClockInLeases,
        Self::FailoverUnnoticed,
        Self::FenceWithoutAdoptions,
    ];

    /// The invariants that this bug breaks: it counts as found only by one of them.
    pub fn breaks(self) -> &'static [&'static str] {
        match self {
            Self::SkipNonceCheck | Self::SkipHeadCheck | Self::ReleaseWithoutFence => &["S3"],
            Self::AckBeforeSync | Self::RetryAfterSyncError => &["D1"],
            // Its own step also takes the owner's place in the count of commits.
            Self::EmitOutsideTheCommit => &["A1", "A2", "S3"],
            Self::RescueByIdOnly => &["S2"],
            Self::LocalClockInExpiry => &["L2"],
            Self::TermResetOnRelease => &["L1"],
            Self::TokenPerNode => &["L1", "O2", "S3"],
            Self::TwoStepRelease => &["S1", "S4", "A1", "O1"],
            Self::ResultBeforeCommit => &["A3"],
            Self::TakeFromTheLiving => &["S2"],
            Self::RenewTheBuried => &["F6"],
            Self::ClockThatSleeps | Self::LocalClockInLeases => &["L3"],
            Self::FailoverUnnoticed => &["1.4", "S3"],
            Self::FenceWithoutAdoptions => &["S3"],
        }
    }
}

/// A store with one of the bugs.
pub(crate) struct Planted {
    inner: Arc<dyn Store>,
    plant: Plant,
    first_life: Incarnation,
    state: Mutex<State>,
}

struct State {
    rng: Rng,
    made: u64,
    /// Appends that were answered and not written, one per shard at most.
    buffered: BTreeMap<Shard, Append>,
    /// Numbers of origins that were seen: a repeat is not answered from the buffer.
    seen: BTreeSet<(Source, u64)>,
    /// Terms as they are told outside, by seat and nonce, and the next one.
    told: BTreeMap<(Seat, Nonce), Term>,
    next_term: BTreeMap<Seat, u64>,
    early_ends: Vec<(Shard, JobEnd)>,
    /// Lanes that were found empty and still have their record.
    empty: BTreeMap<Seat, Vec<LaneName>>,
}

/// The one nonce of a node that makes no new ones.
const NODE_NONCE: Nonce = Nonce(0x6e6f_6465);

impl Planted {
    pub(crate) fn new(inner: Arc<dyn Store>, plant: Plant, seed: u64) -> Self {
        let state = State {
            rng: Rng::with_seed(seed ^ 0x706c_616e_7400),
            made: 0,
            buffered: BTreeMap::new(),
            seen: BTreeSet::new(),
            told: BTreeMap::new(),
            next_term: BTreeMap::new(),
            early_ends: Vec::new(),
            empty: BTreeMap::new(),
        };
        let first_life = inner.about().incarnation;
        Self { inner, plant, first_life, state: Mutex::new(state) }
    }

    pub(crate) fn is(&self, plant: Plant) -> bool {
        self.plant == plant
    }

    /// Chance of below this many.
    pub(crate) fn below(&self, limit: u64) -> u64 {
        self.state.lock().rng.u64(0..limit)
    }

    /// A new process begins: it may be on another machine.
    pub(crate) fn begins(&self, life: u64, clock: &SimClock) {
        if self.plant == Plant::LocalClockInExpiry {
            // Ahead by up to a minute, and never behind: a steady clock that went back would be another bug.
            let mut ahead = self.state.lock().rng.u64(0..60);
            ahead += 60 * life;
            clock.set_skew(Duration::from_secs(ahead));
        }
    }

    /// The process is dead, and what it had not written is gone.
    pub(crate) fn crashed(&self) {
        self.state.lock().buffered.clear();
    }

    fn number(&self) -> u64 {
        let mut state = self.state.lock();
        state.made += 1;
        state.made
    }

    async fn fence(&self, seat: Seat) -> Result<Option<Fence>> {
        let Rows::Seats(_, seats) = self.inner.query(Query::Seats(seat.shard)).await? else {
            return Ok(None);
        };
        let found = seats.into_iter().find(|view| view.processor == seat.processor);
        Ok(found.map(|view| view.progress.fence))
    }

    /// The commit as a store would judge it that does not compare all of the fence.
    async fn forge(&self, commit: &mut Commit) -> Result<()> {
        let Some(stored) = self.fence(commit.seat).await? else { return Ok(()) };
        match self.plant {
            Plant::SkipNonceCheck => {
                commit.fence = Fence { term: stored.term, nonce: stored.nonce, ..commit.fence };
            }
            Plant::SkipHeadCheck => commit.fence.version = stored.version,
            Plant::TokenPerNode if commit.fence.nonce == stored.nonce => commit.fence.term = stored.term,
            Plant::ReleaseWithoutFence
                if commit.clean || commit.lanes.iter().any(|change| change.record.is_none()) =>
            {
                commit.fence = stored;
            }
            Plant::FenceWithoutAdoptions => self.take_on(commit, stored).await?,
            _ => {}
        }
        Ok(())
    }

    /// The owner of before an adoption goes on: the seat is granted to it anew behind its back.
    async fn take_on(&self, commit: &mut Commit, stored: Fence) -> Result<()> {
        let Rows::Seats(info, _) = self.inner.query(Query::Seats(commit.seat.shard)).await? else {
            return Ok(());
        };
        if stored == commit.fence && info.adoptions > stored.adoptions {
            let expect = Some(Owner { term: stored.term, nonce: stored.nonce });
            let (incarnation, node) = (self.inner.about().incarnation, Bytes::new());
            let seize = Seize { seat: commit.seat, incarnation, expect, nonce: stored.nonce, node };
            commit.fence = self.inner.seize(seize).await?.progress.fence;
        }
        Ok(())
    }

    /// What a receipt will say once the append is written, if that can be told.
    async fn predict(&self, append: &Append) -> Result<Option<Vec<Receipt>>> {
        let plain = append.object.is_none()
            && append.drafts.iter().all(|draft| {
                draft.delay.is_none()
                    && draft.dedup.is_none()
                    && draft.job.is_none()
                    && draft.generation.is_none()
            });
        let Some(Origin { source, .. }) = append.origin.clone() else { return Ok(None) };
        let numbers: Vec<u64> = append.drafts.iter().filter_map(|draft| draft.origin_seq).collect();
        let new = {
            let mut state = self.state.lock();
            let new = numbers.iter().all(|number| !state.seen.contains(&(source.clone(), *number)));
            state.seen.extend(numbers.iter().map(|number| (source.clone(), *number)));
            new
        };
        // What a seat forwards may be a repeat that this layer has not seen.
        if !plain || !new || !matches!(source, Source::Named(_)) {
            return Ok(None);
        }
        let Rows::Seats(info, _) = self.inner.query(Query::Seats(append.shard)).await? else {
            return Ok(None);
        };
        let mut tails = BTreeMap::new();
        let mut receipts = Vec::new();
        for (id, draft) in (info.head.0 + 1..).map(EventId).zip(&append.drafts) {
            let Some(key) = &draft.key else {
                receipts.push(Receipt::New { id, prev: None, seq: None, job: None });
                continue;
            };
            if !tails.contains_key(key) {
                let Rows::Lane(tail) = self.inner.query(Query::Lane(append.shard, key.clone())).await? else {
                    return Ok(None);
                };
                tails.insert(key.clone(), tail.map(|tail| (tail.id, tail.seq)));
            }
            let before = tails.get(key).copied().flatten();
            let seq = laneway_core::Seq(before.map_or(1, |(_, seq)| seq.0 + 1));
            receipts.push(Receipt::New { id, prev: before.map(|(id, _)| id), seq: Some(seq), job: None });
            tails.insert(key.clone(), Some((id, seq)));
        }
        Ok(Some(receipts))
    }

    fn appended(&self, receipts: Vec<Receipt>) -> Appended {
        let durability = self.inner.about().capabilities.durability;
        Appended { receipts, durability, object_version: None, dedup_evicted: 0 }
    }

    /// Writes what a shard has in the buffer.
    async fn flush(&self, shard: Shard) -> Result<()> {
        let buffered = self.state.lock().buffered.remove(&shard);
        match buffered {
            Some(append) => self.inner.append(append).await.map(drop),
            None => Ok(()),
        }
    }

    async fn append_buffered(&self, append: Append) -> Result<Appended> {
        self.flush(append.shard).await?;
        let Some(receipts) = self.predict(&append).await? else { return self.inner.append(append).await };
        let shard = append.shard;
        self.state.lock().buffered.insert(shard, append);
        Ok(self.appended(receipts))
    }

    async fn append_unsynced(&self, append: Append) -> Result<Appended> {
        let failed = self.state.lock().rng.u8(0..20) == 0;
        let receipts = if failed { self.predict(&append).await? } else { None };
        match receipts {
            Some(receipts) => Ok(self.appended(receipts)),
            None => self.inner.append(append).await,
        }
    }

    /// Emits first, in a step of their own under whatever fence is stored, then the rest.
    async fn emit_apart(&self, mut commit: Commit) -> Result<Committed> {
        let emits = std::mem::take(&mut commit.emits);
        let stored = self.fence(commit.seat).await?.filter(|fence| fence.term.0 > 0);
        if let Some(fence) = stored.filter(|_| !emits.is_empty()) {
            let mut apart = Commit::new(commit.seat, fence, CommitId(u128::from(self.number()) | 1 << 101));
            apart.emits = emits;
            self.inner.commit(apart).await?;
            if commit.fence == fence {
                commit.fence.version += 1;
            }
        }
        self.inner.commit(commit).await
    }

    /// Lanes that become plain keep a record for now; lanes that were found empty before lose theirs.
    async fn release_in_two_steps(&self, mut commit: Commit) -> Result<Committed> {
        let due: Vec<LaneName> = {
            let mut state = self.state.lock();
            let lanes = state.empty.get_mut(&commit.seat);
            lanes.map(|lanes| lanes.drain(..lanes.len().min(1)).collect()).unwrap_or_default()
        };
        let mut emptied = Vec::new();
        for change in commit.lanes.iter_mut().filter(|change| change.record.is_none()) {
            emptied.push(change.lane.clone());
            change.record = Some(LaneRecord::new(change.lane.clone()));
        }
        for lane in due {
            let select = LaneSelect::Names(vec![lane.clone()]);
            let views =
                self.inner.lanes(Lanes { seat: commit.seat, select, siding: 10_000, states: true }).await?;
            let siding = views.first().map(|view| view.siding.clone()).unwrap_or_default();
            commit.lanes.retain(|change| change.lane != lane);
            commit.lanes.push(LaneChange { lane, record: None, side: Vec::new(), unside: siding });
        }
        let seat = commit.seat;
        let committed = self.inner.commit(commit).await?;
        self.state.lock().empty.entry(seat).or_default().extend(emptied);
        Ok(committed)
    }

    /// A term that begins anew after an owner that left in good order.
    async fn seize_anew(&self, seize: Seize) -> Result<Resume> {
        let mut seize = seize;
        let seat = seize.seat;
        if let (Some(expect), Some(stored)) = (&mut seize.expect, self.fence(seat).await?) {
            let told = self.state.lock().told.get(&(seat, stored.nonce)).copied();
            if told == Some(expect.term) {
                expect.term = stored.term;
            }
        }
        let mut resume = self.inner.seize(seize).await?;
        let fence = &mut resume.progress.fence;
        let mut state = self.state.lock();
        let next = state.next_term.entry(seat).or_insert(1);
        *next = if resume.progress.clean { 1 } else { *next + 1 };
        let term = Term(*next);
        state.told.insert((seat, fence.nonce), term);
        fence.term = term;
        Ok(resume)
    }

    async fn commit_anew(&self, mut commit: Commit) -> Result<Committed> {
        let told = self.state.lock().told.get(&(commit.seat, commit.fence.nonce)).copied();
        if let Some(stored) = self.fence(commit.seat).await?
            && told == Some(commit.fence.term)
            && stored.nonce == commit.fence.nonce
        {
            let outside = commit.fence.term;
            commit.fence.term = stored.term;
            let committed = self.inner.commit(commit).await?;
            return Ok(Committed { fence: Fence { term: outside, ..committed.fence }, ..committed });
        }
        self.inner.commit(commit).await
    }

    fn show_early_ends(&self, shard: Shard, views: &mut [JobView]) {
        for (found, end) in &self.state.lock().early_ends {
            for view in views.iter_mut() {
                let pending = matches!(&view.state, JobState::Pending { id, .. } if *id == end.id);
                if *found == shard && pending {
                    let keep_until = Timestamp(u64::MAX);
                    view.state = JobState::Ended { end: Box::new(end.clone()), result: None, keep_until };
                }
            }
        }
    }

    /// Owners as they are told outside.
    fn retold(&self, shard: Shard, rows: Rows) -> Rows {
        let Rows::Seats(info, mut seats) = rows else { return rows };
        let state = self.state.lock();
        for view in &mut seats {
            let seat = Seat { shard, processor: view.processor };
            if let Some(term) = state.told.get(&(seat, view.progress.fence.nonce)) {
                view.progress.fence.term = *term;
            }
        }
        Rows::Seats(info, seats)
    }
}

#[async_trait]
impl Store for Planted {
    fn clock_report(&self) -> Option<laneway_core::ClockReport> {
        self.inner.clock_report()
    }

    async fn held(&self) -> Result<Vec<laneway_core::store::Held>> {
        self.inner.held().await
    }

    fn about(&self) -> About {
        let about = self.inner.about();
        // An owner that hears of another life drops its seats by itself: here none hears of it.
        if self.plant == Plant::FenceWithoutAdoptions {
            return About { incarnation: self.first_life, ..about };
        }
        about
    }

    async fn define(&self, define: Define) -> Result<Defined> {
        self.inner.define(define).await
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        match self.plant {
            Plant::AckBeforeSync => self.append_buffered(append).await,
            Plant::RetryAfterSyncError => self.append_unsynced(append).await,
            _ => self.inner.append(append).await,
        }
    }

    async fn promote(&self, promote: Promote) -> Result<Promoted> {
        self.flush(promote.shard).await?;
        self.inner.promote(promote).await
    }

    async fn read(&self, read: Read) -> Result<Page> {
        // The buffer is written after a while, or when somebody would notice that it is not.
        let due = self.state.lock().rng.u8(0..4) == 0;
        if due {
            self.flush(read.shard).await?;
        }
        self.inner.read(read).await
    }

    async fn seize(&self, mut seize: Seize) -> Result<Resume> {
        match self.plant {
            Plant::RescueByIdOnly => {
                let stored = self.fence(seize.seat).await?.unwrap_or_default();
                if stored.nonce != seize.nonce {
                    seize.expect =
                        (stored.term.0 > 0).then_some(Owner { term: stored.term, nonce: stored.nonce });
                }
                self.inner.seize(seize).await
            }
            Plant::TokenPerNode => self.inner.seize(Seize { nonce: NODE_NONCE, ..seize }).await,
            Plant::TermResetOnRelease => self.seize_anew(seize).await,
            _ => self.inner.seize(seize).await,
        }
    }

    async fn lanes(&self, lanes: Lanes) -> Result<Vec<LaneView>> {
        self.inner.lanes(lanes).await
    }

    async fn commit(&self, mut commit: Commit) -> Result<Committed> {
        match self.plant {
            Plant::EmitOutsideTheCommit => return self.emit_apart(commit).await,
            Plant::TwoStepRelease => return self.release_in_two_steps(commit).await,
            Plant::TermResetOnRelease => return self.commit_anew(commit).await,
            Plant::ResultBeforeCommit => {
                let shard = commit.seat.shard;
                let ends = commit.jobs.iter().map(|end| (shard, end.clone()));
                self.state.lock().early_ends.extend(ends);
            }
            _ => self.forge(&mut commit).await?,
        }
        self.inner.commit(commit).await
    }

    async fn request(&self, request: Request) -> Result<Accepted> {
        self.inner.request(request).await
    }

    async fn jobs(&self, jobs: Jobs) -> Result<Vec<JobView>> {
        let shard = if let Jobs::Get { shard, .. } = &jobs { Some(*shard) } else { None };
        let mut views = self.inner.jobs(jobs).await?;
        if let Some(shard) = shard {
            self.show_early_ends(shard, &mut views);
        }
        Ok(views)
    }

    async fn stash(&self, stash: Stash) -> Result<()> {
        self.inner.stash(stash).await
    }

    async fn query(&self, query: Query) -> Result<Rows> {
        let shard = if let Query::Seats(shard) = &query { Some(*shard) } else { None };
        let rows = self.inner.query(query).await?;
        Ok(match shard {
            Some(shard) if self.plant == Plant::TermResetOnRelease => self.retold(shard, rows),
            _ => rows,
        })
    }

    async fn trim(&self, trim: Trim) -> Result<Trimmed> {
        self.inner.trim(trim).await
    }
}
