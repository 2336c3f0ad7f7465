//! Owners: they take seats from each other, settle, repeat themselves and try with old fences.
//!
//! An owner works from what it learned when it took the seat and from its own commits, never from a fresh look: if
//! a store accepted it after it had lost the seat, lanes would be settled twice, and the checkers see that.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use laneway_core::store::{
    Append, Commit, Committed, LaneSelect, Lanes, Origin, Owner as Holder, Query, Rows, SeatView, Seize,
    Source,
};
use laneway_core::{ConflictReason, EventId, Fence, LaneName, Seat, StoreError, Window};

use super::World;
use crate::check::{AppendRecord, CommitRecord, Grant, Outcome, Settled};

/// One owner of one seat, or somebody who wants to be.
pub(crate) struct Owner {
    pub(super) world: Arc<World>,
    pub(super) seat: Seat,
    pub(super) random: fastrand::Rng,
    pub(super) held: Option<Held>,
    last: Option<(Commit, Committed)>,
}

/// What an owner knows.
pub(super) struct Held {
    pub(super) fence: Fence,
    pub(super) window: Window,
    /// Lanes that have a siding.
    pub(super) sidings: BTreeMap<LaneName, Vec<EventId>>,
    pub(super) incarnation: u32,
    pub(super) forwarded: u64,
    pub(super) request_no: u64,
}

/// A commit with the events that it ends and what the owner knows once it is accepted.
pub(super) struct Plan {
    pub(super) commit: Commit,
    pub(super) settled: Vec<Settled>,
    pub(super) sidings: BTreeMap<LaneName, Vec<EventId>>,
}

impl Owner {
    pub(crate) fn new(world: Arc<World>, seat: Seat, seed: u64) -> Self {
        Self { world, seat, random: fastrand::Rng::with_seed(seed), held: None, last: None }
    }

    /// Works for so many steps among others.
    pub(crate) async fn compete(mut self, steps: usize) {
        for _ in 0..steps {
            match self.random.u8(0..20) {
                0..13 => self.settle().await,
                13..15 => self.forward().await,
                15..17 => self.repeat().await,
                17 => self.try_an_old_fence().await,
                _ => self.held = None,
            }
            tokio::task::yield_now().await;
        }
    }

    /// Works alone until everything is settled and forwarded.
    pub(crate) async fn drain(mut self) {
        for _ in 0..10_000 {
            self.settle().await;
            self.forward().await;
            let view = self.view().await;
            let (head, done) = (self.head().await, view.progress.forwarded == view.progress.emitted);
            let idle = self.held.as_ref().is_some_and(|held| held.sidings.is_empty());
            if idle && done && view.progress.window.floor() == head {
                return;
            }
        }
        panic!("seat {} is not settled after 10,000 steps", self.seat);
    }

    async fn seats(&self) -> (EventId, Vec<SeatView>) {
        match self.world.store.query(Query::Seats(self.seat.shard)).await {
            Ok(Rows::Seats(info, seats)) => (info.head, seats),
            other => panic!("seats were asked for: {other:?}"),
        }
    }

    async fn head(&self) -> EventId {
        self.seats().await.0
    }

    async fn view(&self) -> SeatView {
        let found = self.seats().await.1.into_iter().find(|view| view.processor == self.seat.processor);
        found.expect("the seat is registered")
    }

    /// Takes the seat from whoever has it now.
    async fn seize(&mut self) {
        let before = self.view().await.progress.fence;
        // Somebody else may take it meanwhile.
        tokio::task::yield_now().await;
        let expect = (before.term.0 > 0).then_some(Holder { term: before.term, nonce: before.nonce });
        let seize = Seize {
            seat: self.seat,
            incarnation: self.world.store.about().incarnation,
            expect,
            nonce: self.world.nonce(),
            node: Bytes::from_static(b"node"),
        };
        let world = self.world.clone();
        let resume = match world.insist(|| world.store.seize(seize.clone())).await.0 {
            Ok(resume) => resume,
            Err(StoreError::Fenced { .. }) => return world.sometimes.hit("a seizure came too late"),
            Err(error) => panic!("seize failed: {error}"),
        };
        world.history.lock().grants.push(Grant { seat: self.seat, fence: resume.progress.fence });
        let select = LaneSelect::Blocked { kind: None, after: None, limit: 10_000 };
        let lanes = Lanes { seat: self.seat, select, siding: 10_000, states: true };
        let views = world.store.lanes(lanes).await.expect("the seat is registered");
        let sidings = views.into_iter().filter(|view| !view.siding.is_empty());
        self.held = Some(Held {
            fence: resume.progress.fence,
            window: resume.progress.window,
            sidings: sidings.map(|view| (view.record.lane, view.siding)).collect(),
            incarnation: resume.progress.incarnation,
            forwarded: resume.progress.forwarded,
            request_no: resume.request_no,
        });
    }

    async fn settle(&mut self) {
        if self.held.is_none() {
            self.seize().await;
        }
        let Some(plan) = self.plan().await else { return };
        self.commit(plan).await;
    }

    async fn commit(&mut self, plan: Plan) {
        let began = self.world.tick();
        let world = self.world.clone();
        let (answer, unknown) = world.insist(|| world.store.commit(plan.commit.clone())).await;
        let outcome = match &answer {
            Ok(committed) => Outcome::Answered(*committed),
            Err(StoreError::Fenced { .. }) if unknown => Outcome::Unknown,
            Err(StoreError::Fenced { .. }) => Outcome::Refused,
            Err(error) => panic!("commit of {}: {error}", self.seat),
        };
        let record = CommitRecord { began, commit: plan.commit.clone(), settled: plan.settled, outcome };
        world.history.lock().commits.push(record);
        let Ok(committed) = answer else {
            world.sometimes.hit("a commit was fenced");
            self.held = None;
            return;
        };
        let held = self.held.as_mut().expect("only an owner commits");
        held.window.pass(&plan.commit.passed, &[]);
        assert_eq!(held.window.floor(), committed.floor, "the floor follows from what is passed");
        held.fence = committed.fence;
        held.sidings = plan.sidings;
        held.request_no = committed.request_no;
        held.forwarded = plan.commit.forwarded.unwrap_or(held.forwarded);
        self.last = Some((plan.commit, committed));
    }

    /// Sends the last commit again, as after a lost answer.
    async fn repeat(&mut self) {
        let Some((commit, committed)) = self.last.clone() else { return };
        let world = self.world.clone();
        match world.insist(|| world.store.commit(commit.clone())).await.0 {
            Ok(again) => {
                assert_eq!(
                    (again.fence, again.floor),
                    (committed.fence, committed.floor),
                    "a repeat answers the same"
                );
                world.sometimes.hit("a repeated commit was answered the same");
            }
            Err(StoreError::Fenced { .. }) => world.sometimes.hit("a late repeat was fenced"),
            Err(error) => panic!("a repeat failed: {error}"),
        }
    }

    /// Sends what it would commit under a fence that is not the stored one in one part.
    async fn try_an_old_fence(&mut self) {
        let Some(mut plan) = self.plan().await else { return };
        let fence = &mut plan.commit.fence;
        match self.random.u8(0..3) {
            0 => fence.term.0 -= 1,
            1 => fence.nonce.0 ^= 1,
            _ => fence.version += 1_000_000,
        }
        let began = self.world.tick();
        let world = self.world.clone();
        let (answer, _) = world.insist(|| world.store.commit(plan.commit.clone())).await;
        match answer {
            Err(StoreError::Fenced { .. }) => world.sometimes.hit("an old fence was refused"),
            Err(error) => panic!("a commit under an old fence: {error}"),
            Ok(committed) => {
                let outcome = Outcome::Answered(committed);
                let record = CommitRecord { began, commit: plan.commit, settled: plan.settled, outcome };
                world.history.lock().commits.push(record);
            }
        }
    }

    /// Appends what is in the outbox to its target; the next commit says so.
    async fn forward(&mut self) {
        let Some(held) = &mut self.held else { return };
        let world = self.world.clone();
        let rows = match world.store.query(Query::Outbox(self.seat, held.forwarded, 20)).await {
            Ok(Rows::Outbox(rows)) => rows,
            other => panic!("the outbox was asked for: {other:?}"),
        };
        let Some(last) = rows.last().map(|row| row.number) else { return };
        let mut drafts: Vec<_> = rows.into_iter().map(|row| (row.number, row.emit.draft)).collect();
        drafts.iter_mut().for_each(|(number, draft)| draft.origin_seq = Some(*number));
        let source = Source::Outbox {
            shard: self.seat.shard,
            processor: self.seat.processor,
            incarnation: held.incarnation,
            adoptions: held.fence.adoptions,
        };
        let append = Append {
            shard: world.target.shard,
            incarnation: world.store.about().incarnation,
            layout: world.target.stream.layout,
            origin: Some(Origin { source, term: held.fence.term }),
            drafts: drafts.into_iter().map(|(_, draft)| draft).collect(),
            object: None,
        };
        let (answer, unknown) = world.insist(|| world.store.append(append.clone())).await;
        let outcome = match answer {
            Ok(appended) => {
                held.forwarded = last;
                world.sometimes.hit("emits were forwarded");
                Outcome::Answered(appended.receipts)
            }
            Err(StoreError::Conflict(conflict)) => {
                assert!(matches!(conflict.reason, ConflictReason::OriginTerm { .. }), "{conflict:?}");
                self.held = None;
                if unknown { Outcome::Unknown } else { Outcome::Refused }
            }
            Err(error) => panic!("forwarding failed: {error}"),
        };
        let record = AppendRecord { shard: append.shard, drafts: append.drafts, outcome };
        world.history.lock().appends.push(record);
    }
}
