//! Checkpoints: what changed since the last one goes into the index, with the log position it stands for.
//!
//! The changes are handed out between two groups, which costs next to nothing; writing them
//! happens beside it. A checkpoint that meets a full disk waits for room, and appends wait once the log since the
//! last one grows too long. One that fails otherwise stops the store: the log still has everything.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use laneway_core::limits::KEY_BYTES_MAX;
use laneway_core::{ClockReport, EventId, Incarnation, Result, Shard, Steady, StoreError, Timestamp};
use parking_lot::Mutex;

use super::group::Cost;
use super::index::{Index, Meta, PackedChanges, Snapshot};
use super::log::Space;
use super::relocate;
use super::state::{ChangedLanes, EntryList, FileState, SegmentTable, shard_prefix};
use super::store::{Base, Shared};
use crate::machine::View;

/// How many tails are read under one lock.
const TAILS_AT_ONCE: usize = 256;
/// What a tail usually takes with its key.
const TAIL_BYTES: usize = 48;
/// The most that a tail takes with its key: memory for it is made before the lock is taken.
const TAIL_BYTES_MAX: usize = KEY_BYTES_MAX + 64;

/// How often an idle store persists its clock.
const CLOCK_EVERY: Duration = Duration::from_secs(3_600);

/// How long an old segment of which much is needed is left alone.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// Writes checkpoints, one at a time.
#[derive(Debug)]
pub(super) struct Checkpointer {
    index: Mutex<Index>,
    store: u128,
    incarnation: Incarnation,
    /// The oldest segment when more of it was needed than is moved, and when that was looked at.
    needed: Mutex<Option<(u64, Steady)>>,
    /// Clock state at the last checkpoint.
    clock: Mutex<Option<ClockReport>>,
}

impl Checkpointer {
    pub(super) fn new(index: Index, store: u128, incarnation: Incarnation) -> Self {
        Self {
            index: Mutex::new(index),
            store,
            incarnation,
            needed: Mutex::default(),
            clock: Mutex::default(),
        }
    }

    /// Does something while no checkpoint runs.
    fn hold<T>(&self, work: impl FnOnce() -> T) -> T {
        let _index = self.index.lock();
        work()
    }

    /// Whether a checkpoint would have to wait.
    #[cfg(test)]
    pub(super) fn is_held(&self) -> bool {
        self.index.is_locked()
    }

    /// The last checkpoint, and the index as of it.
    pub(super) fn current(&self) -> Result<(Meta, Arc<Snapshot>)> {
        let index = self.index.lock();
        let meta = index.meta()?.filter(|meta| meta.store == self.store);
        let other = || StoreError::Corrupt {
            what: "index.redb has no checkpoint, or one of another store than its log".to_owned(),
        };
        Ok((meta.ok_or_else(other)?, index.snapshot()?))
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
            let idle = shared.log_bytes.load(Ordering::Relaxed) == 0 && !self.clock_went_on(shared);
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

    /// Whether an idle store has to persist its clock. After a reboot the persisted clock is the only record of how long
    /// the store was open.
    fn clock_went_on(&self, shared: &Shared) -> bool {
        let now = shared.clock.report();
        let last = *self.clock.lock().get_or_insert(now);
        now.steady >= last.steady.after(CLOCK_EVERY)
            || (now.jumps, now.is_settled()) != (last.jumps, last.is_settled())
    }

    /// Writes one checkpoint and tidies the log up.
    pub(super) fn run(&self, shared: &Arc<Shared>) -> Result<()> {
        let index = self.index.lock();
        *self.clock.lock() = Some(shared.clock.report());
        let bytes = shared.log_bytes.load(Ordering::Relaxed);
        let cost = Cost { space: Space::Reserve, bytes: 0, first: true, synced: false, may_wait: false };
        let frozen = shared.call_blocking(cost, |state, now| Ok(state.freeze(now)))?;
        let tails = collect_tails(shared, &frozen.tails);
        // When the store goes back to what is durable, the places of lanes mean others, and this fails: none is written.
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
        {
            let mut state = shared.state.write();
            *shared.base.lock() = Base { index: Arc::clone(&snapshot), end: meta.mark };
            state.rows.rebase(Some(Arc::clone(&snapshot)));
            state.tails.rebase(snapshot);
        }
        shared.log_bytes.fetch_sub(bytes, Ordering::Relaxed);
        shared.checkpointed.notify_waiters();
        self.seal(shared, meta.mark.position.serial)?;
        self.tidy(shared)
    }

    /// Writes the footers of segments that take no more frames and lie before the checkpoint.
    fn seal(&self, shared: &Arc<Shared>, before: u64) -> Result<()> {
        let directory = shared.archive.directory();
        while let Some((serial, contents)) = directory.first_open(before) {
            let seed = shared.log.seed(serial).unwrap_or_default();
            let table = shared.footers.write(serial, seed, &contents)?;
            drop((directory.seal(table), contents));
        }
        Ok(())
    }

    /// Moves what little is needed of the oldest of these segments out of it, and answers how many bytes of rows that took.
    /// One of which more is needed is left alone for a while.
    fn empty_oldest(&self, shared: &Arc<Shared>, sealed: &[Arc<SegmentTable>]) -> Result<Option<u64>> {
        let Some(table) = sealed.first() else { return Ok(None) };
        let now = shared.clock.now();
        if !relocate::is_log_long(shared, table.serial) || ends_soon(table, now.expiry) {
            return Ok(None);
        }
        let mut needed = self.needed.lock();
        if needed.is_some_and(|(serial, at)| serial == table.serial && now.steady < at.after(LOOK_AGAIN)) {
            return Ok(None);
        }
        let limit = relocate::row_bytes_max(shared, sealed, now.expiry);
        let moved = relocate::empty_segment(shared, table, limit)?;
        *needed = moved.is_none().then_some((table.serial, now.steady));
        Ok(moved)
    }

    /// Gives back segments in which nothing is needed any more, oldest first.
    fn tidy(&self, shared: &Arc<Shared>) -> Result<()> {
        let sealed = shared.archive.directory().sealed();
        let (free, outcome) = self.find_free(shared, &sealed);
        // Also when looking for more of them failed: on a full disk these make the room.
        self.release(shared, free)?;
        outcome
    }

    /// The oldest segments in which nothing is needed any more, some of them because it was moved.
    ///
    /// What is moved waits in memory for the next checkpoint, so after about one segment of it that one comes first.
    fn find_free(&self, shared: &Arc<Shared>, sealed: &[Arc<SegmentTable>]) -> (Vec<u64>, Result<()>) {
        let now = shared.clock.now().expiry;
        let (mut free, mut moved) = (Vec::new(), 0);
        for (place, table) in sealed.iter().enumerate() {
            if !is_free(&shared.state.read(), table, now) {
                if moved >= shared.options.segment_bytes {
                    shared.checkpoint_due();
                    break;
                }
                match self.empty_oldest(shared, &sealed[place..]) {
                    Ok(Some(bytes)) => moved += bytes,
                    Ok(None) => break,
                    Err(error) => return (free, Err(error)),
                }
            }
            free.push(table.serial);
        }
        (free, Ok(()))
    }

    fn release(&self, shared: &Arc<Shared>, free: Vec<u64>) -> Result<()> {
        if !free.is_empty() {
            // A segment may go only when the trim that allows it cannot be lost any more.
            shared.barrier_blocking()?;
        }
        for serial in free {
            shared.archive.directory().remove(serial);
            shared.log.release(serial);
            shared.footers.remove(serial)?;
        }
        Ok(())
    }
}

/// The tails of lanes that changed, a few at a time, so that no commit waits for long. Ordered by shard and key, because a
/// tree takes sorted keys fastest. Lanes of removed shards are left out.
fn collect_tails(shared: &Shared, changed: &ChangedLanes) -> PackedChanges {
    let len = changed.values().map(Vec::len).sum();
    let mut tails = PackedChanges::with_capacity(len, TAIL_BYTES);
    let mut shards: Vec<_> = changed.iter().collect();
    shards.sort_unstable_by_key(|(shard, _)| shard_prefix(**shard));
    for (shard, places) in shards {
        let first = tails.len();
        for places in places.chunks(TAILS_AT_ONCE) {
            tails.reserve(places.len() * TAIL_BYTES_MAX);
            let state = shared.state.read();
            if state.shard(*shard).is_some() {
                state.tails.collect(places, &mut tails);
            }
        }
        tails.sort_from(first);
    }
    tails
}

/// Whether every event of a segment is trimmed and every job end in it is past its life. An end is also needed for as long
/// as its event is there, which may be kept aside from an older segment.
fn is_free(state: &FileState, table: &SegmentTable, now: Timestamp) -> bool {
    let trimmed = |shard: Shard, last: EventId| state.shard(shard).is_none_or(|info| info.trimmed >= last);
    let is_trimmed = |list: &EntryList, shard: Shard| list.is_empty() || trimmed(shard, list.last);
    let mut shards = table.shards.iter();
    shards.all(|found| is_trimmed(&found.runs, found.shard) && is_trimmed(&found.ends, found.shard))
        && (table.keep_until.0 == 0 || table.keep_until < now)
}

/// Whether the last job end of a segment expires before the segment would be looked at again.
fn ends_soon(table: &SegmentTable, now: Timestamp) -> bool {
    (now..now.after(LOOK_AGAIN)).contains(&table.keep_until)
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
