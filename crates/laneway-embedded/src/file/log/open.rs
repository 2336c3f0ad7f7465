//! Opening the log, and the handle for everything that is neither writing nor reading.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::error::{LogError, io_error};
use super::options::{Options, Upkeep};
use super::position::{Frame, Mark, Position};
use super::reader::LogReader;
use super::recent::Recent;
use super::recover::{self, Recovered};
use super::segment::{self, SegmentInfo, Table};
use super::spares::{Spares, SparesStatus};
use super::walked::Walked;
use super::writer::LogWriter;
use crate::file::disk::Disk;
use crate::file::seam;

/// What writer, readers and upkeep share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: PathBuf,
    pub(super) options: Options,
    pub(super) store_id: u128,
    pub(super) table: Arc<Table>,
    pub(super) recent: Recent,
    pub(super) walked: Walked,
    pub(super) spares: Arc<Spares>,
    /// The end of what readers may see.
    pub(super) end: Mutex<Mark>,
}

/// From where to replay, and how far the log must reach at least.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Replay {
    /// The first frame to visit; `None` visits all that are kept.
    pub from: Option<Mark>,
    /// A place known to be durable, such as that of a checkpoint: a log that ends before it has lost frames.
    pub must_reach: Option<Position>,
}

/// An open log.
#[derive(Debug)]
pub struct Opened {
    /// Segments and upkeep.
    pub log: Log,
    /// The only writer.
    pub writer: LogWriter,
    /// A reader to clone.
    pub reader: LogReader,
    /// What was found.
    pub recovered: Recovered,
}

/// The handle for segments and upkeep; cheap to clone.
#[derive(Debug, Clone)]
pub struct Log {
    shared: Arc<Shared>,
}

impl Log {
    /// Opens or creates the log in the folder `log` of `dir` and calls `visit` for every frame to replay, in order.
    ///
    /// Changes no byte of what it reads, so it can be interrupted and repeated; every frame visited is
    /// durable when this returns. An error of `visit` is returned as it is.
    /// Refuses: `Corrupt` when acknowledged frames are missing or damaged, `Newer`, `Options`, `Io`.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        options: Options,
        replay: Replay,
        visit: &mut dyn FnMut(Frame) -> Result<(), LogError>,
    ) -> Result<Opened, LogError> {
        options.check()?;
        let dir = segment::log_dir(dir);
        disk.create_dir(&dir).map_err(io_error("create folder", &dir))?;
        let found = recover::recover(disk.as_ref(), &dir, &options, replay, visit)?;
        let table = Arc::new(Table::new(Arc::clone(&disk), dir.clone(), found.segments));
        let spares =
            Spares::new(Arc::clone(&disk), dir.clone(), Arc::clone(&table), &options, found.leftovers);
        let shared = Arc::new(Shared {
            disk,
            dir,
            store_id: found.store_id.unwrap_or_else(seam::random_u128),
            table,
            recent: Recent::new(options.recent_bytes),
            walked: Walked::new(options.recent_bytes),
            spares: Arc::new(spares),
            end: Mutex::new(found.recovered.end),
            options,
        });
        let thread = match shared.options.upkeep {
            Upkeep::Caller => None,
            Upkeep::Thread => {
                let spares = Arc::clone(&shared.spares);
                spares.look_for_room();
                let spawned = seam::spawn("laneway-log", move || spares.run());
                Some(spawned.map_err(io_error("start the upkeep thread of", &shared.dir))?)
            }
        };
        let writer = LogWriter::new(Arc::clone(&shared), found.closed_mark, thread);
        let reader = LogReader::new(Arc::clone(&shared));
        Ok(Opened { log: Log { shared }, writer, reader, recovered: found.recovered })
    }

    /// The random number that names this store in every segment.
    pub fn store_id(&self) -> u128 {
        self.shared.store_id
    }

    /// All segments, oldest first.
    pub fn segments(&self) -> Vec<SegmentInfo> {
        self.shared.table.list()
    }

    /// The start value of the checksums of a segment, which names this life of its file.
    pub fn seed(&self, serial: u64) -> Option<u32> {
        self.shared.table.get(serial).map(|segment| segment.key.seed)
    }

    /// Says that a segment is no longer needed: it is recycled or deleted by the upkeep.
    ///
    /// Segments go oldest first: one released early waits for those before it. The newest one stays
    /// until there is a newer one. Repeating the call changes nothing.
    pub fn release(&self, serial: u64) {
        self.shared.table.release(serial);
        self.shared.spares.poke();
    }

    /// Keeps the files of all segments for as long as the answer lives, also of those that are released.
    pub fn pin(&self) -> Pinned {
        self.shared.table.pin();
        Pinned { shared: Arc::clone(&self.shared) }
    }

    /// Lets the upkeep try again at once after a full disk.
    pub fn poke_spares(&self) {
        self.shared.spares.poke();
    }

    /// Does one piece of upkeep on the calling thread, for [`Upkeep::Caller`]; false if there was nothing to
    /// do or it has to wait for [`Log::poke_spares`].
    pub fn upkeep(&self) -> bool {
        self.shared.spares.step()
    }

    /// Waits until the background thread has nothing to do or rests after a failure; false if that took
    /// longer than `limit`.
    pub fn wait_upkeep(&self, limit: Duration) -> bool {
        self.shared.spares.wait_idle(limit)
    }

    /// How the upkeep stands.
    pub fn spares(&self) -> SparesStatus {
        self.shared.spares.status()
    }

    /// The longest body a frame may have.
    pub fn body_len_max(&self) -> usize {
        self.shared.options.body_len_max()
    }
}

/// Keeps the files of all segments.
#[derive(Debug)]
pub struct Pinned {
    shared: Arc<Shared>,
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.shared.table.unpin();
        self.shared.spares.wake();
    }
}
