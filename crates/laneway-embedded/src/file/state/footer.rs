//! Footers: the contents of a sealed segment in a file of their own.
//!
//! ```text
//! contents/00000000000000000042.idx
//!   magic | version | table length | table checksum | table | blocks
//! table:  store, serial, keep_until, times, then per shard: last id, places, count of ends, first id of each block
//! blocks: per shard, 256 ends of 16 bytes each with a checksum, sorted by id
//! ```
//!
//! The table is read whole; a job's end costs one block. A footer is made again from its segment when it is
//! missing, and a damaged one is refused: it never hides an end that is there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use hashbrown::HashMap;
use laneway_core::{EventId, Partition, Result, Shard, StoreError, StreamId, Timestamp};
use parking_lot::Mutex;

use super::contents::{EndPlace, SegmentContents, ShardContents, Summary};
use crate::file::disk::{Disk, DiskFile};
use crate::machine::codec::{Decoder, Encoder, Malformed};

const MAGIC: &[u8; 8] = b"LANEWAYF";
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 20;
const BLOCK_ENDS: usize = 256;
const END_BYTES: usize = 16;
/// Most footers whose tables stay in memory.
const OPEN_MAX: usize = 64;

/// Footers of one folder.
#[derive(Debug)]
pub(crate) struct Footers {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    store: u128,
    open: Mutex<HashMap<u64, Arc<Footer>>>,
}

/// The table of one footer.
#[derive(Debug)]
pub(crate) struct Footer {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    /// Places and times; its lists of ends are empty, they stay in the file.
    pub(crate) contents: SegmentContents,
    blocks: HashMap<Shard, Blocks>,
}

/// Where the ends of a shard lie in the file.
#[derive(Debug)]
struct Blocks {
    offset: u64,
    count: usize,
    last: EventId,
    firsts: Vec<EventId>,
}

fn file_name(serial: u64) -> String {
    format!("{serial:020}.idx")
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
    pub(crate) fn write(&self, serial: u64, contents: &SegmentContents) -> Result<()> {
        let bytes = encode(self.store, serial, contents);
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
        write().map_err(|error| down("write", &path, &error))
    }

    /// Removes the footer of a released segment.
    pub(crate) fn remove(&self, serial: u64) -> Result<()> {
        self.open.lock().remove(&serial);
        let path = self.path(serial);
        let remove = || if self.disk.exists(&path)? { self.disk.remove(&path) } else { Ok(()) };
        remove().map_err(|error| down("remove", &path, &error))
    }

    /// Whether there is a footer for this segment.
    pub(crate) fn has(&self, serial: u64) -> bool {
        self.disk.exists(&self.path(serial)).unwrap_or(true)
    }

    /// Serials that have a footer.
    pub(crate) fn serials(&self) -> Result<Vec<u64>> {
        let names = self.disk.list(&self.dir).map_err(|error| down("list", &self.dir, &error))?;
        let mut serials: Vec<u64> =
            names.iter().filter_map(|name| name.strip_suffix(".idx")?.parse().ok()).collect();
        serials.sort_unstable();
        Ok(serials)
    }

    /// The footer of a segment; its table stays in memory for the next time.
    pub(crate) fn get(&self, serial: u64) -> Result<Arc<Footer>> {
        if let Some(footer) = self.open.lock().get(&serial) {
            return Ok(Arc::clone(footer));
        }
        let footer = Arc::new(self.read(serial)?);
        let mut open = self.open.lock();
        if open.len() >= OPEN_MAX {
            open.clear();
        }
        open.insert(serial, Arc::clone(&footer));
        Ok(footer)
    }

    fn read(&self, serial: u64) -> Result<Footer> {
        let path = self.path(serial);
        let file = self.disk.open(&path).map_err(|error| down("open", &path, &error))?;
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
        if word(8) > VERSION {
            let what = format!(
                "{}: format version {} is newer than {VERSION}, the newest this release can read",
                path.display(),
                word(8)
            );
            return Err(StoreError::Corrupt { what });
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
        let (contents, blocks) = decoded.map_err(|Malformed| damaged(&path, "its table makes no sense"))?;
        Ok(Footer { file, path, contents, blocks })
    }
}

impl Footer {
    /// What stays in memory of the segment.
    pub(crate) fn summary(&self) -> Summary {
        let mut summary = self.contents.summary();
        for (shard, blocks) in &self.blocks {
            let ends = blocks.firsts.first().map(|first| (*first, blocks.last));
            summary.shards.entry(*shard).or_default().ends = ends;
        }
        summary
    }

    /// The place of a job's end.
    pub(crate) fn job_end(&self, shard: Shard, id: EventId) -> Result<Option<EndPlace>> {
        let Some(blocks) = self.blocks.get(&shard) else { return Ok(None) };
        let Some(block) = blocks.firsts.partition_point(|first| *first <= id).checked_sub(1) else {
            return Ok(None);
        };
        let ends = self.block(blocks, block)?;
        Ok(ends.binary_search_by_key(&id, |end| end.id).ok().map(|at| ends[at]))
    }

    /// Places of the ends of jobs after an id, by id.
    pub(crate) fn job_ends(&self, shard: Shard, after: EventId, limit: usize) -> Result<Vec<EndPlace>> {
        let Some(blocks) = self.blocks.get(&shard) else { return Ok(Vec::new()) };
        let first = blocks.firsts.partition_point(|first| *first <= after).saturating_sub(1);
        let mut found = Vec::new();
        for block in first..blocks.firsts.len() {
            found.extend(self.block(blocks, block)?.into_iter().filter(|end| end.id > after));
            if found.len() >= limit {
                break;
            }
        }
        found.truncate(limit);
        Ok(found)
    }

    /// Reads every block once.
    pub(crate) fn check(&self) -> Result<()> {
        self.blocks.values().try_for_each(|blocks| {
            (0..blocks.firsts.len()).try_for_each(|block| self.block(blocks, block).map(|_| ()))
        })
    }

    fn block(&self, blocks: &Blocks, block: usize) -> Result<Vec<EndPlace>> {
        let count = (blocks.count - block * BLOCK_ENDS).min(BLOCK_ENDS);
        let offset = blocks.offset + (block * (BLOCK_ENDS * END_BYTES + 4)) as u64;
        let mut buffer = vec![0; count * END_BYTES + 4];
        let read =
            self.file.read_at(&mut buffer, offset).map_err(|error| down("read", &self.path, &error))?;
        let (entries, sum) = buffer.split_at(count * END_BYTES);
        if read != buffer.len() || crc32fast::hash(entries).to_le_bytes() != sum {
            return Err(damaged(&self.path, "a block of job ends fails the checksum"));
        }
        let end = |entry: &[u8]| {
            let part = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| entry[at + index]));
            let id = u64::from_le_bytes(std::array::from_fn(|index| entry[index]));
            EndPlace { id: EventId(id), frame: part(8), at: part(12) }
        };
        Ok(entries.chunks_exact(END_BYTES).map(end).collect())
    }
}

fn down(action: &str, path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Down { reason: format!("could not {action} {}: {error}", path.display()) }
}

fn damaged(path: &Path, what: &str) -> StoreError {
    let what = format!("{}: {what}; remove the file and it is made again from its segment", path.display());
    StoreError::Corrupt { what }
}

fn encode(store: u128, serial: u64, contents: &SegmentContents) -> Vec<u8> {
    let (mut table, mut blocks) = (Vec::new(), Vec::new());
    table.u128(store);
    Encoder::u64(&mut table, serial);
    Encoder::u64(&mut table, contents.keep_until.0);
    table.varint(contents.times.len() as u64);
    for (time, offset) in &contents.times {
        Encoder::u64(&mut table, time.0);
        table.u32(*offset);
    }
    table.varint(contents.shards.len() as u64);
    for (shard, found) in &contents.shards {
        encode_shard(*shard, found, &mut table, &mut blocks);
    }
    let mut bytes = Vec::with_capacity(HEAD_BYTES + table.len() + blocks.len());
    bytes.extend_from_slice(MAGIC);
    bytes.u32(VERSION);
    bytes.u32(u32::try_from(table.len()).expect("a table is far smaller than its segment"));
    bytes.u32(crc32fast::hash(&table));
    bytes.extend_from_slice(&table);
    bytes.extend_from_slice(&blocks);
    bytes
}

fn encode_shard(shard: Shard, found: &ShardContents, table: &mut Vec<u8>, blocks: &mut Vec<u8>) {
    table.u32(shard.stream.0);
    table.u32(shard.partition.0);
    Encoder::u64(table, found.last.0);
    table.varint(found.places.len() as u64);
    for (id, offset) in &found.places {
        Encoder::u64(table, id.0);
        table.u32(*offset);
    }
    Encoder::u64(table, blocks.len() as u64);
    table.varint(found.ends.len() as u64);
    Encoder::u64(table, found.ends.last().map_or(0, |end| end.id.0));
    for block in found.ends.chunks(BLOCK_ENDS) {
        Encoder::u64(table, block[0].id.0);
        let start = blocks.len();
        for end in block {
            Encoder::u64(blocks, end.id.0);
            blocks.u32(end.frame);
            blocks.u32(end.at);
        }
        let sum = crc32fast::hash(&blocks[start..]);
        blocks.u32(sum);
    }
}

type Table = (SegmentContents, HashMap<Shard, Blocks>);

fn decode(
    mut from: Decoder,
    store: u128,
    serial: u64,
    blocks_at: u64,
) -> std::result::Result<Table, Malformed> {
    if from.u128()? != store || from.u64()? != serial {
        return Err(Malformed);
    }
    let mut contents = SegmentContents { keep_until: Timestamp(from.u64()?), ..SegmentContents::default() };
    for _ in 0..from.len()? {
        contents.times.push((Timestamp(from.u64()?), from.u32()?));
    }
    let mut all_blocks = HashMap::new();
    for _ in 0..from.len()? {
        let shard = Shard { stream: StreamId(from.u32()?), partition: Partition(from.u32()?) };
        let mut found = ShardContents { last: EventId(from.u64()?), ..ShardContents::default() };
        for _ in 0..from.len()? {
            found.places.push((EventId(from.u64()?), from.u32()?));
        }
        let (offset, count, last) = (from.u64()?, from.len()?, EventId(from.u64()?));
        let firsts: std::result::Result<Vec<_>, _> =
            (0..count.div_ceil(BLOCK_ENDS)).map(|_| from.u64().map(EventId)).collect();
        if count > 0 {
            let blocks = Blocks { offset: blocks_at + offset, count, last, firsts: firsts? };
            all_blocks.insert(shard, blocks);
        }
        contents.shards.insert(shard, found);
    }
    from.finish()?;
    Ok((contents, all_blocks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::disk::RealDisk;

    #[test]
    fn contents_read_back_from_their_footer() {
        let folder = tempfile::tempdir().unwrap();
        let footers = Footers::open(Arc::new(RealDisk), folder.path(), 9).unwrap();
        let shard = Shard { stream: StreamId(1), partition: Partition(2) };
        let ends =
            (1..=600).map(|id| EndPlace { id: EventId(id * 3), frame: 5, at: u32::try_from(id).unwrap() });
        let found =
            ShardContents { places: vec![(EventId(1), 4096)], last: EventId(1800), ends: ends.collect() };
        let contents = SegmentContents {
            shards: [(shard, found)].into_iter().collect(),
            times: vec![(Timestamp(7), 4096)],
            keep_until: Timestamp(99),
        };
        footers.write(3, &contents).unwrap();
        let footer = footers.get(3).unwrap();
        assert_eq!(footer.summary(), contents.summary());
        assert_eq!(footer.job_end(shard, EventId(1500)).unwrap().map(|end| end.at), Some(500));
        assert_eq!(footer.job_end(shard, EventId(1501)).unwrap(), None);
        let ids: Vec<u64> =
            footer.job_ends(shard, EventId(760), 3).unwrap().iter().map(|end| end.id.0).collect();
        assert_eq!(ids, [762, 765, 768]);
        assert_eq!(footers.serials().unwrap(), [3]);
    }
}
