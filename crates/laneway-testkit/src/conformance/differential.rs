//! Two stores, one seeded sequence of calls: every answer must be the same.
//!
//! For stores that are new beside one that is trusted. Both are opened by fixtures whose clocks move, and both clocks
//! are moved together. What a store may choose freely (its incarnation, how durable it is) is taken out of the
//! answers before they are compared; steady times are compared by their distance from the store's start.

use std::sync::Arc;

use laneway_core::store::{Appended, Commit, Define, Rows};
use laneway_core::{Block, Due, Durability, Incarnation, Result, Shard, ShardInfo, Steady, StoreError};

use super::script::{Call, Script};
use crate::bench::Bench;
use crate::fixture::Fixture;
use crate::seam;

/// Runs so many calls from this seed on both stores and panics at the first answer that differs.
pub fn differential(oracle: Arc<dyn Fixture>, subject: Arc<dyn Fixture>, seed: u64, steps: usize) {
    seam::runtime().block_on(async {
        let compared = Box::pin(compare(oracle, subject, seed, steps));
        assert!(seam::guarded(compared).await.is_some(), "seed {seed}: a store hangs");
    });
}

async fn compare(oracle: Arc<dyn Fixture>, subject: Arc<dyn Fixture>, seed: u64, steps: usize) {
    assert!(
        oracle.clock_moves() && subject.clock_moves(),
        "a sequence with time in it needs clocks that move"
    );
    let sides = [Side::open(oracle).await, Side::open(subject).await];
    assert_eq!(sides[0].bench.now(), sides[1].bench.now(), "both clocks begin at the same time");
    for define in Script::opening() {
        same(seed, 0, &both(&sides, Call::Define(define)).await);
    }
    let opened = sides[0].bench.streams().await;
    for define in Script::processors(&opened) {
        same(seed, 0, &both(&sides, Call::Define(define)).await);
    }
    let streams = sides[0].bench.streams().await;
    assert_eq!(streams, sides[1].bench.streams().await, "streams are defined alike");
    let mut script = Script::new(seed, &streams);
    let mut accepted = 0;
    for step in 1..=steps {
        let call = script.next();
        let answers = both(&sides, call).await;
        same(seed, step, &answers);
        accepted += usize::from(answers[0].accepted);
        script.learn(&answers[0]);
    }
    assert!(accepted * 4 > steps, "seed {seed}: only {accepted} of {steps} calls were accepted");
    for shard in script.shards() {
        let left = sides[0].normal(format!("{:?}", sides[0].bench.snapshot(shard).await));
        let right = sides[1].normal(format!("{:?}", sides[1].bench.snapshot(shard).await));
        assert_eq!(left, right, "seed {seed}: shard {shard} differs at the end");
    }
}

/// An answer as text, and what the script learns from it.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) call: String,
    pub(super) text: String,
    pub(super) accepted: bool,
    pub(super) fence: Option<laneway_core::Fence>,
    pub(super) head: Option<laneway_core::EventId>,
    pub(super) request_no: Option<u64>,
    pub(super) emitted: Option<u64>,
}

fn same(seed: u64, step: usize, answers: &[Answer; 2]) {
    let [left, right] = answers;
    assert_eq!(left.text, right.text, "seed {seed}, step {step}: answers to {} differ", left.call);
}

async fn both(sides: &[Side; 2], call: Call) -> [Answer; 2] {
    [sides[0].ask(call.clone()).await, sides[1].ask(call).await]
}

/// One of the two stores.
struct Side {
    bench: Bench,
    /// Its steady time at the start.
    start: Steady,
}

impl Side {
    async fn open(fixture: Arc<dyn Fixture>) -> Self {
        let bench = Bench::open(fixture).await;
        let start = bench.store_steady().await;
        Self { bench, start }
    }

    /// Takes out of a text what each store may choose: its incarnation and the start of its steady time.
    fn normal(&self, text: String) -> String {
        let current = self.bench.incarnation();
        let text = text
            .replace(&format!("{current:?}"), "Incarnation(current)")
            .replace(&format!("stored: {}", current.0), "stored: current");
        let mut parts = text.split("Steady(");
        let mut normal = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let digits = part.len() - part.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
            normal.push_str("Steady(");
            match part[..digits].parse::<u64>() {
                Ok(steady) => normal.push_str(&format!("start + {}", steady.wrapping_sub(self.start.0))),
                Err(_) => normal.push_str(&part[..digits]),
            }
            normal.push_str(&part[digits..]);
        }
        normal
    }

    fn answer<T: std::fmt::Debug>(&self, call: &str, answered: &Result<T>) -> Answer {
        let text = match answered {
            Ok(value) => format!("{value:?}"),
            // Texts of refusals belong to each store; which field is meant does not.
            Err(StoreError::Refused(refusal)) => format!("refused {}", refusal.field),
            Err(StoreError::NotFound { .. }) => "not found".to_owned(),
            Err(error) => format!("{error:?}"),
        };
        let (text, accepted) = (self.normal(text), answered.is_ok());
        Answer {
            call: call.to_owned(),
            text,
            accepted,
            fence: None,
            head: None,
            request_no: None,
            emitted: None,
        }
    }

    /// Zero in a script means the store's own incarnation.
    fn own(&self, incarnation: Incarnation) -> Incarnation {
        if incarnation == Incarnation(0) { self.bench.incarnation() } else { incarnation }
    }

    /// Steady times in a script count from the store's start.
    fn own_times(&self, mut commit: Commit) -> Commit {
        for record in commit.lanes.iter_mut().filter_map(|change| change.record.as_mut()) {
            if let Some(Block::Retry { due: Due::Steady(steady), .. }) = &mut record.block {
                steady.0 += self.start.0;
            }
        }
        commit
    }

    /// Nobody notices: what is not persistent stays open beside it.
    async fn reopen(&self) {
        if self.bench.capabilities().persistent {
            self.bench.reopen().await;
        }
    }

    async fn restore(&self, shards: Vec<Shard>) -> Result<()> {
        self.bench.restore().await;
        for shard in shards {
            let stored = self.bench.shard_info(shard).await.incarnation;
            self.bench.store().define(Define::Adopt { shard, stored }).await?;
        }
        Ok(())
    }

    async fn ask(&self, call: Call) -> Answer {
        let store = self.bench.store();
        let name = format!("{call:?}");
        match call {
            Call::Define(define) => self.answer(&name, &store.define(define).await),
            Call::Append(mut append) => {
                append.incarnation = self.own(append.incarnation);
                let answered = store.append(append).await;
                // How durable it is differs on purpose.
                let alike = answered.map(|appended| Appended { durability: Durability::Memory, ..appended });
                self.answer(&name, &alike)
            }
            Call::Promote(promote) => self.answer(&name, &store.promote(promote).await),
            Call::Read(read) => self.answer(&name, &store.read(read).await),
            Call::Seize(mut seize) => {
                seize.incarnation = self.own(seize.incarnation);
                let answered = store.seize(seize).await;
                let resume = answered.as_ref().ok();
                Answer {
                    fence: resume.map(|resume| resume.progress.fence),
                    head: resume.map(|resume| resume.head),
                    request_no: resume.map(|resume| resume.request_no),
                    emitted: resume.map(|resume| resume.progress.emitted),
                    ..self.answer(&name, &answered)
                }
            }
            Call::Lanes(lanes) => self.answer(&name, &store.lanes(lanes).await),
            Call::Commit(commit) => {
                let answered = store.commit(self.own_times(*commit)).await;
                let committed = answered.as_ref().ok();
                Answer {
                    fence: committed.map(|committed| committed.fence),
                    request_no: committed.map(|committed| committed.request_no),
                    emitted: committed.map(|committed| committed.emitted),
                    ..self.answer(&name, &answered)
                }
            }
            Call::Request(request) => self.answer(&name, &store.request(request).await),
            Call::Jobs(jobs) => self.answer(&name, &store.jobs(jobs).await),
            Call::Stash(stash) => self.answer(&name, &store.stash(stash).await),
            Call::Query(query) => {
                let answered = store.query(query).await;
                let head = match &answered {
                    Ok(Rows::Seats(ShardInfo { head, .. }, _)) => Some(*head),
                    _ => None,
                };
                Answer { head, ..self.answer(&name, &answered) }
            }
            Call::Trim(trim) => self.answer(&name, &store.trim(trim).await),
            Call::Advance(by) => {
                self.bench.advance(by);
                self.answer(&name, &Ok(()))
            }
            Call::Reopen => {
                // A store closes with its last holder.
                drop(store);
                self.reopen().await;
                self.answer(&name, &Ok(()))
            }
            Call::Restore(shards) => {
                drop(store);
                self.answer(&name, &self.restore(shards).await)
            }
        }
    }
}
