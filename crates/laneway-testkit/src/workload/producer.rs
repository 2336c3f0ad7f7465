//! Producers: every way to append, with repeats, wrong bodies and wrong expectations.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{Append, ObjectWrite, Origin, Receipt, Source};
use laneway_core::{ConflictReason, Draft, EventId, StoreError, Term};

use super::World;
use crate::bench::{DraftExt, delayed, draft, job_draft, keyless};
use crate::check::{AppendRecord, Outcome};

struct Producer {
    world: Arc<World>,
    name: usize,
    random: fastrand::Rng,
    next: u64,
    /// Last event of the lane that only this producer writes.
    own_last: Option<EventId>,
    own_version: u64,
}

/// Appends so many times.
pub(crate) async fn produce(world: Arc<World>, name: usize, seed: u64, steps: usize) {
    let random = fastrand::Rng::with_seed(seed);
    let mut producer = Producer { world, name, random, next: 0, own_last: None, own_version: 0 };
    for _ in 0..steps {
        match producer.random.u8(0..10) {
            0..4 => producer.named().await,
            4..6 => producer.numbered().await,
            6..8 => producer.optimistic().await,
            8 => producer.wrong_body().await,
            _ => producer.delayed().await,
        }
        tokio::task::yield_now().await;
    }
}

impl Producer {
    fn payload(&mut self) -> String {
        self.next += 1;
        format!("p{}-{}", self.name, self.next)
    }

    fn append(&self, drafts: Vec<Draft>) -> Append {
        Append {
            shard: self.world.work.shard,
            incarnation: self.world.store.about().incarnation,
            layout: self.world.work.stream.layout,
            origin: None,
            drafts,
            object: None,
        }
    }

    /// Sends until it is answered, and records it.
    async fn send(&mut self, append: Append) -> Result<Vec<Receipt>, StoreError> {
        let world = self.world.clone();
        let (answer, unknown) = world.insist(|| world.store.append(append.clone())).await;
        let answer = answer.map(|appended| appended.receipts);
        let outcome = match &answer {
            Ok(receipts) => Outcome::Answered(receipts.clone()),
            Err(_) if unknown => Outcome::Unknown,
            Err(_) => Outcome::Refused,
        };
        let record = AppendRecord { shard: append.shard, drafts: append.drafts, outcome };
        world.history.lock().appends.push(record);
        answer
    }

    fn count_duplicates(&self, receipts: &[Receipt], what: &'static str) {
        if receipts.iter().any(|receipt| matches!(receipt, Receipt::Duplicate { .. })) {
            self.world.sometimes.hit(what);
        }
    }

    /// Several drafts with dedup ids, some of them jobs, some without keys; sometimes sent again.
    async fn named(&mut self) {
        let drafts = (0..self.random.usize(1..4))
            .map(|_| {
                let payload = self.payload();
                let lane = format!("lane-{}", self.random.u8(0..6));
                let draft = match self.random.u8(0..5) {
                    0 => job_draft(&lane, &payload, self.world.responder()),
                    1 => keyless(&payload),
                    2 => Draft { priority: 2, ..draft(&lane, &payload) },
                    _ => draft(&lane, &payload),
                };
                draft.dedup(&payload, 1)
            })
            .collect();
        let append = self.append(drafts);
        self.send(append.clone()).await.expect("named drafts are acceptable");
        if self.random.u8(0..3) == 0 {
            let again = self.send(append).await.expect("a repeat is acceptable");
            self.count_duplicates(&again, "a duplicate was caught by its dedup id");
        }
    }

    /// Drafts numbered by an origin of this producer; sometimes sent again.
    async fn numbered(&mut self) {
        let source = Source::Named(Bytes::from(format!("producer-{}", self.name)));
        let lane = format!("lane-{}", self.random.u8(0..6));
        let drafts = (0..self.random.usize(1..4)).map(|_| {
            let payload = self.payload();
            draft(&lane, &payload).at_origin(self.next)
        });
        let drafts = drafts.collect();
        let append = Append { origin: Some(Origin { source, term: Term(1) }), ..self.append(drafts) };
        self.send(append.clone()).await.expect("numbered drafts are acceptable");
        if self.random.u8(0..3) == 0 {
            let again = self.send(append).await.expect("a repeat is acceptable");
            self.count_duplicates(&again, "a duplicate was caught by its origin");
        }
    }

    /// An event behind the last one of the producer's own lane, together with the object; or a wrong guess.
    async fn optimistic(&mut self) {
        let payload = self.payload();
        let lane = format!("own-{}", self.name);
        let wrong = self.random.u8(0..4) == 0;
        let prev = if wrong { Some(EventId(987_654)) } else { self.own_last };
        let given = draft(&lane, &payload).after(prev).dedup(&payload, 1);
        let value = Some(Bytes::from(payload));
        let object = Some(ObjectWrite { expect: Some(self.own_version), value });
        let append = Append { object, ..self.append(vec![given]) };
        match self.send(append).await {
            Ok(receipts) => {
                let [Receipt::New { id, .. }] = unwrapped(&receipts)[..] else { panic!("new: {receipts:?}") };
                self.own_last = Some(id);
                self.own_version += 1;
                assert!(!wrong, "a wrong expectation was accepted");
            }
            Err(StoreError::Conflict(conflict)) if wrong => {
                assert!(matches!(conflict.reason, ConflictReason::Prev { .. }), "{conflict:?}");
                self.world.sometimes.hit("a wrong expectation was refused");
            }
            Err(error) => panic!("an optimistic append failed: {error}"),
        }
    }

    /// A dedup id that was used, with another body.
    async fn wrong_body(&mut self) {
        let payload = self.payload();
        let lane = format!("lane-{}", self.random.u8(0..6));
        let append = self.append(vec![draft(&lane, &payload).dedup(&payload, 1)]);
        self.send(append).await.expect("a named draft is acceptable");
        let other = self.append(vec![draft(&lane, &format!("{payload}-forged")).dedup(&payload, 2)]);
        match self.send(other).await {
            Err(StoreError::Conflict(_)) => self.world.sometimes.hit("another body was refused"),
            other => panic!("another body was not refused: {other:?}"),
        }
    }

    /// A draft that joins its lane when the operator promotes it.
    async fn delayed(&mut self) {
        let payload = self.payload();
        let lane = format!("lane-{}", self.random.u8(0..6));
        let given = delayed(&lane, &payload, Duration::ZERO).dedup(&payload, 1);
        let append = self.append(vec![given]);
        self.send(append).await.expect("a delayed draft is acceptable");
    }
}

fn unwrapped(receipts: &[Receipt]) -> Vec<Receipt> {
    let first = |receipt: &Receipt| match receipt {
        Receipt::Duplicate { first: Some(first) } => (**first).clone(),
        other => other.clone(),
    };
    receipts.iter().map(first).collect()
}
