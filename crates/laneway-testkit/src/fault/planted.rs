//! Stores with one known bug each, made from a right one.
//!
//! Each bug is what a plausible mistake in a store would do, seen from outside: it breaks a rule of
//! `docs/design/rules.md` that concerns a store. Those of workers (token per node, two-step release, local clock in
//! expiry) belong to the engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use laneway_core::store::{
    About, Accepted, Append, Appended, Commit, Committed, Define, Defined, Entry, JobState, JobView, Jobs,
    LaneView, Lanes, Origin, Owner, Page, Promote, Promoted, Query, Read, ReadFrom, Receipt, Request, Resume,
    Rows, SeatView, Seize, Source, Stash, Trim, Trimmed,
};
use laneway_core::{
    CommitId, EventId, Fence, Nonce, Passed, Result, Seat, Shard, ShardInfo, Store, StoreError, Timestamp,
};
use parking_lot::Mutex;

/// The bugs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A commit is accepted under any nonce.
    SkipNonceCheck,
    /// A commit is accepted under any version (contract 1.8).
    SkipVersionCheck,
    /// A commit is accepted under any term.
    SkipTermCheck,
    /// A commit is accepted although the shard was adopted since.
    SkipAdoptionCheck,
    /// Emits of a commit are written before its fence is compared.
    EmitOutsideTheCommit,
    /// Ends of jobs are shown before the commit that holds them is accepted.
    ResultBeforeCommit,
    /// A seat is taken from whoever has it, not only from the expected owner.
    RescueByIdOnly,
    /// An owner that comes again keeps its old term.
    TermReused,
    /// An unanswered commit that is repeated is applied again.
    RepeatAppliesTwice,
    /// A dedup id is compared without its body.
    IgnoreDedupBody,
    /// Dedup ids are forgotten at once.
    ForgetDedup,
    /// Numbers of an origin are not remembered.
    ForgetOrigin,
    /// `expect_prev` is not compared.
    IgnoreExpectPrev,
    /// Events are trimmed that a processor has not passed.
    TrimPastUnprocessed,
    /// An append is acknowledged before it is applied, and every seventh is then lost.
    AckBeforeApply,
    /// Events that were never appended are read.
    InventEvents,
    /// A request's token is not remembered.
    ForgetTokens,
    /// Part of a call is written although another draft of it conflicts.
    PartialAppend,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::SkipNonceCheck,
        Self::SkipVersionCheck,
        Self::SkipTermCheck,
        Self::SkipAdoptionCheck,
        Self::EmitOutsideTheCommit,
        Self::ResultBeforeCommit,
        Self::RescueByIdOnly,
        Self::TermReused,
        Self::RepeatAppliesTwice,
        Self::IgnoreDedupBody,
        Self::ForgetDedup,
        Self::ForgetOrigin,
        Self::IgnoreExpectPrev,
        Self::TrimPastUnprocessed,
        Self::AckBeforeApply,
        Self::InventEvents,
        Self::ForgetTokens,
        Self::PartialAppend,
    ];

    /// Cases that notice this bug, as `module::name`: the ones written for the rule it breaks.
    pub fn known(self) -> &'static [&'static str] {
        match self {
            Self::SkipNonceCheck | Self::SkipTermCheck => &["commit::every_part_of_the_fence_is_compared"],
            Self::SkipVersionCheck => &[
                "commit::every_part_of_the_fence_is_compared",
                "commit::only_the_last_commit_can_be_repeated",
            ],
            Self::SkipAdoptionCheck => &["adoption::an_adoption_fences_the_old_owner"],
            Self::EmitOutsideTheCommit => &["commit::nothing_of_a_refused_commit_is_there"],
            Self::ResultBeforeCommit => &["jobs::no_result_without_its_commit"],
            Self::RescueByIdOnly => &["seize::a_seat_is_taken_only_from_the_expected_owner"],
            Self::TermReused => &["seize::every_owner_has_a_higher_term"],
            Self::RepeatAppliesTwice => &["commit::a_repeated_commit_answers_the_same_and_applies_nothing"],
            Self::IgnoreDedupBody => &["append_again::a_dedup_id_with_another_body_conflicts"],
            Self::ForgetDedup => &["append_again::a_repeated_dedup_id_answers_the_first_receipt"],
            Self::ForgetOrigin => &["append_again::an_origin_number_is_taken_once"],
            Self::IgnoreExpectPrev => &["append::expect_prev_compares_with_the_lanes_last_event"],
            Self::TrimPastUnprocessed => &["trim::unprocessed_events_are_never_trimmed"],
            Self::AckBeforeApply => &["query::keys_are_opaque_bytes"],
            Self::InventEvents => &["read::events_come_in_order_after_an_id"],
            Self::ForgetTokens => &["request::a_repeated_token_answers_the_first_number"],
            Self::PartialAppend => &["append::one_conflict_writes_nothing_of_the_call"],
        }
    }
}

/// A store with one bug.
pub struct Planted {
    inner: Arc<dyn Store>,
    bug: Bug,
    calls: AtomicU64,
    /// Ends of jobs that no commit has brought yet.
    early_ends: Mutex<Vec<(Shard, laneway_core::store::JobEnd)>>,
    /// First grants of each seat.
    first_grants: Mutex<Vec<(Seat, Fence)>>,
}

impl Planted {
    /// This store with this bug.
    pub fn new(inner: Arc<dyn Store>, bug: Bug) -> Self {
        let (early_ends, first_grants) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        Self { inner, bug, calls: AtomicU64::new(1), early_ends, first_grants }
    }

    fn number(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed)
    }

    async fn seats(&self, shard: Shard) -> Result<(ShardInfo, Vec<SeatView>)> {
        match self.inner.query(Query::Seats(shard)).await? {
            Rows::Seats(info, seats) => Ok((info, seats)),
            other => Err(StoreError::Corrupt { what: format!("seats were asked for: {other:?}") }),
        }
    }

    async fn fence(&self, seat: Seat) -> Result<Option<Fence>> {
        let seats = self.seats(seat.shard).await?.1;
        let found = seats.into_iter().find(|view| view.processor == seat.processor);
        Ok(found.map(|view| view.progress.fence))
    }

    /// A commit as a store would judge it that does not compare one part of the fence.
    async fn forge_fence(&self, mut commit: Commit) -> Result<Commit> {
        let Some(stored) = self.fence(commit.seat).await? else { return Ok(commit) };
        let mut forged = commit.fence;
        match self.bug {
            Bug::SkipNonceCheck => forged.nonce = stored.nonce,
            Bug::SkipVersionCheck => forged.version = stored.version,
            Bug::SkipTermCheck => forged.term = stored.term,
            Bug::SkipAdoptionCheck => forged.adoptions = self.seats(commit.seat.shard).await?.0.adoptions,
            _ => {}
        }
        // A store without a check of adoptions would accept the fence it gave out before.
        if self.bug == Bug::SkipAdoptionCheck
            && forged.adoptions != commit.fence.adoptions
            && forged.term == stored.term
        {
            forged = self.reseize(commit.seat, stored).await?;
        }
        commit.fence = forged;
        Ok(commit)
    }

    async fn reseize(&self, seat: Seat, stored: Fence) -> Result<Fence> {
        let expect = Some(Owner { term: stored.term, nonce: stored.nonce });
        let (incarnation, nonce) =
            (self.inner.about().incarnation, Nonce(u128::from(self.number()) | 1 << 100));
        let seize = Seize { seat, incarnation, expect, nonce, node: bytes::Bytes::new() };
        Ok(self.inner.seize(seize).await?.progress.fence)
    }

    /// Emits first, in a step of their own under whatever fence is stored, then the rest.
    async fn emit_apart(&self, mut commit: Commit) -> Result<Committed> {
        let emits = std::mem::take(&mut commit.emits);
        let stored = self.fence(commit.seat).await?;
        let emitted_apart = !emits.is_empty() && stored.is_some_and(|fence| fence.term.0 > 0);
        if let (true, Some(fence)) = (emitted_apart, stored) {
            let mut apart = Commit::new(commit.seat, fence, CommitId(u128::from(self.number()) | 1 << 101));
            apart.emits = emits;
            self.inner.commit(apart).await?;
            if commit.fence == fence {
                commit.fence.version += 1;
            }
        }
        self.inner.commit(commit).await
    }

    async fn seize_carelessly(&self, mut seize: Seize) -> Result<Resume> {
        let stored = self.fence(seize.seat).await?.unwrap_or_default();
        if stored.nonce != seize.nonce {
            seize.expect = (stored.term.0 > 0).then_some(Owner { term: stored.term, nonce: stored.nonce });
        }
        self.inner.seize(seize).await
    }

    async fn seize_with_old_term(&self, seize: Seize) -> Result<Resume> {
        let seat = seize.seat;
        let mut resume = self.inner.seize(seize).await?;
        let mut grants = self.first_grants.lock();
        match grants.iter().find(|(found, _)| *found == seat) {
            Some((_, first)) => resume.progress.fence.term = first.term,
            None => grants.push((seat, resume.progress.fence)),
        }
        Ok(resume)
    }

    async fn append_carelessly(&self, mut append: Append) -> Result<Appended> {
        for draft in &mut append.drafts {
            match (self.bug, &mut draft.dedup) {
                (Bug::IgnoreDedupBody, Some(dedup)) => dedup.body = 0,
                (Bug::ForgetDedup, dedup) => *dedup = None,
                _ => {}
            }
            if self.bug == Bug::IgnoreExpectPrev {
                draft.expect_prev = None;
            }
        }
        if self.bug == Bug::ForgetOrigin
            && let Some(origin) = &mut append.origin
        {
            *origin = Origin {
                source: Source::Named(self.number().to_be_bytes().to_vec().into()),
                term: origin.term,
            };
        }
        self.inner.append(append).await
    }

    async fn append_one_by_one(&self, append: Append) -> Result<Appended> {
        let mut whole: Option<Appended> = None;
        for draft in append.drafts.clone() {
            let one = self.inner.append(Append { drafts: vec![draft], ..append.clone() }).await?;
            match &mut whole {
                Some(whole) => whole.receipts.extend(one.receipts),
                None => whole = Some(one),
            }
        }
        match whole {
            Some(whole) => Ok(whole),
            None => self.inner.append(append).await,
        }
    }

    /// Acknowledges, and loses every seventh call.
    async fn append_forgetfully(&self, append: Append) -> Result<Appended> {
        if append.drafts.is_empty() || !self.number().is_multiple_of(7) {
            return self.inner.append(append).await;
        }
        let head = self.seats(append.shard).await?.0.head;
        let receipts = (0..append.drafts.len() as u64).map(|index| Receipt::New {
            id: EventId(head.0 + index + 1),
            prev: None,
            seq: None,
            job: None,
        });
        let durability = self.inner.about().capabilities.durability;
        Ok(Appended { receipts: receipts.collect(), durability, object_version: None, dedup_evicted: 0 })
    }

    async fn trim_too_far(&self, trim: Trim) -> Result<Trimmed> {
        let (info, seats) = self.seats(trim.shard).await?;
        // As if the floors of all seats were at the head: passes everything first, then trims.
        for view in seats.iter().filter(|view| view.progress.fence.term.0 > 0) {
            let seat = Seat { shard: trim.shard, processor: view.processor };
            let fence = Fence { adoptions: info.adoptions, ..view.progress.fence };
            let mut commit = Commit::new(seat, fence, CommitId(u128::from(self.number()) | 1 << 102));
            commit.passed = (info.trimmed.0 + 1..=info.head.0).map(EventId).collect::<Passed>();
            self.inner.commit(commit).await?;
        }
        self.inner.trim(trim).await
    }

    async fn read_inventively(&self, read: Read) -> Result<Page> {
        let mut page = self.inner.read(read).await?;
        if let Some(Entry::Event(last)) = page.entries.last().cloned()
            && last.id == page.head
        {
            let invented = laneway_core::Event {
                id: last.id.next(),
                data: bytes::Bytes::from_static(b"invented"),
                ..last
            };
            page.entries.push(Entry::Event(invented));
        }
        Ok(page)
    }

    /// Shows an end that its commit has not brought.
    fn show_early_ends(&self, shard: Shard, views: &mut [JobView]) {
        for (found, end) in self.early_ends.lock().iter() {
            for view in views.iter_mut() {
                let pending = matches!(&view.state, JobState::Pending { id, .. } if *id == end.id);
                if *found == shard && pending {
                    let keep_until = Timestamp(u64::MAX);
                    view.state = JobState::Ended { end: Box::new(end.clone()), result: None, keep_until };
                }
            }
        }
    }

    async fn commit_again(&self, mut commit: Commit) -> Result<Committed> {
        let stored = self.fence(commit.seat).await?.unwrap_or_default();
        let repeats =
            stored.version == commit.fence.version.wrapping_add(1) && stored.nonce == commit.fence.nonce;
        if repeats {
            commit.fence.version = stored.version;
        }
        self.inner.commit(commit).await
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
        self.inner.about()
    }

    async fn define(&self, define: Define) -> Result<Defined> {
        self.inner.define(define).await
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        match self.bug {
            Bug::AckBeforeApply => self.append_forgetfully(append).await,
            Bug::PartialAppend => self.append_one_by_one(append).await,
            _ => self.append_carelessly(append).await,
        }
    }

    async fn promote(&self, promote: Promote) -> Result<Promoted> {
        self.inner.promote(promote).await
    }

    async fn read(&self, read: Read) -> Result<Page> {
        match (self.bug, &read.from) {
            (Bug::InventEvents, ReadFrom::After(_)) => self.read_inventively(read).await,
            _ => self.inner.read(read).await,
        }
    }

    async fn seize(&self, seize: Seize) -> Result<Resume> {
        match self.bug {
            Bug::RescueByIdOnly => self.seize_carelessly(seize).await,
            Bug::TermReused => self.seize_with_old_term(seize).await,
            _ => self.inner.seize(seize).await,
        }
    }

    async fn lanes(&self, lanes: Lanes) -> Result<Vec<LaneView>> {
        self.inner.lanes(lanes).await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed> {
        match self.bug {
            Bug::SkipNonceCheck | Bug::SkipVersionCheck | Bug::SkipTermCheck | Bug::SkipAdoptionCheck => {
                self.inner.commit(self.forge_fence(commit).await?).await
            }
            Bug::EmitOutsideTheCommit => self.emit_apart(commit).await,
            Bug::RepeatAppliesTwice => self.commit_again(commit).await,
            Bug::ResultBeforeCommit => {
                let shard = commit.seat.shard;
                self.early_ends.lock().extend(commit.jobs.iter().map(|end| (shard, end.clone())));
                self.inner.commit(commit).await
            }
            Bug::TermReused => {
                let mut commit = commit;
                if let Some(stored) =
                    self.fence(commit.seat).await?.filter(|stored| stored.nonce == commit.fence.nonce)
                {
                    commit.fence.term = stored.term;
                }
                self.inner.commit(commit).await
            }
            _ => self.inner.commit(commit).await,
        }
    }

    async fn request(&self, mut request: Request) -> Result<Accepted> {
        if self.bug == Bug::ForgetTokens {
            request.token = laneway_core::TokenId(u128::from(self.number()) | 1 << 103);
        }
        self.inner.request(request).await
    }

    async fn jobs(&self, jobs: Jobs) -> Result<Vec<JobView>> {
        let shard = match &jobs {
            Jobs::Get { shard, .. } => Some(*shard),
            _ => None,
        };
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
        self.inner.query(query).await
    }

    async fn trim(&self, trim: Trim) -> Result<Trimmed> {
        match self.bug {
            Bug::TrimPastUnprocessed => self.trim_too_far(trim).await,
            _ => self.inner.trim(trim).await,
        }
    }
}
