//! The handle of an open file store, and what its threads share.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use laneway_core::{Incarnation, Result, StoreError};
use parking_lot::{Condvar, Mutex, RwLock};
use tokio::sync::{Semaphore, watch};

use super::checkpoint::Checkpointer;
use super::disk::Disk;
use super::group::{Durable, Pipeline};
use super::index::{Patience, Snapshot};
use super::lock::DirectoryLock;
use super::log::{Log, LogReader, Mark};
use super::marks::RecentMarks;
use super::options::{Background, FileOptions};
use super::seam;
use super::state::{Archive, Fetched, FileState, Footers, Published, Seen, Wanted};
use crate::clock::StoreClock;
use crate::machine::Now;
use crate::wakeups::LocalWakeups;

/// How long the write thread rests before it asks a full disk again.
const SPACE_WAIT: Duration = Duration::from_millis(100);

/// How many callers read files at a time: enough to keep a disk busy, few enough to leave cores to the others.
pub(super) const FILE_READERS: usize = 8;

/// A store in a folder. Cheap to clone; the last handle to go closes it in order.
#[derive(Clone, Debug)]
pub struct FileStore {
    pub(super) inner: Arc<Inner>,
}

/// What the handles keep alive.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) shared: Arc<Shared>,
    pub(super) checkpointer: Arc<Checkpointer>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    _lock: Option<DirectoryLock>,
}

/// What handles and threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) dir: PathBuf,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) options: FileOptions,
    pub(crate) incarnation: Incarnation,
    pub(crate) clock: StoreClock,
    pub(crate) state: RwLock<FileState>,
    pub(crate) pipeline: Pipeline,
    pub(crate) durable: watch::Sender<Durable>,
    pub(crate) wakeups: LocalWakeups,
    pub(crate) log: Log,
    pub(crate) reader: LogReader,
    pub(crate) footers: Arc<Footers>,
    pub(crate) archive: Archive,
    /// Bounds how many callers read files at a time.
    pub(crate) file_readers: Arc<Semaphore>,
    pub(crate) published: Arc<Published>,
    pub(crate) recent_marks: RecentMarks,
    /// What the state was last checkpointed as, to go back to when the disk fails.
    pub(crate) base: Mutex<Base>,
    /// Whether a write to the index waits for room on a full disk.
    pub(crate) patience: Arc<Patience>,
    /// Whether memory has the end of every lane, so that no append need look for cold ones.
    pub(crate) tails_in_memory: Arc<AtomicBool>,
    /// Log bytes since the last finished checkpoint began.
    pub(crate) log_bytes: AtomicU64,
    /// Tells the checkpoint thread what to do.
    pub(super) checkpoint: Mutex<CheckpointCall>,
    pub(super) checkpoint_called: Condvar,
    /// Wakes appends that wait for a checkpoint.
    pub(crate) checkpointed: tokio::sync::Notify,
}

/// A checkpoint: the index as of a place in the log.
#[derive(Clone, Debug)]
pub(crate) struct Base {
    pub(crate) index: Arc<Snapshot>,
    pub(crate) end: Mark,
}

/// What the checkpoint thread is asked for.
#[derive(Debug, Default)]
pub(super) struct CheckpointCall {
    pub(super) due: bool,
    pub(super) stop: bool,
}

impl Shared {
    /// Reads the state and answers when everything it saw is durable.
    pub(crate) async fn observe<T>(&self, look: impl Fn(&Seen<'_>, Now) -> Result<T>) -> Result<T> {
        let (seen, groups) = self.look(look).await?;
        if groups > self.pipeline.groups() {
            self.pipeline.hurry();
        }
        let mut durable = self.durable.subscribe();
        // The look at `durable` ends here: a second one inside it could wait for a writer that waits for the first.
        let reached = durable.wait_for(|durable| durable.groups >= groups || durable.failed.is_some()).await;
        if reached.is_ok_and(|durable| durable.groups >= groups) {
            return seen;
        }
        Err(StoreError::Down { reason: self.failure() })
    }

    /// Reads the state as it is, and up to which group of changes it was seen. What takes a file to tell is read without the
    /// lock, and then looked at again.
    pub(crate) async fn look<T>(
        &self,
        look: impl Fn(&Seen<'_>, Now) -> Result<T>,
    ) -> Result<(Result<T>, u64)> {
        let mut fetched = Fetched::default();
        loop {
            let now = self.clock.now();
            let (seen, groups) = {
                let state = self.state.read();
                (look(&Seen { state: &state, fetched: &fetched }, now), state.groups)
            };
            let missed = fetched.take_missed();
            if missed.is_empty() {
                return Ok((seen, groups));
            }
            fetched = self.fetch(fetched, missed).await?;
        }
    }

    /// Reads what a call missed, on a thread that may wait for the disk.
    pub(crate) async fn fetch(&self, mut fetched: Fetched, missed: Vec<Wanted>) -> Result<Fetched> {
        let archive = self.archive.clone();
        self.read_files(move || fetched.fetch(&archive, missed).map(|()| fetched)).await
    }

    /// Reads files on a thread that may wait for the disk, a few callers at a time.
    pub(crate) async fn read_files<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce() -> Result<T> + Send + 'static,
    {
        let permit = Arc::clone(&self.file_readers).acquire_owned().await.map_err(|_| self.ended())?;
        // The read goes on when its caller gives up, so it keeps the permit itself.
        let read = move || {
            let answer = work();
            drop(permit);
            answer
        };
        seam::blocking(read).await.unwrap_or_else(|| Err(self.ended()))
    }

    fn ended(&self) -> StoreError {
        StoreError::Down { reason: "the store is being closed".to_owned() }
    }

    /// Why the store takes no more work.
    pub(crate) fn failure(&self) -> String {
        self.durable.borrow().failed.as_deref().unwrap_or("the store is closed").to_owned()
    }

    /// Stops taking work because of this; the open group will never be written. The write thread ends and goes
    /// back to what is durable.
    pub(crate) fn fail(&self, state: &FileState, cause: &Arc<str>) {
        tracing::error!(%cause, "store stops taking work; what is durable stays readable");
        self.pipeline.fail(cause);
        state.open_done().set(Err(Arc::clone(cause)));
        self.tell_failed(cause);
    }

    /// Fails if that has not been done, and puts the state back to what is durable, so that it stays readable.
    pub(crate) fn go_back(&self, cause: &Arc<str>) {
        let mut state = self.state.write();
        self.fail(&state, cause);
        if let Err(error) = super::open::reload(self, &mut state) {
            tracing::error!(%error, "what is durable could not be read back; reads of the last moments fail");
        }
    }

    /// Whether the store is being closed: then nothing waits for room any more.
    pub(crate) fn is_closing(&self) -> bool {
        self.checkpoint.lock().stop
    }

    /// Tells everybody who waits that there will be no more.
    pub(crate) fn tell_failed(&self, cause: &Arc<str>) {
        self.durable.send_modify(|durable| {
            durable.failed.get_or_insert_with(|| Arc::clone(cause));
        });
        self.checkpointed.notify_waiters();
    }

    /// Rests while the disk is full; upkeep or an operator may make room.
    pub(crate) fn wait_for_space(&self) {
        self.log.poke_spares();
        self.log.wait_upkeep(SPACE_WAIT);
    }

    /// Asks for a checkpoint.
    pub(crate) fn checkpoint_due(&self) {
        let mut call = self.checkpoint.lock();
        if !call.due {
            call.due = true;
            self.checkpoint_called.notify_one();
        }
    }

    /// Waits while there is more log since the last checkpoint than a restart should have to replay.
    pub(crate) async fn wait_for_checkpoint(&self) {
        while self.log_bytes.load(Ordering::Relaxed) >= self.options.backlog_bytes {
            let finished = self.checkpointed.notified();
            if self.log_bytes.load(Ordering::Relaxed) < self.options.backlog_bytes
                || self.pipeline.is_closed()
            {
                return;
            }
            self.checkpoint_due();
            finished.await;
        }
    }
}

impl FileStore {
    pub(super) fn new(
        shared: Arc<Shared>,
        checkpointer: Arc<Checkpointer>,
        threads: Vec<JoinHandle<()>>,
        lock: Option<DirectoryLock>,
    ) -> Self {
        Self { inner: Arc::new(Inner { shared, checkpointer, threads: Mutex::new(threads), _lock: lock }) }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    /// Writes a checkpoint now: the next start replays nothing before this moment.
    ///
    /// With [`Background::Manual`] it also prepares and recycles segments, which a thread does otherwise.
    pub fn checkpoint(&self) -> Result<()> {
        let checkpoint = self.inner.checkpointer.run(self.shared());
        if self.shared().options.background == Background::Manual {
            while self.shared().log.upkeep() {}
        }
        checkpoint
    }

    /// Closes the store in order: the queue is served, a checkpoint is written, the log is ended. Other handles
    /// get `Down` afterwards. Dropping the last handle does the same without saying how it went.
    pub fn close(self) -> Result<()> {
        self.inner.close()
    }
}

impl Inner {
    fn close(&self) -> Result<()> {
        let mut threads = self.threads.lock();
        if threads.is_empty() {
            return Ok(());
        }
        self.shared.checkpoint.lock().stop = true;
        self.shared.checkpoint_called.notify_all();
        self.shared.patience.end();
        let failed = self.shared.durable.borrow().failed.is_some();
        let checkpoint = if failed { Ok(()) } else { self.checkpointer.run(&self.shared) };
        self.shared.pipeline.close("the store is closed");
        self.shared.checkpointed.notify_waiters();
        for thread in threads.drain(..) {
            if thread.join().is_err() {
                return Err(StoreError::Down {
                    reason: "a thread of the store panicked; see its message".to_owned(),
                });
            }
        }
        checkpoint
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::warn!(%error, "store was not closed in order; nothing acknowledged is lost");
        }
    }
}
