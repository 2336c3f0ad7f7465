//! The bytes of one simulated file: as programs see them, and as a power cut would leave them.

use std::collections::BTreeSet;
use std::ops::Range;

pub(super) const SECTOR_BYTES: usize = 512;

#[derive(Debug, Clone, Default)]
pub(super) struct Media {
    /// What reads answer.
    current: Vec<u8>,
    /// What a power cut leaves.
    durable: Vec<u8>,
    /// Sectors written and not yet synced.
    dirty: BTreeSet<usize>,
    /// Sectors of a failed sync: no later sync writes them, though some may have reached the disk.
    dropped: BTreeSet<usize>,
    /// Sectors that take space on the disk.
    allocated: BTreeSet<usize>,
}

impl Media {
    pub(super) fn len(&self) -> usize {
        self.current.len()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.current
    }

    /// Space taken on the disk; holes take none.
    pub(super) fn used(&self) -> usize {
        self.allocated.len() * SECTOR_BYTES
    }

    /// Space a write here would take in addition.
    pub(super) fn growth(&self, offset: usize, len: usize) -> usize {
        sectors(offset, len).filter(|sector| !self.allocated.contains(sector)).count() * SECTOR_BYTES
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: usize) {
        let end = offset + bytes.len();
        if end > self.current.len() {
            self.extend(end);
        }
        self.current[offset..end].copy_from_slice(bytes);
        for sector in sectors(offset, bytes.len()) {
            self.dirty.insert(sector);
            self.dropped.remove(&sector);
            self.allocated.insert(sector);
        }
    }

    pub(super) fn set_len(&mut self, len: usize) {
        if len > self.current.len() {
            return self.extend(len);
        }
        self.current.truncate(len);
        let kept = sectors(0, len).end;
        for set in [&mut self.dirty, &mut self.dropped, &mut self.allocated] {
            set.retain(|sector| *sector < kept);
        }
    }

    /// What is added reads as zeros, also where the disk still has older bytes.
    fn extend(&mut self, len: usize) {
        let old = self.current.len();
        self.current.resize(len, 0);
        let stale = self.durable.len().min(len);
        if old < stale {
            self.dirty.extend(sectors(old, stale - old));
        }
    }

    pub(super) fn sync(&mut self) {
        self.durable.resize(self.current.len(), 0);
        for sector in std::mem::take(&mut self.dirty) {
            self.keep(sector);
        }
    }

    pub(super) fn fail_sync(&mut self) {
        self.dropped.append(&mut self.dirty);
    }

    /// Changes what is stored, behind the back of every program.
    pub(super) fn replace(&mut self, bytes: Vec<u8>) {
        self.dirty.clear();
        self.dropped.clear();
        self.allocated = sectors(0, bytes.len()).collect();
        self.durable.clone_from(&bytes);
        self.current = bytes;
    }

    /// Keeps what was synced and a random part of what was not.
    pub(super) fn power_cut(&mut self, rng: &mut fastrand::Rng) {
        let odds = [0, 50, 90, 100][rng.usize(0..4)];
        let loose: Vec<usize> = self.dirty.union(&self.dropped).copied().collect();
        let survivors: Vec<usize> = loose.into_iter().filter(|_| rng.usize(0..100) < odds).collect();
        let reach = survivors.last().map_or(0, |last| ((last + 1) * SECTOR_BYTES).min(self.current.len()));
        if self.durable.len() > self.current.len() {
            if rng.bool() {
                self.durable.truncate(self.current.len());
            }
        } else if rng.bool() {
            // The length may be stored before the data is.
            self.durable.resize(self.current.len(), 0);
        }
        if self.durable.len() < reach {
            self.durable.resize(reach, 0);
        }
        for sector in survivors {
            self.keep(sector);
        }
        self.current.clone_from(&self.durable);
        self.dirty.clear();
        self.dropped.clear();
        let kept = sectors(0, self.current.len()).end;
        self.allocated.retain(|sector| *sector < kept);
    }

    fn keep(&mut self, sector: usize) {
        let range = sector * SECTOR_BYTES..((sector + 1) * SECTOR_BYTES).min(self.current.len());
        if !range.is_empty() {
            self.durable[range.clone()].copy_from_slice(&self.current[range]);
        }
    }
}

fn sectors(offset: usize, len: usize) -> Range<usize> {
    if len == 0 {
        let at = offset / SECTOR_BYTES;
        return at..at;
    }
    offset / SECTOR_BYTES..(offset + len).div_ceil(SECTOR_BYTES)
}
