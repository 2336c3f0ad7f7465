//! What a store must hold: the same steps on a memory store. A step that was never answered may be there whole or
//! not at all, and nothing else may be.

use std::collections::BTreeMap;
use std::sync::Arc;

use laneway_core::{Incarnation, ManualClock, StoreError};
use laneway_embedded::MemoryStore;

use super::actor::{Actor, Sort};
use super::picture::{Land, first_difference};
use super::world::{Whole, World};

/// The memory store beside the store under test.
pub(crate) struct Oracle {
    pub(crate) store: MemoryStore,
    pub(crate) world: World,
    pub(crate) seed: u64,
    /// Steps done, per actor.
    pub(crate) done: Vec<u64>,
    pub(crate) counts: BTreeMap<Sort, u64>,
    /// Unanswered steps that were found done.
    pub(crate) unknown_kept: u64,
}

/// What is known of the step an actor was in when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    /// No answer: it happened or it did not.
    Unknown,
    /// It did not happen.
    Nothing,
}

impl Last {
    /// What the trouble that a step met says about it.
    pub(crate) fn of(error: &StoreError) -> Self {
        if matches!(error, StoreError::Unknown { .. }) { Self::Unknown } else { Self::Nothing }
    }
}

impl Oracle {
    /// The oracle of one actor after this many steps.
    pub(crate) async fn after(incarnation: Incarnation, seed: u64, steps: u64) -> Self {
        let mut oracle = Self::found(incarnation, &ManualClock::default(), 1, seed).await;
        for _ in 0..steps {
            oracle.step(0).await;
        }
        oracle
    }

    pub(crate) async fn found(
        incarnation: Incarnation,
        clock: &ManualClock,
        actors: usize,
        seed: u64,
    ) -> Self {
        let store = MemoryStore::with_incarnation(Arc::new(clock.clone()), incarnation);
        let world = World::found(&store, actors).await.expect("a memory store takes everything");
        Self { store, world, seed, done: vec![0; actors], counts: BTreeMap::new(), unknown_kept: 0 }
    }

    pub(crate) fn count(&self, sort: Sort) -> u64 {
        self.counts.get(&sort).copied().unwrap_or(0)
    }

    pub(crate) async fn step(&mut self, actor: usize) -> (Sort, String) {
        let territory = &self.world.territories[actor];
        let step = Actor { store: &self.store, territory, seed: self.seed }.step(self.done[actor]).await;
        self.done[actor] += 1;
        (step.kind, step.answer.expect("a memory store has no trouble"))
    }

    /// The store under test refused the actor's next step for want of room, and the actor goes on without it.
    pub(crate) fn skip(&mut self, actor: usize) {
        self.done[actor] += 1;
    }

    /// The store under test answered the actor's next step so.
    pub(crate) async fn answered(&mut self, actor: usize, answer: &str) -> Result<(), String> {
        let number = self.done[actor];
        let (kind, expected) = self.step(actor).await;
        *self.counts.entry(kind).or_default() += 1;
        if answer == expected || answer == digest(&expected) {
            return Ok(());
        }
        Err(format!("actor {actor}, step {number}, {kind:?}: {}", first_difference(answer, &expected)))
    }

    /// Compares everything an actor can have changed.
    pub(crate) async fn judge(&mut self, store: &dyn Whole, actor: usize, last: &Last) -> Result<(), String> {
        let found =
            Land::take(store, &self.world.territories[actor]).await.map_err(|error| format!("{error:?}"))?;
        let expected = self.land(actor).await;
        let Some(first) = found.difference(&expected) else { return Ok(()) };
        if *last == Last::Nothing {
            return Err(format!("actor {actor} after {} steps: {first}", self.done[actor]));
        }
        self.step(actor).await;
        self.unknown_kept += 1;
        let Some(second) = found.difference(&self.land(actor).await) else { return Ok(()) };
        Err(format!(
            "actor {actor} after {} steps: {first}; with the unanswered step: {second}",
            self.done[actor] - 1
        ))
    }

    pub(crate) async fn judge_all(&mut self, store: &dyn Whole, last: &[Last]) -> Result<(), String> {
        for (actor, last) in last.iter().enumerate() {
            self.judge(store, actor, last).await?;
        }
        Ok(())
    }

    pub(crate) async fn land(&self, actor: usize) -> Land {
        Land::take(&self.store, &self.world.territories[actor]).await.expect("a memory store is readable")
    }
}

/// An answer in short, for a pipe.
pub(crate) fn digest(answer: &str) -> String {
    format!("{:016x}", xxhash_rust::xxh3::xxh3_64(answer.as_bytes()))
}
