//! What is sent: keys by shard, payloads, drafts for the store, and records of equal size for the raw log.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::{Draft, JobDraft, Key, Kind, ProcessorId};

use crate::Failure;

/// Partitions of the stream.
pub(crate) const SHARDS: u32 = 16;
/// Tasks that append.
pub(crate) const PRODUCERS: u64 = 16;
/// Bytes of one payload, unless a row says otherwise.
pub(crate) const PAYLOAD_BYTES: usize = 100;
/// Bytes of one job's result.
pub(crate) const RESULT_BYTES: usize = 50;
/// Bytes of a job's event in the store: 100 of payload, its key, job id, times and chain. What is left of the
/// store's bytes per event is the end; the sum is what counts, and that is measured.
pub(crate) const EVENT_BYTES: usize = 156;
/// Payloads each sender has to choose from: not one, so that equal bytes play no part; not many, so that they stay
/// in the cache.
const PAYLOADS: usize = 64;

/// Numbers of keys, by the shard they belong to.
pub(crate) struct Keys {
    by_shard: Vec<Vec<u32>>,
}

impl Keys {
    /// The first so many keys.
    pub(crate) fn new(count: u32) -> Result<Arc<Self>, Failure> {
        let mut by_shard = vec![Vec::new(); SHARDS as usize];
        for number in 0..count {
            by_shard[key(number)?.partition(SHARDS).0 as usize].push(number);
        }
        if by_shard.iter().any(Vec::is_empty) {
            return Err(format!("{count} keys are too few: every one of {SHARDS} shards needs one").into());
        }
        Ok(Arc::new(Self { by_shard }))
    }

    pub(crate) fn of_shard(&self, shard: u32) -> &[u32] {
        &self.by_shard[shard as usize]
    }
}

/// The key with this number: twelve bytes.
pub(crate) fn key(number: u32) -> Result<Key, Failure> {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut text = *b"key-00000000";
    for (at, byte) in text[4..].iter_mut().enumerate() {
        *byte = HEX[(number >> (28 - 4 * at)) as usize & 0xf];
    }
    Ok(Key::copied(&text)?)
}

/// Random bytes that share one allocation per sender.
pub(crate) fn payloads(rng: &mut fastrand::Rng, bytes: usize) -> Vec<Bytes> {
    let mut all = vec![0; bytes * PAYLOADS];
    rng.fill(&mut all);
    let all = Bytes::from(all);
    (0..PAYLOADS).map(|at| all.slice(at * bytes..(at + 1) * bytes)).collect()
}

/// One sender's choice of shards, keys and payloads. Seeded, so that every round sends the same.
pub(crate) struct Sender {
    keys: Arc<Keys>,
    rng: fastrand::Rng,
    payloads: Vec<Bytes>,
}

impl Sender {
    pub(crate) fn new(number: u64, keys: &Arc<Keys>, payload_bytes: usize) -> Self {
        let mut rng = fastrand::Rng::with_seed(number);
        let payloads = payloads(&mut rng, payload_bytes);
        Self { keys: Arc::clone(keys), rng, payloads }
    }

    pub(crate) fn shard(&mut self) -> u32 {
        self.rng.u32(..SHARDS)
    }

    /// Drafts for one shard.
    pub(crate) fn drafts(
        &mut self,
        shard: u32,
        count: usize,
        job: Option<JobDraft>,
    ) -> Result<Vec<Draft>, Failure> {
        let keys = Arc::clone(&self.keys);
        let keys = keys.of_shard(shard);
        let one = |_| {
            let number = keys[self.rng.usize(..keys.len())];
            self.draft(number, job)
        };
        (0..count).map(one).collect()
    }

    /// A draft with the key of this number.
    pub(crate) fn draft(&mut self, number: u32, job: Option<JobDraft>) -> Result<Draft, Failure> {
        let data = self.payloads[self.rng.usize(..self.payloads.len())].clone();
        Ok(Draft { job, ..Draft::new(Some(key(number)?), Kind::default(), data) })
    }

    /// As many bytes for the raw log as the store writes for so many events.
    pub(crate) fn records(&mut self, shard: u32, count: usize, record_bytes: usize) -> Vec<u8> {
        let keys = self.keys.of_shard(shard);
        let mut records = Vec::with_capacity(count * record_bytes);
        for _ in 0..count {
            let end = records.len() + record_bytes;
            records.extend_from_slice(&keys[self.rng.usize(..keys.len())].to_le_bytes());
            let payload = &self.payloads[self.rng.usize(..self.payloads.len())];
            records.extend_from_slice(&payload[..payload.len().min(end - records.len())]);
            records.resize(end, 0);
        }
        records
    }
}

/// What makes a draft a job that this processor answers.
pub(crate) fn job(responder: ProcessorId, keep: Duration) -> JobDraft {
    JobDraft { responder, keep }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_distinct_and_belong_to_their_shard() {
        assert_eq!(key(0x1234_abcd).unwrap().as_ref(), b"key-1234abcd");
        let keys = Keys::new(10_000).unwrap();
        let all: usize = (0..SHARDS).map(|shard| keys.of_shard(shard).len()).sum();
        assert_eq!(all, 10_000);
        let number = keys.of_shard(7)[3];
        assert_eq!(key(number).unwrap().partition(SHARDS).0, 7);
        assert!(Keys::new(3).is_err());
    }

    #[test]
    fn records_have_exactly_the_size_asked_for() {
        let keys = Keys::new(10_000).unwrap();
        let mut sender = Sender::new(1, &keys, PAYLOAD_BYTES);
        assert_eq!(sender.records(0, 10, 131).len(), 1310);
        assert_eq!(sender.records(0, 3, 50).len(), 150);
        assert_eq!(sender.drafts(5, 4, None).unwrap().len(), 4);
    }
}
