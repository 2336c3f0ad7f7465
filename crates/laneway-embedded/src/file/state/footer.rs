//! Footers: where the events and job ends of each shard lie in a sealed segment, in a file of its own.
//!
//! ```text
//! contents/00000000000000000042.idx
//!   magic | version | table length | table checksum | table | blocks
//! table:  store, serial, seed, keep_until, ended, times, then per shard: first and last id, number of runs,
//!         first and last id of ends, number of ends
//! blocks: per shard its runs, then its ends: up to 256 entries of 16 bytes each with a checksum, sorted by id
//! ```
//!
//! The table stays in memory for as long as the segment is there; a look-up reads a few blocks. A footer that is missing,
//! damaged or of another life of its segment is made again from the segment, and a damaged block is refused: it never
//! hides something that is there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use laneway_core::{EventId, Partition, Result, Shard, StoreError, StreamId, Timestamp};
use parking_lot::Mutex;

use super::contents::{Entry, SegmentContents, run_of};
use crate::file::disk::{Disk, DiskFile};
use crate::machine::codec::{Decoder, Encoder, Malformed};

const MAGIC: &[u8; 8] = b"LANEWAYF";
const VERSION: u32 = 2;
/// Had one place per 128 KiB of log and shard. Such footers are made again.
const VERSION_BEFORE: u32 = 1;
const HEAD_BYTES: usize = 20;
const BLOCK_ENTRIES: usize = 256;
const ENTRY_BYTES: usize = 16;
const BLOCK_BYTES: usize = BLOCK_ENTRIES * ENTRY_BYTES + 4;
/// Most footers whose files stay open.
const OPEN_MAX: usize = 64;

/// Footers of one folder.
#[derive(Debug)]
pub(crate) struct Footers {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    store: u128,
    /// Most recently used last.
    open: Mutex<Vec<(u64, Arc<dyn DiskFile>)>>,
}

/// A sorted list of entries in a footer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryList {
    /// Where its first block begins in the file.
    offset: u64,
    len: u32,
    pub(crate) first: EventId,
    pub(crate) last: EventId,
}

impl EntryList {
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn len(&self) -> u64 {
        u64::from(self.len)
    }

    fn blocks(&self) -> usize {
        (self.len as usize).div_ceil(BLOCK_ENTRIES)
    }

    fn file_bytes(&self) -> u64 {
        self.len as u64 * ENTRY_BYTES as u64 + self.blocks() as u64 * 4
    }
}

/// One shard in a sealed segment. `last` of its runs is the last id of its events, not of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShardTable {
    pub(crate) shard: Shard,
    pub(crate) runs: EntryList,
    pub(crate) ends: EntryList,
}

/// A sealed segment, in as little memory as finding things in it needs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SegmentTable {
    pub(crate) serial: u64,
    /// Seed of the checksums of its frames: another one means another life of the file.
    pub(crate) seed: u32,
    pub(crate) keep_until: Timestamp,
    pub(crate) ended: Timestamp,
    pub(crate) times: Vec<(Timestamp, u32)>,
    /// Sorted by shard.
    pub(crate) shards: Vec<ShardTable>,
}

impl SegmentTable {
    pub(crate) fn shard(&self, shard: Shard) -> Option<&ShardTable> {
        self.shards.binary_search_by_key(&shard, |found| found.shard).ok().map(|at| &self.shards[at])
    }
}

impl Footers {
    /// Footers in the folder `contents` of a store.
    pub(crate) fn open(disk: Arc<dyn Disk>, dir: &Path, store: u128) -> Result<Self> {
        let dir = dir.join("contents");
        disk.create_dir(&dir).map_err(|error| down("create", &dir, &error))?;
        Ok(Self { disk, dir, store, open: Mutex::default() })
    }

    fn path(&self, serial: u64) -> PathBuf {
        self.dir.join(file_name(serial))
    }

    /// Writes the footer of a segment; durable on return.
    pub(crate) fn write(&self, serial: u64, seed: u32, contents: &SegmentContents) -> Result<SegmentTable> {
        let (table, bytes) = encode(self.store, serial, seed, contents);
        let (path, temporary) = (self.path(serial), self.dir.join("new.tmp"));
        let write = || {
            if self.disk.exists(&temporary)? {
                self.disk.remove(&temporary)?;
            }
            let file = self.disk.create(&temporary)?;
            file.write_at(&bytes, 0)?;
            file.sync_data()?;
            self.disk.rename(&temporary, &path)?;
            self.disk.sync_dir(&self.dir)
        };
        write().map_err(|error| down("write", &path, &error))?;
        self.open.lock().retain(|(open, _)| *open != serial);
        Ok(table)
    }

    /// Removes the footer of a released segment.
    pub(crate) fn remove(&self, serial: u64) -> Result<()> {
        self.open.lock().retain(|(open, _)| *open != serial);
        let path = self.path(serial);
        let remove = || if self.disk.exists(&path)? { self.disk.remove(&path) } else { Ok(()) };
        remove().map_err(|error| down("remove", &path, &error))
    }

    /// Serials that have a footer.
    pub(crate) fn serials(&self) -> Result<Vec<u64>> {
        let names = self.disk.list(&self.dir).map_err(|error| down("list", &self.dir, &error))?;
        let mut serials: Vec<u64> =
            names.iter().filter_map(|name| name.strip_suffix(".idx")?.parse().ok()).collect();
        serials.sort_unstable();
        Ok(serials)
    }

    fn file(&self, serial: u64) -> Result<Arc<dyn DiskFile>> {
        let known =
            self.open.lock().iter().find(|(found, _)| *found == serial).map(|(_, file)| Arc::clone(file));
        let file = match known {
            Some(file) => file,
            // Not under the lock: the disk may take its time, and other look-ups need only files that are open.
            None => {
                let path = self.path(serial);
                self.disk.open(&path).map_err(|error| down("open", &path, &error))?
            }
        };
        let mut open = self.open.lock();
        open.retain(|(found, _)| *found != serial);
        if open.len() >= OPEN_MAX {
            open.remove(0);
        }
        open.push((serial, Arc::clone(&file)));
        Ok(file)
    }

    /// Reads the table of a footer. `None` if a release before wrote it: it has to be made again.
    pub(crate) fn table(&self, serial: u64) -> Result<Option<SegmentTable>> {
        let path = self.path(serial);
        let file = self.file(serial)?;
        let read = |len: usize, offset: u64| {
            let mut buffer = vec![0; len];
            let count = file.read_at(&mut buffer, offset).map_err(|error| down("read", &path, &error))?;
            if count == len { Ok(buffer) } else { Err(damaged(&path, "it ends too early")) }
        };
        let head = read(HEAD_BYTES, 0)?;
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| head[at + index]));
        if head[..8] != *MAGIC {
            return Err(damaged(&path, "it does not begin as a footer"));
        }
        if word(8) == VERSION_BEFORE {
            return Ok(None);
        }
        if word(8) != VERSION {
            return Err(damaged(&path, &format!("its format version is {}, not {VERSION}", word(8))));
        }
        let size = file.len().map_err(|error| down("read", &path, &error))?;
        if u64::from(word(12)) > size {
            return Err(damaged(&path, "its table is longer than the file"));
        }
        let table = read(word(12) as usize, HEAD_BYTES as u64)?;
        if crc32fast::hash(&table) != word(16) {
            return Err(damaged(&path, "its table fails the checksum"));
        }
        let blocks_at = HEAD_BYTES as u64 + u64::from(word(12));
        let decoded = decode(Decoder::new(Bytes::from(table)), self.store, serial, blocks_at);
        decoded.map(Some).map_err(|Malformed| damaged(&path, "its table makes no sense"))
    }

    /// Runs of a shard from the one on that has this id, or that begins after it: at most a block of them.
    pub(crate) fn runs(&self, table: &SegmentTable, shard: Shard, id: EventId) -> Result<Vec<Entry>> {
        let Some(list) = table.shard(shard).map(|found| found.runs) else { return Ok(Vec::new()) };
        let Some((block, mut entries)) = self.find_block(table.serial, list, id)? else {
            return Ok(Vec::new());
        };
        let from = run_of(&entries, id);
        entries.drain(..from);
        // The last run of a block has no neighbour here that tells where it ends.
        if entries.len() == 1 && block + 1 < list.blocks() {
            entries.extend(self.block(table.serial, list, block + 1)?);
        }
        Ok(entries)
    }

    /// The first run whose frame begins at this offset or later, and those after it in its block.
    pub(crate) fn runs_at(&self, table: &SegmentTable, shard: Shard, offset: u32) -> Result<Vec<Entry>> {
        let Some(list) = table.shard(shard).map(|found| found.runs) else { return Ok(Vec::new()) };
        let block = self.search(table.serial, list, |first| first.frame <= offset)?;
        for block in block..list.blocks() {
            let mut entries = self.block(table.serial, list, block)?;
            entries.retain(|run| run.frame >= offset);
            if !entries.is_empty() {
                return Ok(entries);
            }
        }
        Ok(Vec::new())
    }

    /// The place of a job's end.
    pub(crate) fn job_end(&self, table: &SegmentTable, shard: Shard, id: EventId) -> Result<Option<Entry>> {
        let Some(list) = table.shard(shard).map(|found| found.ends) else { return Ok(None) };
        if list.is_empty() || id < list.first || id > list.last {
            return Ok(None);
        }
        let found = self.find_block(table.serial, list, id)?;
        Ok(found.and_then(|(_, ends)| Some(ends[ends.binary_search_by_key(&id, |end| end.id).ok()?])))
    }

    /// Places of the ends of jobs after an id, by id.
    pub(crate) fn job_ends(
        &self,
        table: &SegmentTable,
        shard: Shard,
        after: EventId,
        limit: usize,
    ) -> Result<Vec<Entry>> {
        let Some(list) = table.shard(shard).map(|found| found.ends) else { return Ok(Vec::new()) };
        self.entries_after(table.serial, list, after, limit)
    }

    /// All runs of a shard.
    pub(crate) fn all_runs(&self, table: &SegmentTable, shard: Shard) -> Result<Vec<Entry>> {
        let Some(list) = table.shard(shard).map(|found| found.runs) else { return Ok(Vec::new()) };
        self.entries_after(table.serial, list, EventId(0), usize::MAX)
    }

    fn entries_after(
        &self,
        serial: u64,
        list: EntryList,
        after: EventId,
        limit: usize,
    ) -> Result<Vec<Entry>> {
        let mut found = Vec::new();
        if list.is_empty() || list.last <= after {
            return Ok(found);
        }
        for block in self.search(serial, list, |first| first.id <= after)?..list.blocks() {
            found.extend(self.block(serial, list, block)?.into_iter().filter(|entry| entry.id > after));
            if found.len() >= limit {
                break;
            }
        }
        found.truncate(limit);
        Ok(found)
    }

    fn find_block(&self, serial: u64, list: EntryList, id: EventId) -> Result<Option<(usize, Vec<Entry>)>> {
        if list.is_empty() {
            return Ok(None);
        }
        let block = self.search(serial, list, |first| first.id <= id)?;
        Ok(Some((block, self.block(serial, list, block)?)))
    }

    /// The last block whose first entry is not beyond what is looked for, or the first.
    fn search(&self, serial: u64, list: EntryList, is_before: impl Fn(Entry) -> bool) -> Result<usize> {
        let (mut low, mut high) = (0, list.blocks());
        while low + 1 < high {
            let middle = usize::midpoint(low, high);
            if self.block(serial, list, middle)?.first().copied().is_some_and(&is_before) {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    fn block(&self, serial: u64, list: EntryList, block: usize) -> Result<Vec<Entry>> {
        let count = (list.len as usize - block * BLOCK_ENTRIES).min(BLOCK_ENTRIES);
        let offset = list.offset + (block * BLOCK_BYTES) as u64;
        let mut buffer = vec![0; count * ENTRY_BYTES + 4];
        let file = self.file(serial)?;
        let read =
            file.read_at(&mut buffer, offset).map_err(|error| down("read", &self.path(serial), &error))?;
        let (entries, sum) = buffer.split_at(count * ENTRY_BYTES);
        if read != buffer.len() || crc32fast::hash(entries).to_le_bytes() != sum {
            return Err(damaged(&self.path(serial), "a block fails the checksum"));
        }
        let entry = |bytes: &[u8]| {
            let part = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| bytes[at + index]));
            let id = u64::from_le_bytes(std::array::from_fn(|index| bytes[index]));
            Entry { id: EventId(id), frame: part(8), at: part(12) }
        };
        Ok(entries.chunks_exact(ENTRY_BYTES).map(entry).collect())
    }

    /// Whether the footer says exactly this of its segment. Reads every block. `None` if a release before wrote it.
    pub(crate) fn agrees(&self, serial: u64, contents: &SegmentContents) -> Result<Option<bool>> {
        let Some(stored) = self.table(serial)? else { return Ok(None) };
        let (expected, _) = encode(self.store, serial, stored.seed, contents);
        if stored != expected {
            return Ok(Some(false));
        }
        for table in &stored.shards {
            let Some(found) = contents.shards.get(&table.shard) else { return Ok(Some(false)) };
            let ends = self.job_ends(&stored, table.shard, EventId(0), usize::MAX)?;
            if self.all_runs(&stored, table.shard)? != found.runs || ends != found.ends.all() {
                return Ok(Some(false));
            }
        }
        Ok(Some(true))
    }
}

fn file_name(serial: u64) -> String {
    format!("{serial:020}.idx")
}

fn down(action: &str, path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Down { reason: format!("could not {action} {}: {error}", path.display()) }
}

fn damaged(path: &Path, what: &str) -> StoreError {
    let what = format!("{}: {what}; remove the file and it is made again from its segment", path.display());
    StoreError::Corrupt { what }
}

fn encode(store: u128, serial: u64, seed: u32, contents: &SegmentContents) -> (SegmentTable, Vec<u8>) {
    let mut blocks = Vec::new();
    let mut shards: Vec<_> = contents.shards.iter().collect();
    shards.sort_unstable_by_key(|(shard, _)| **shard);
    let mut shards: Vec<ShardTable> = shards
        .into_iter()
        .map(|(shard, found)| {
            let runs = EntryList { last: found.last, ..encode_list(&found.runs, &mut blocks) };
            ShardTable { shard: *shard, runs, ends: encode_list(&found.ends.all(), &mut blocks) }
        })
        .collect();
    let mut table = Vec::new();
    table.u128(store);
    Encoder::u64(&mut table, serial);
    table.u32(seed);
    Encoder::u64(&mut table, contents.keep_until.0);
    Encoder::u64(&mut table, contents.ended.0);
    table.varint(contents.times.len() as u64);
    for (time, offset) in &contents.times {
        Encoder::u64(&mut table, time.0);
        table.u32(*offset);
    }
    table.varint(shards.len() as u64);
    for found in &shards {
        table.u32(found.shard.stream.0);
        table.u32(found.shard.partition.0);
        for list in [&found.runs, &found.ends] {
            table.u32(list.len);
            Encoder::u64(&mut table, list.first.0);
            Encoder::u64(&mut table, list.last.0);
        }
    }
    let mut bytes = Vec::with_capacity(HEAD_BYTES + table.len() + blocks.len());
    bytes.extend_from_slice(MAGIC);
    bytes.u32(VERSION);
    bytes.u32(u32::try_from(table.len()).expect("a table is far smaller than its segment"));
    bytes.u32(crc32fast::hash(&table));
    bytes.extend_from_slice(&table);
    let blocks_at = bytes.len() as u64;
    bytes.extend_from_slice(&blocks);
    for found in &mut shards {
        found.runs.offset += blocks_at;
        found.ends.offset += blocks_at;
    }
    let (keep_until, ended) = (contents.keep_until, contents.ended);
    let times = contents.times.clone();
    (SegmentTable { serial, seed, keep_until, ended, times, shards }, bytes)
}

/// Appends the blocks of a list; its offset counts from the first block of all.
fn encode_list(entries: &[Entry], blocks: &mut Vec<u8>) -> EntryList {
    let offset = blocks.len() as u64;
    for block in entries.chunks(BLOCK_ENTRIES) {
        let start = blocks.len();
        for entry in block {
            Encoder::u64(blocks, entry.id.0);
            blocks.u32(entry.frame);
            blocks.u32(entry.at);
        }
        let sum = crc32fast::hash(&blocks[start..]);
        blocks.u32(sum);
    }
    let len = u32::try_from(entries.len()).expect("a segment is at most 1 GiB");
    let id = |entry: Option<&Entry>| entry.map_or(EventId(0), |entry| entry.id);
    EntryList { offset, len, first: id(entries.first()), last: id(entries.last()) }
}

fn decode(
    mut from: Decoder,
    store: u128,
    serial: u64,
    blocks_at: u64,
) -> std::result::Result<SegmentTable, Malformed> {
    if from.u128()? != store || from.u64()? != serial {
        return Err(Malformed);
    }
    let (seed, keep_until, ended) = (from.u32()?, Timestamp(from.u64()?), Timestamp(from.u64()?));
    let (mut times, mut shards) = (Vec::new(), Vec::new());
    for _ in 0..from.len()? {
        times.push((Timestamp(from.u64()?), from.u32()?));
    }
    let mut offset = blocks_at;
    let mut list = |from: &mut Decoder| {
        let (len, first, last) = (from.u32()?, EventId(from.u64()?), EventId(from.u64()?));
        let list = EntryList { offset, len, first, last };
        offset += list.file_bytes();
        Ok(list)
    };
    for _ in 0..from.len()? {
        let shard = Shard { stream: StreamId(from.u32()?), partition: Partition(from.u32()?) };
        shards.push(ShardTable { shard, runs: list(&mut from)?, ends: list(&mut from)? });
    }
    from.finish()?;
    Ok(SegmentTable { serial, seed, keep_until, ended, times, shards })
}

#[cfg(test)]
mod tests {
    use std::sync::{OnceLock, Weak};

    use super::*;
    use crate::file::disk::RealDisk;
    use crate::file::disk::simulated::{Call, SimulatedDisk, WatchedDisk};
    use crate::file::state::contents::{FrameContents, Run};

    #[test]
    fn contents_read_back_from_their_footer() {
        let folder = tempfile::tempdir().unwrap();
        let footers = Footers::open(Arc::new(RealDisk), folder.path(), 9).unwrap();
        let shard = |partition| Shard { stream: StreamId(1), partition: Partition(partition) };
        let mut contents = SegmentContents::default();
        for frame in 1..=600u32 {
            let id = |id: u32| EventId(u64::from(id));
            let run = Run { shard: shard(2), first: id(frame * 3), last: id(frame * 3 + 1), at: frame };
            let other = Run { shard: shard(frame), first: id(1), last: id(1), at: 0 };
            let ends = vec![(shard(2), id(frame * 3), frame)];
            let keep_until = Timestamp(99);
            let added = FrameContents { runs: vec![run, other], ends, keep_until };
            contents.add(4096 + frame * 512, Timestamp(7), &added);
        }
        contents.shards.get_mut(&shard(2)).unwrap().runs.retain(|run| run.id.0 > 1);
        let written = footers.write(3, 5, &contents).unwrap();
        let table = footers.table(3).unwrap().unwrap();
        assert_eq!(table, written);
        assert_eq!(footers.agrees(3, &contents).unwrap(), Some(true));
        assert_eq!((table.seed, table.keep_until, table.shards.len()), (5, Timestamp(99), 600));
        let end = |id| footers.job_end(&table, shard(2), EventId(id)).unwrap().map(|end| end.at);
        assert_eq!((end(1500), end(1501), end(1_800_000)), (Some(500), None, None));
        let ends = footers.job_ends(&table, shard(2), EventId(760), 3).unwrap();
        assert_eq!(ends.iter().map(|end| end.id.0).collect::<Vec<_>>(), [762, 765, 768]);
        let run = |id| footers.runs(&table, shard(2), EventId(id)).unwrap()[0].at;
        assert_eq!((run(1500), run(1501), run(1502), run(4)), (500, 500, 500, 1));
        assert!(
            footers.runs(&table, shard(2), EventId(3 * 256 + 1)).unwrap().len() > 1,
            "with its neighbour"
        );
        let at = footers.runs_at(&table, shard(2), 4096 + 400 * 512).unwrap();
        assert_eq!(at[0].at, 400);
        assert_eq!(footers.serials().unwrap(), [3]);
        contents.shards.get_mut(&shard(9)).unwrap().last = EventId(2);
        assert_eq!(footers.agrees(3, &contents).unwrap(), Some(false));
    }

    #[test]
    fn footers_of_a_release_before_are_made_again_and_unknown_ones_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let footers = Footers::open(Arc::new(RealDisk), folder.path(), 9).unwrap();
        let contents = SegmentContents::default();
        footers.write(3, 5, &contents).unwrap();
        let path = footers.path(3);
        let write_version = |version: u32| {
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[8..12].copy_from_slice(&version.to_le_bytes());
            std::fs::write(&path, bytes).unwrap();
        };
        write_version(1);
        assert_eq!(footers.table(3).unwrap(), None);
        assert_eq!(footers.agrees(3, &contents).unwrap(), None);
        for unknown in [0, 3] {
            write_version(unknown);
            let error = footers.table(3).unwrap_err().to_string();
            assert!(error.contains(&format!("format version is {unknown}, not 2")), "{error}");
        }
    }

    #[test]
    fn footer_is_opened_without_the_lock_of_the_open_ones() {
        let disk = WatchedDisk::new(SimulatedDisk::new());
        let dir = Path::new("/store");
        disk.create_dir(dir).unwrap();
        let footers = Arc::new(Footers::open(Arc::new(disk.clone()), dir, 9).unwrap());
        footers.write(3, 5, &SegmentContents::default()).unwrap();
        let opened: Arc<OnceLock<bool>> = Arc::default();
        let (free, inside): (_, Weak<Footers>) = (Arc::clone(&opened), Arc::downgrade(&footers));
        disk.watch(move |call, _| {
            if call == Call::Open {
                let footers = inside.upgrade().unwrap();
                free.set(footers.open.try_lock().is_some()).unwrap();
            }
            Ok(())
        });
        footers.table(3).unwrap();
        assert_eq!(opened.get(), Some(&true), "others would wait for this file");
        footers.table(3).unwrap();
        assert_eq!(footers.open.lock().len(), 1, "it is opened once");
    }
}
