//! Events that are there before the engine is: appended by several tasks, each to shards of its own.

use std::collections::BTreeMap;

use laneway_core::{Draft, JobDraft, Kind};

use crate::store::BenchStore;
use crate::workload::{PAYLOAD_BYTES, SHARDS, key, payloads};
use crate::{Failure, seam};

/// Events per call.
const PER_CALL: usize = 1_000;
const LOADERS: u32 = 4;

/// Appends one event per number of a key, in this order. All of them are jobs if `job` is given.
pub(super) async fn load(
    store: &BenchStore,
    numbers: impl Iterator<Item = u32>,
    job: Option<JobDraft>,
) -> Result<(), Failure> {
    let mut by_shard: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for number in numbers {
        by_shard.entry(key(number)?.partition(SHARDS).0).or_default().push(number);
    }
    let mut parts: Vec<Vec<(u32, Vec<u32>)>> = vec![Vec::new(); LOADERS as usize];
    for (shard, numbers) in by_shard {
        parts[(shard % LOADERS) as usize].push((shard, numbers));
    }
    let loaders: Vec<_> =
        parts.into_iter().map(|part| seam::spawn(load_part(store.clone(), part, job))).collect();
    for loader in loaders {
        loader.await??;
    }
    Ok(())
}

async fn load_part(
    store: BenchStore,
    part: Vec<(u32, Vec<u32>)>,
    job: Option<JobDraft>,
) -> Result<(), Failure> {
    let payload = payloads(&mut fastrand::Rng::with_seed(7), PAYLOAD_BYTES).remove(0);
    for (shard, numbers) in part {
        for numbers in numbers.chunks(PER_CALL) {
            let draft = |number: &u32| {
                let draft = Draft::new(Some(key(*number)?), Kind::default(), payload.clone());
                Ok::<_, Failure>(Draft { job, ..draft })
            };
            let drafts = numbers.iter().map(draft).collect::<Result<Vec<_>, _>>()?;
            store.append_to(shard, drafts).await?;
        }
    }
    Ok(())
}
