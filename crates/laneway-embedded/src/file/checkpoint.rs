//! Checkpoints: what changed since the last one goes into the index, with the log position it stands for.
//!
//! The changes are handed out between two groups, which costs next to nothing; writing them
//! happens beside it. A checkpoint that meets a full disk waits for room, and appends wait once the log since the
//! last one grows too long. One that fails otherwise stops the store: the log still has everything.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use laneway_core::{EventId, Incarnation, Result, Shard, StoreError, Timestamp};
use parking_lot::Mutex;

use super::group::Cost;
use super::index::{Index, Meta};
use super::log::Space;
use super::state::{FileState, Summary, TailKey};
use super::store::{Base, Shared};
use crate::machine::State;

/// How many tails are read under one lock.
const TAILS_AT_ONCE: usize = 256;

/// Writes checkpoints, one at a time.
#[derive(Debug)]
pub(super) struct Checkpointer {
    index: Mutex<Index>,
    store: u128,
    incarnation: Incarnation,
}

impl Checkpointer {
    pub(super) fn new(index: Index, store: u128, incarnation: Incarnation) -> Self {
        Self { index: Mutex::new(index), store, incarnation }
    }

    /// Does something while no checkpoint runs and no segment is given back.
    pub(super) fn hold<T>(&self, work: impl FnOnce() -> T) -> T {
        let _index = self.index.lock();
        work()
    }

    /// Whether a checkpoint would have to wait.
    #[cfg(test)]
    pub(super) fn is_held(&self) -> bool {
        self.index.is_locked()
    }

    /// Refuses a checkpoint of another store.
    pub(super) fn check_store(&self, meta: &Meta) -> Result<()> {
        if meta.store == self.store {
            return Ok(());
        }
        Err(StoreError::Corrupt { what: "index.redb belongs to another store than its log".to_owned() })
    }

    /// Runs until told to stop: a checkpoint after so much time or so much log.
    pub(super) fn serve(&self, shared: &Arc<Shared>) {
        loop {
            let stop = {
                let mut call = shared.checkpoint.lock();
                if !call.due && !call.stop {
                    shared.checkpoint_called.wait_for(&mut call, shared.options.checkpoint_every);
                }
                call.due = false;
                call.stop
            };
            if stop {
                return;
            }
            let idle = shared.log_bytes.load(Ordering::Relaxed) == 0;
            if shared.durable.borrow().failed.is_some() {
                continue;
            }
            let work = || if idle { self.hold(|| self.tidy(shared)) } else { self.run(shared) };
            match catch_unwind(AssertUnwindSafe(work)) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "checkpoint failed; the log keeps everything"),
                Err(_) => {
                    let reason = "a checkpoint panicked; see its message".to_owned();
                    stop_for_good(shared, StoreError::Down { reason });
                }
            }
        }
    }

    /// Writes one checkpoint and tidies the log up.
    pub(super) fn run(&self, shared: &Arc<Shared>) -> Result<()> {
        let index = self.index.lock();
        let bytes = shared.log_bytes.load(Ordering::Relaxed);
        let cost = Cost { space: Space::Reserve, bytes: 0, first: true, synced: false };
        let frozen = shared.call_blocking(cost, |state, _| Ok(state.freeze()))?;
        let tails = collect_tails(shared, &frozen.tails);
        // A tail may be of a group that came after the freeze, and with `sync = os` nothing is synced yet: the index
        // must never be ahead of the log.
        if let Err(error) = shared.barrier_blocking() {
            return Err(stop_for_good(shared, error));
        }
        let meta = Meta {
            store: self.store,
            incarnation: self.incarnation,
            mark: frozen.end,
            clock: frozen.clock_mark,
        };
        let written = index.write(&meta, &frozen.into_write(tails)).and_then(|()| index.snapshot());
        let snapshot = match written {
            Ok(snapshot) => snapshot,
            Err(error) => return Err(stop_for_good(shared, error)),
        };
        let outdated = {
            let mut state = shared.state.write();
            *shared.base.lock() = Base { index: Arc::clone(&snapshot), end: meta.mark };
            state.rows.rebase(Some(Arc::clone(&snapshot)));
            let outdated = state.tails.rebase(snapshot);
            shared.tails_in_memory.store(state.tails.is_complete(), Ordering::Release);
            outdated
        };
        drop(outdated);
        shared.log_bytes.fetch_sub(bytes, Ordering::Relaxed);
        shared.checkpointed.notify_waiters();
        self.seal(shared, meta.mark.position.serial)?;
        self.tidy(shared)
    }

    /// Writes the footers of segments that take no more frames and lie before the checkpoint.
    fn seal(&self, shared: &Arc<Shared>, before: u64) -> Result<()> {
        loop {
            let next = {
                let state = shared.state.read();
                let first = state.contents.open.iter().next();
                first
                    .filter(|(serial, _)| **serial < before)
                    .map(|(serial, contents)| (*serial, contents.clone()))
            };
            let Some((serial, contents)) = next else { return Ok(()) };
            shared.footers.write(serial, &contents)?;
            let mut state = shared.state.write();
            state.contents.sealed.insert(serial, contents.summary());
            let open = state.contents.open.remove(&serial);
            drop(state);
            drop(open);
        }
    }

    /// Gives back segments in which nothing is needed any more, oldest first.
    fn tidy(&self, shared: &Arc<Shared>) -> Result<()> {
        let now = shared.clock.now().expiry;
        let free = {
            let state = shared.state.read();
            let free = state.contents.sealed.iter().take_while(|(_, summary)| is_free(&state, summary, now));
            free.map(|(serial, _)| *serial).collect::<Vec<_>>()
        };
        if !free.is_empty() {
            // A segment may go only when the trim that allows it cannot be lost any more.
            shared.barrier_blocking()?;
        }
        for serial in free {
            shared.state.write().contents.sealed.remove(&serial);
            shared.log.release(serial);
            shared.footers.remove(serial)?;
        }
        Ok(())
    }
}

/// The tails of lanes that changed, a few at a time, so that no commit waits for long.
fn collect_tails(shared: &Shared, changed: &[TailKey]) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let mut tails = Vec::with_capacity(changed.len());
    for keys in changed.chunks(TAILS_AT_ONCE) {
        let state = shared.state.read();
        tails.extend(state.tails.collect(keys, |shard| state.shard(shard).is_some()));
    }
    tails
}

/// Whether every event of a segment is trimmed and every job end in it is past its life.
fn is_free(state: &FileState, summary: &Summary, now: Timestamp) -> bool {
    let trimmed = |shard: Shard, last: EventId| state.shard(shard).is_none_or(|info| info.trimmed >= last);
    let events_gone = summary
        .shards
        .iter()
        .all(|(shard, found)| found.events.is_none_or(|(_, last)| trimmed(*shard, last)));
    events_gone && (summary.keep_until.0 == 0 || summary.keep_until < now)
}

/// What was handed out for a checkpoint is in no layer that the next one writes, and after a failed write the index
/// file refuses everything: so the store stops, and the next start begins with the checkpoint before.
fn stop_for_good(shared: &Arc<Shared>, error: StoreError) -> StoreError {
    let cause: Arc<str> =
        format!("{error}; the log is safe: make room or check the disk, then restart").into();
    shared.pipeline.close(&cause);
    shared.tell_failed(&cause);
    error
}
