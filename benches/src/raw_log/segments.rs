//! Files for the raw log: filled with zeros ahead of need by a thread of their own, and used again when their
//! content is no longer wanted. Knows nothing of frames.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::{Failure, seam};

/// Length of a segment, as in the store.
pub(crate) const SEGMENT_BYTES: u64 = 64 << 20;
/// Files kept ready, as in the store.
const READY: usize = 3;
/// Files kept ready at most when used ones come back, as in the store.
const READY_MAX: usize = 6;
const FILL_BYTES: usize = 1 << 20;
/// How often it is looked whether a used file may be taken back.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// One file, filled to its length.
pub(super) struct Segment {
    pub(super) file: Arc<File>,
    path: PathBuf,
}

/// The files of one raw log.
pub(super) struct Segments {
    dir: PathBuf,
    /// How long a full file is kept; `None` for ever.
    keep: Option<Duration>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Segment>,
    full: VecDeque<(Instant, Segment)>,
    created: u64,
    stop: bool,
    failed: Option<String>,
}

/// What the preparing thread does next.
enum Step {
    Create(u64),
    Remove(Segment),
    Look,
    Stop,
}

impl Segments {
    pub(super) fn new(dir: &Path, keep: Option<Duration>) -> Arc<Self> {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Arc::new(Self { dir: dir.to_owned(), keep, state, changed })
    }

    /// Prepares files until stopped; runs on a thread of its own.
    pub(super) fn serve(&self) {
        loop {
            match self.next_step() {
                Step::Stop => return,
                Step::Look => {}
                Step::Create(number) => match create(&self.dir.join(format!("{number:020}.raw"))) {
                    Ok(segment) => self.change(|state| state.ready.push_back(segment)),
                    Err(error) => return self.change(|state| state.failed = Some(error.to_string())),
                },
                Step::Remove(segment) => {
                    if let Err(error) = std::fs::remove_file(&segment.path) {
                        return self.change(|state| state.failed = Some(error.to_string()));
                    }
                }
            }
        }
    }

    fn next_step(&self) -> Step {
        let mut state = self.state.lock();
        if state.stop {
            return Step::Stop;
        }
        let now = seam::now();
        if let Some(keep) = self.keep
            && state.full.front().is_some_and(|(since, _)| now.duration_since(*since) >= keep)
            && let Some((_, segment)) = state.full.pop_front()
        {
            if state.ready.len() >= READY_MAX {
                return Step::Remove(segment);
            }
            state.ready.push_back(segment);
            self.changed.notify_all();
        }
        if state.ready.len() < READY {
            state.created += 1;
            return Step::Create(state.created);
        }
        self.changed.wait_for(&mut state, LOOK_EVERY);
        Step::Look
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
        self.changed.notify_all();
    }

    /// Takes a ready file and gives back the full one.
    pub(super) fn exchange(&self, full: Option<Segment>) -> Result<Segment, Failure> {
        let mut state = self.state.lock();
        state.full.extend(full.map(|segment| (seam::now(), segment)));
        loop {
            if let Some(segment) = state.ready.pop_front() {
                drop(state);
                self.changed.notify_all();
                return Ok(segment);
            }
            if let Some(failed) = &state.failed {
                return Err(format!("could not prepare a segment in {}: {failed}", self.dir.display()).into());
            }
            self.changed.wait(&mut state);
        }
    }

    /// Waits until as many files are ready as ever will be, so that filling does not run into a measurement.
    pub(super) fn wait_until_ready(&self) {
        let mut state = self.state.lock();
        while state.ready.len() < READY && state.failed.is_none() {
            self.changed.wait(&mut state);
        }
    }

    pub(super) fn stop(&self) {
        self.change(|state| state.stop = true);
    }
}

fn create(path: &Path) -> std::io::Result<Segment> {
    let file = OpenOptions::new().create_new(true).read(true).write(true).open(path)?;
    let zeros = vec![0; FILL_BYTES];
    for at in (0..SEGMENT_BYTES).step_by(FILL_BYTES) {
        file.write_all_at(&zeros, at)?;
    }
    file.sync_all()?;
    Ok(Segment { file: Arc::new(file), path: path.to_owned() })
}
