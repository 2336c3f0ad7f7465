//! Single syncs beside a load, on the same disk: how long a write takes that nothing of ours can make faster.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Latencies, Recorder};
use crate::{Failure, seam};

const EVERY: Duration = Duration::from_millis(10);
const FILE_BYTES: usize = 1 << 20;
const WRITE_BYTES: usize = 4096;

/// A thread that syncs a small write into space filled with zeros, again and again.
pub(crate) struct SyncProbe {
    stop: Arc<AtomicBool>,
    recorder: Recorder,
    thread: std::thread::JoinHandle<()>,
}

impl SyncProbe {
    /// Begins, with a new file at this path.
    pub(crate) fn start(path: &Path) -> Result<Self, Failure> {
        let file = OpenOptions::new().create_new(true).write(true).open(path)?;
        file.write_all_at(&vec![0; FILE_BYTES], 0)?;
        file.sync_all()?;
        let (stop, recorder) = (Arc::<AtomicBool>::default(), Recorder::default());
        let (until, record) = (Arc::clone(&stop), recorder.clone());
        let thread = seam::thread("sync-probe", move || sync_until(&file, &until, &record))?;
        Ok(Self { stop, recorder, thread })
    }

    /// Ends it and answers how long the syncs took.
    pub(crate) fn stop(self) -> Result<Latencies, Failure> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the thread that syncs panicked")?;
        Ok(self.recorder.take())
    }
}

/// A disk that refuses ends the probe: what it has measured until then counts.
fn sync_until(file: &File, stop: &AtomicBool, recorder: &Recorder) {
    let offsets = (0..FILE_BYTES).step_by(WRITE_BYTES).cycle();
    for offset in offsets {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let begun = seam::now();
        let synced = file.write_all_at(&[1; WRITE_BYTES], offset as u64).and_then(|()| file.sync_data());
        if let Err(error) = synced {
            return crate::context::progress(&format!("the sync probe ended: {error}"));
        }
        recorder.note(begun);
        seam::rest(EVERY);
    }
}
