//! One client of the store, who forgets everything between two steps: step `n` depends only on the seed, on `n`
//! and on what the store answers. So the same step on a store with the same content makes the same call, and a
//! memory store tells what a file store must hold after it.

use std::time::Duration;

use bytes::Bytes;
use laneway_core::event::Dedup;
use laneway_core::store::{
    Append, Appended, Jobs, ObjectWrite, Origin, Owner, Promote, Query, Request, RequestOp, Rows, SeatView,
    Seize, Source, Stash, Trim, Trimmed,
};
use laneway_core::{
    Delay, DelayMode, Draft, Durability, EventId, FullReason, Headers, JobDraft, JobNumber, Key, Kind,
    LaneName, Nonce, Result, Seat, ShardInfo, StartAfter, StoreError, Term, TokenId,
};

use super::settle;
use super::world::{Ground, Territory, Whole};

const LANES: u64 = 7;

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sort {
    Append,
    Commit,
    Seize,
    Other,
}

/// A step and its answer as text; refusals by the rules are answers too.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) kind: Sort,
    /// What was answered, or which trouble of the store itself came instead.
    pub(crate) answer: Result<String>,
}

/// Whether the store itself is in trouble, in contrast to an answer by the rules.
pub(crate) fn is_trouble(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Unknown { .. }
            | StoreError::Down { .. }
            | StoreError::Corrupt { .. }
            | StoreError::Full(FullReason::Store { .. })
    )
}

pub(super) fn told<T: std::fmt::Debug>(kind: Sort, answer: Result<T>) -> Step {
    let answer = match answer {
        Ok(value) => Ok(format!("{value:?}")),
        Err(error) if is_trouble(&error) => Err(error),
        Err(error) => Ok(format!("{error:?}")),
    };
    Step { kind, answer }
}

/// The dice of one step.
fn dice(seed: u64, actor: usize, step: u64) -> fastrand::Rng {
    let mix = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ ((actor as u64 + 1) << 40) ^ step;
    fastrand::Rng::with_seed(xxhash_rust::xxh3::xxh3_64(&mix.to_le_bytes()))
}

/// One client.
pub(crate) struct Actor<'a> {
    pub(crate) store: &'a dyn Whole,
    pub(crate) territory: &'a Territory,
    pub(crate) seed: u64,
}

/// One step under way.
pub(super) struct Turn<'a> {
    pub(super) store: &'a dyn Whole,
    pub(super) territory: &'a Territory,
    pub(super) rng: fastrand::Rng,
    pub(super) number: u64,
}

impl Actor<'_> {
    /// Makes exactly one changing call.
    pub(crate) async fn step(&self, number: u64) -> Step {
        let rng = dice(self.seed, self.territory.actor, number);
        let mut turn = Turn { store: self.store, territory: self.territory, rng, number };
        match turn.play().await {
            Ok(step) => step,
            // A look before the call failed, so there was no call.
            Err(error) => told(Sort::Other, Err::<(), _>(error)),
        }
    }
}

impl Turn<'_> {
    async fn play(&mut self) -> Result<Step> {
        let work = self.territory.work.clone();
        match self.rng.u8(0..40) {
            0..14 => Ok(self.append_work().await),
            14..17 => Ok(self.append_latest().await),
            17..28 => settle::commit(self, false).await,
            28 => self.seize().await,
            29 => Ok(told(Sort::Other, self.store.promote(Promote { shard: work.shard, limit: 5 }).await)),
            30..32 => Ok(self.trim(&work).await),
            32 => Ok(self.trim(&self.territory.latest).await),
            33..35 => self.request().await,
            35 => self.jobs().await,
            36 => self.stash().await,
            37 => self.document().await,
            38 => self.append_object().await,
            _ => settle::commit(self, true).await,
        }
    }

    pub(super) fn bytes(&mut self) -> Bytes {
        let len =
            if self.rng.u8(0..30) == 0 { 30_000 + self.rng.usize(0..10_000) } else { self.rng.usize(0..300) };
        let mut bytes = format!("{}-{}-", self.territory.actor, self.number).into_bytes();
        bytes.resize_with(bytes.len() + len, || self.rng.u8(..));
        bytes.into()
    }

    pub(super) fn key(&mut self) -> Key {
        Key::new(format!("lane-{}", self.rng.u64(0..LANES))).expect("a short key")
    }

    pub(super) fn draft(&mut self, index: usize) -> Draft {
        let key = (self.rng.u8(0..10) > 0).then(|| self.key());
        let kind = Kind::new("proof").expect("a short kind");
        let mut draft = Draft::new(key, kind, self.bytes());
        let seconds = self.rng.u64(1..120);
        match self.rng.u8(0..12) {
            0 => draft.priority = self.rng.u8(1..9),
            1 => draft.ttl = Some(Duration::from_secs(seconds)),
            2 => draft.headers = Headers::new([("step", self.number.to_string())]).expect("one short header"),
            3 | 4 => {
                let mode = if self.rng.bool() { DelayMode::Join } else { DelayMode::Hold };
                draft.delay = Some(Delay { until: StartAfter::Delay(Duration::from_secs(seconds)), mode });
            }
            // Now and then the name of the step before, which is then a duplicate or a conflict.
            5..9 => {
                let step = self.number - self.number.min(u64::from(self.rng.u8(0..8) == 0));
                let id = Bytes::from(format!("{step}-{index}"));
                draft.dedup = Some(Dedup { id, body: u128::from(step), window: Duration::from_secs(3_600) });
            }
            _ => {}
        }
        draft
    }

    fn append(&self, ground: &Ground, drafts: Vec<Draft>) -> Append {
        Append {
            shard: ground.shard,
            incarnation: self.store.about().incarnation,
            layout: ground.layout,
            origin: None,
            drafts,
            object: None,
        }
    }

    /// How durable it is differs between the stores on purpose.
    async fn send(&self, append: Append) -> Step {
        let answer = self.store.append(append).await;
        told(Sort::Append, answer.map(|appended| Appended { durability: Durability::Memory, ..appended }))
    }

    async fn append_work(&mut self) -> Step {
        let ground = self.territory.work.clone();
        let mut drafts: Vec<Draft> = (0..self.rng.usize(1..8)).map(|index| self.draft(index)).collect();
        for draft in &mut drafts {
            if self.rng.u8(0..4) == 0 {
                let keep = Duration::from_secs(self.rng.u64(1..150));
                draft.job = Some(JobDraft { responder: ground.processors[0], keep });
            }
        }
        let from_origin = self.rng.u8(0..5) == 0;
        if from_origin {
            for (index, draft) in drafts.iter_mut().enumerate() {
                draft.origin_seq = Some(self.number * 10 + index as u64);
            }
        }
        let mut append = self.append(&ground, drafts);
        let source = Source::Named(Bytes::from_static(b"input"));
        append.origin = from_origin.then_some(Origin { source, term: Term(1 + self.number / 100) });
        self.send(append).await
    }

    async fn append_latest(&mut self) -> Step {
        let ground = self.territory.latest.clone();
        let mut drafts: Vec<Draft> = (0..self.rng.usize(1..4)).map(|index| self.draft(index)).collect();
        for draft in &mut drafts {
            draft.key = Some(self.key());
            draft.incarnation = self.number / 200;
            draft.generation =
                (self.rng.u8(0..3) == 0).then(|| self.number - self.rng.u64(0..self.number.min(5) + 1));
            draft.delete = self.rng.u8(0..40) == 0;
        }
        self.send(self.append(&ground, drafts)).await
    }

    async fn append_object(&mut self) -> Result<Step> {
        let ground = self.territory.work.clone();
        let key = self.key();
        let Rows::Lane(tail) = self.store.query(Query::Lane(ground.shard, key.clone())).await? else {
            panic!("a lane was asked for");
        };
        let kind = Kind::new("object").expect("a short kind");
        let mut draft = Draft::new(Some(key), kind, self.bytes());
        draft.expect_prev = self.rng.bool().then(|| tail.as_ref().map(|tail| tail.id));
        let version = tail.and_then(|tail| tail.object).map_or(0, |object| object.version);
        let value = (self.rng.u8(0..4) > 0).then(|| self.bytes());
        // A removed object keeps its number, which is not answered: then the expectation is refused.
        let object = ObjectWrite { expect: self.rng.bool().then_some(version), value };
        Ok(self.send(Append { object: Some(object), ..self.append(&ground, vec![draft]) }).await)
    }

    /// A seat of the actor, with the shard it is on.
    pub(super) async fn seat(&mut self) -> Result<(Seat, ShardInfo, SeatView)> {
        let all: Vec<Seat> = self.territory.grounds().into_iter().flat_map(Ground::seats).collect();
        // Those of the queue have most to do.
        let seat = all[[0, 0, 1, 1, 2][self.rng.usize(0..5)]];
        let Rows::Seats(info, seats) = self.store.query(Query::Seats(seat.shard)).await? else {
            panic!("seats were asked for");
        };
        let view =
            seats.into_iter().find(|view| view.processor == seat.processor).expect("a seat of this world");
        Ok((seat, info, view))
    }

    async fn seize(&mut self) -> Result<Step> {
        let (seat, _, view) = self.seat().await?;
        Ok(self.take(seat, &view).await)
    }

    pub(super) async fn take(&mut self, seat: Seat, view: &SeatView) -> Step {
        let fence = view.progress.fence;
        let expect = (fence.term.0 > 0).then_some(Owner { term: fence.term, nonce: fence.nonce });
        let incarnation = self.store.about().incarnation;
        let nonce = Nonce(self.rng.u128(..));
        let node = Bytes::from_static(b"proof");
        told(Sort::Seize, self.store.seize(Seize { seat, incarnation, expect, nonce, node }).await)
    }

    async fn request(&mut self) -> Result<Step> {
        let (seat, info, _) = self.seat().await?;
        let op = match self.rng.u8(0..3) {
            0 => RequestOp::Cancel { id: info.head },
            1 => RequestOp::Pause { lane: Some(LaneName::Key(self.key())), by: Bytes::from_static(b"me") },
            _ => RequestOp::Settle { claim: Bytes::from_static(b"claim"), answer: self.bytes() },
        };
        // Now and then the token of the step before.
        let token = TokenId(u128::from(self.number - self.number.min(u64::from(self.rng.u8(0..5) == 0))));
        Ok(told(Sort::Other, self.store.request(Request { seat, token, op }).await))
    }

    async fn jobs(&mut self) -> Result<Step> {
        let shard = self.territory.work.shard;
        let Rows::Ended(ended) = self.store.query(Query::Ended(shard, EventId(0), 20)).await? else {
            panic!("ended jobs were asked for");
        };
        let Rows::Scheduled(scheduled) = self.store.query(Query::Scheduled(shard, 0, 20)).await? else {
            panic!("the schedule was asked for");
        };
        let jobs = match (ended.ends.first(), scheduled.last()) {
            (Some(end), _) if self.rng.bool() => Jobs::Forget { shard, number: JobNumber::Event(end.id) },
            (_, Some(row)) if self.rng.bool() => Jobs::CancelScheduled { shard, ticket: row.ticket },
            (Some(end), _) => {
                Jobs::Take { shard, number: JobNumber::Event(end.id), grace: Duration::from_secs(30) }
            }
            _ => Jobs::Take { shard, number: JobNumber::Event(EventId(1)), grace: Duration::ZERO },
        };
        Ok(told(Sort::Other, self.store.jobs(jobs).await))
    }

    /// How many rows went differs: a store need not keep a row for every end of a job.
    async fn trim(&self, ground: &Ground) -> Step {
        let answer = self.store.trim(Trim { shard: ground.shard }).await;
        told(Sort::Other, answer.map(|trimmed| Trimmed { rows: 0, more: false, ..trimmed }))
    }

    async fn stash(&mut self) -> Result<Step> {
        let (seat, info, view) = self.seat().await?;
        let id = view.progress.window.floor().next().min(info.head.next());
        let stash =
            Stash { shard: seat.shard, id, nonce: settle::stash_nonce(id), index: 0, bytes: self.bytes() };
        Ok(told(Sort::Other, self.store.stash(stash).await))
    }

    async fn document(&mut self) -> Result<Step> {
        let name = format!("actor-{}/{}", self.territory.actor, self.rng.u8(0..3));
        let found = self.store.get(&name).await?;
        let expect = found.map(|document| document.version);
        let bytes = self.bytes();
        Ok(match expect {
            Some(version) if self.rng.u8(0..4) == 0 => {
                told(Sort::Other, self.store.delete(&name, version).await)
            }
            _ => told(Sort::Other, self.store.put(&name, expect, bytes).await),
        })
    }
}
