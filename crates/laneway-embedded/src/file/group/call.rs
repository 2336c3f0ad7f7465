//! One call: applied to the open group as soon as it may be, answered when the group is durable.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use laneway_core::{FullReason, Refusal, Result, StoreError};

use super::done::Done;
use crate::file::log::Space;
use crate::file::state::{Fetched, FileState, Wanted};
use crate::file::store::Shared;
use crate::machine::Now;

/// Most bytes of a group: what a crash may have to cut, and how long a call may wait for others.
const GROUP_BYTES: usize = 4 << 20;

/// What a call needs before it may be applied: once applied it cannot be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Whether it may use the space kept for settling work when the disk is full.
    pub(crate) space: Space,
    /// At most so many bytes in the frame.
    pub(crate) bytes: usize,
    /// It must see only what is durable: it begins a group while nothing is being written.
    pub(crate) first: bool,
    /// Everything up to it must be on the disk when it is answered, also with `sync = os`.
    pub(crate) synced: bool,
    /// It may wait a moment for a group that others open.
    pub(crate) may_wait: bool,
}

/// What became of an attempt to apply a call.
enum Attempt<T> {
    /// It was applied: its answer counts when the group is durable.
    Applied { answer: Result<T>, done: Arc<Done>, group: u64 },
    /// It changed nothing and read only durable state, so the answer is final.
    Unchanged(Result<T>),
    /// It will not be applied.
    Refused(StoreError),
    /// It must wait until more than these groups are durable.
    Wait(u64),
    /// It needs something from files first; nothing was changed.
    Missed(Box<Fetched>, Vec<Wanted>),
}

impl Shared {
    /// Applies a call that needs nothing from files, and waits for its answer.
    pub(crate) async fn call<T, F>(&self, cost: Cost, work: F) -> Result<T>
    where
        F: FnOnce(&mut FileState, Now) -> Result<T>,
    {
        let mut work = Some(work);
        let once = move |state: &mut FileState, now: Now| match work.take() {
            Some(work) => work(state, now),
            None => Err(StoreError::Down { reason: "the call was applied before".to_owned() }),
        };
        self.call_with(cost, Fetched::default(), once).await
    }

    /// Applies a call with what was read from files for it, and waits for its answer. When the rule needs more, it is read
    /// and the call is applied again.
    pub(crate) async fn call_with<T, F>(&self, cost: Cost, fetched: Fetched, work: F) -> Result<T>
    where
        F: FnMut(&mut FileState, Now) -> Result<T>,
    {
        let mut turn = Turn::new(self, cost, fetched, work);
        loop {
            match turn.attempt() {
                Attempt::Refused(error) => return Err(error),
                Attempt::Unchanged(answer) => return answer,
                Attempt::Wait(groups) => self.durable_beyond(groups).await,
                Attempt::Missed(fetched, missed) => turn.fetched = self.fetch(*fetched, missed).await?,
                Attempt::Applied { answer, done, .. } => return settle(answer, done.wait().await),
            }
        }
    }

    /// Applies a call in pieces until a piece reports that nothing is left. All pieces join one group, so they become
    /// durable together. The lock is released between pieces. If the group is taken for writing first, the call ends
    /// early; callers repeat it for the rest.
    pub(crate) async fn call_in_pieces<F>(&self, cost: Cost, piece: F) -> Result<()>
    where
        F: FnMut(&mut FileState, Now) -> Result<bool>,
    {
        let mut turn = Turn::new(self, cost, Fetched::default(), piece);
        let (answer, done) = loop {
            match turn.attempt() {
                Attempt::Refused(error) => return Err(error),
                Attempt::Unchanged(answer) => return answer.map(drop),
                Attempt::Wait(groups) => self.durable_beyond(groups).await,
                Attempt::Missed(fetched, missed) => turn.fetched = self.fetch(*fetched, missed).await?,
                Attempt::Applied { answer, done, group } => {
                    turn.within = Some(group);
                    break (answer, done);
                }
            }
        };
        let mut more = matches!(answer, Ok(true));
        while more {
            // Others may wait for the lock, or for this thread.
            tokio::task::yield_now().await;
            more = matches!(turn.attempt(), Attempt::Applied { answer: Ok(true), .. });
        }
        settle(answer.map(drop), done.wait().await)
    }

    /// As [`Shared::call`], on a thread that may wait.
    pub(crate) fn call_blocking<T, F>(&self, cost: Cost, work: F) -> Result<T>
    where
        F: FnMut(&mut FileState, Now) -> Result<T>,
    {
        let mut turn = Turn::new(self, cost, Fetched::default(), work);
        loop {
            match turn.attempt() {
                Attempt::Refused(error) => return Err(error),
                Attempt::Unchanged(answer) => return answer,
                Attempt::Wait(groups) => drop(self.pipeline.wait_for(groups + 1)),
                Attempt::Missed(mut fetched, missed) => {
                    fetched.fetch(&self.archive, missed)?;
                    turn.fetched = *fetched;
                }
                Attempt::Applied { answer, group, .. } => {
                    let durable = self.pipeline.wait_for(group);
                    return settle(answer, if durable { Ok(()) } else { Err(self.failure().into()) });
                }
            }
        }
    }

    /// Waits, on a thread, until everything that was applied before is durable and on the disk.
    pub(crate) fn barrier_blocking(&self) -> Result<()> {
        let cost = Cost { space: Space::Reserve, bytes: 0, first: false, synced: true, may_wait: false };
        self.call_blocking(cost, |_, _| Ok(()))
    }

    /// Waits until more than so many groups are durable, or the store failed.
    async fn durable_beyond(&self, groups: u64) {
        let mut durable = self.durable.subscribe();
        // The sender lives as long as this store, so there is no other end to wait for.
        let _reached = durable.wait_for(|durable| durable.groups > groups || durable.failed.is_some()).await;
    }
}

/// An answer counts when everything it was judged on is durable. Without that a call that was applied may have
/// happened; one that was refused changed nothing, but what it was refused for may never have been.
fn settle<T>(answer: Result<T>, durable: Result<(), Arc<str>>) -> Result<T> {
    match (answer, durable) {
        (answer, Ok(())) => answer,
        (Ok(_), Err(cause)) => {
            Err(StoreError::Unknown { action: "commit", source: cause.to_string().into() })
        }
        (Err(_), Err(cause)) => Err(StoreError::Down { reason: cause.to_string() }),
    }
}

/// A call until it was applied.
struct Turn<'a, F> {
    shared: &'a Shared,
    cost: Cost,
    fetched: Fetched,
    work: F,
    /// Others let this call go first.
    announced: bool,
    /// Apply it only while this group is open.
    within: Option<u64>,
}

impl<'a, F> Turn<'a, F> {
    fn new(shared: &'a Shared, cost: Cost, fetched: Fetched, work: F) -> Self {
        Self { shared, cost, fetched, work, announced: false, within: None }
    }

    fn attempt<T>(&mut self) -> Attempt<T>
    where
        F: FnMut(&mut FileState, Now) -> Result<T>,
    {
        let (shared, cost) = (self.shared, self.cost);
        let limit = shared.log.body_len_max();
        if cost.bytes > limit {
            return Attempt::Refused(too_large(cost.bytes, limit));
        }
        let mut state = shared.state.write();
        let _entered = match shared.pipeline.enter() {
            Ok(entered) => entered,
            Err(reason) => return Attempt::Refused(StoreError::Down { reason: reason.to_string() }),
        };
        if self.within.is_some_and(|group| !state.is_open(group)) {
            return Attempt::Refused(StoreError::Down {
                reason: "the group is already being written".to_owned(),
            });
        }
        if let Some(groups) = self.must_wait(&state, limit) {
            shared.pipeline.hurry();
            return Attempt::Wait(groups);
        }
        if let Err(error) = check_space(shared, &state, cost) {
            return Attempt::Refused(error);
        }
        // Asked under the lock, so that a later group never has an earlier time.
        let now = shared.clock.now();
        let before = state.open_bytes();
        state.fetched = std::mem::take(&mut self.fetched);
        let applied = catch_unwind(AssertUnwindSafe(|| {
            let answer = (self.work)(&mut state, now);
            let written = state.open_bytes() - before;
            debug_assert!(
                written <= cost.bytes,
                "a call wrote {written} bytes, its cost says {}",
                cost.bytes
            );
            let mut fetched = std::mem::take(&mut state.fetched);
            let missed = fetched.take_missed();
            assert!(missed.is_empty() || written == 0, "a rule reads everything before its first change");
            (answer, fetched, missed)
        }));
        let Ok((answer, fetched, missed)) = applied else {
            // Half a call may be in the open group: it must never be taken, so the lock stays until that is told.
            let cause: Arc<str> = "a rule of the store panicked; see its message, then restart".into();
            shared.fail(&state, &cause);
            return Attempt::Refused(StoreError::Down { reason: cause.to_string() });
        };
        if !missed.is_empty() {
            // Others need not stand back while files are read.
            self.withdraw();
            return Attempt::Missed(Box::new(fetched), missed);
        }
        // Nothing to write and nothing to wait for: leave the write thread asleep.
        let is_durable = state.groups == shared.pipeline.groups();
        if is_durable && !cost.synced && state.open_is_empty() {
            return Attempt::Unchanged(answer);
        }
        state.open_group(now);
        let is_new = shared.pipeline.opened(cost.synced, cost.may_wait);
        let applied = Attempt::Applied { answer, done: state.open_done(), group: state.groups };
        drop(state);
        if is_new {
            // The write thread takes the lock first of all: woken before, it would only wait for this thread.
            shared.pipeline.wake_writer();
        }
        applied
    }

    /// The groups that are durable, if more must be before this call may be applied.
    fn must_wait(&mut self, state: &FileState, limit: usize) -> Option<u64> {
        let durable = self.shared.pipeline.groups();
        let busy = state.groups > durable;
        let others_first = !self.announced && self.shared.pipeline.waiting_first.load(Ordering::Relaxed) > 0;
        let full = state.open_bytes() > 0 && state.open_bytes() + self.cost.bytes > GROUP_BYTES.min(limit);
        let wait = busy && (self.cost.first || others_first || full);
        if wait && self.cost.first && !self.announced {
            self.announced = true;
            self.shared.pipeline.waiting_first.fetch_add(1, Ordering::Relaxed);
        }
        wait.then_some(durable)
    }
}

impl<F> Turn<'_, F> {
    /// Takes back that others let this call go first.
    fn withdraw(&mut self) {
        if std::mem::take(&mut self.announced) {
            self.shared.pipeline.waiting_first.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl<F> Drop for Turn<'_, F> {
    fn drop(&mut self) {
        self.withdraw();
    }
}

/// On a full disk new work is refused as soon as only the reserve is left, and everything once that is used up.
fn check_space(shared: &Shared, state: &FileState, cost: Cost) -> Result<(), StoreError> {
    let spares = shared.log.spares();
    if !spares.full || cost.bytes == 0 {
        return Ok(());
    }
    let needed = (state.open_bytes() + cost.bytes) as u64;
    let left = match cost.space {
        Space::Ordinary => spares.ready.saturating_sub(1),
        Space::Reserve => spares.ready,
    };
    if left > 0 || shared.pipeline.room(cost.space) > 2 * needed {
        return Ok(());
    }
    shared.log.poke_spares();
    let dir = shared.dir.display();
    let reason = format!("disk full: no prepared space for {needed} bytes in {dir}; free space and repeat");
    Err(StoreError::Full(FullReason::Store { reason }))
}

fn too_large(bytes: usize, limit: usize) -> StoreError {
    Refusal::new("bytes of the call", bytes.to_string(), format!("at most {limit} (segment_bytes)")).into()
}
