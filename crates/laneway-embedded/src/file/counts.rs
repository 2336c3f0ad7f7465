//! Counting rows: page by page, so that nobody waits for a long count. The parts of an answer may be of slightly
//! different moments.

use hashbrown::HashMap;
use laneway_core::store::Counts;
use laneway_core::{Result, Shard};

use super::state::Seen;
use super::store::Shared;
use crate::machine::{Table, query};

/// How many rows one look counts.
const ROWS_AT_ONCE: usize = 4_096;

/// Counts of one shard.
pub(super) async fn counts(shared: &Shared, shard: Shard) -> Result<Counts> {
    let wanted = shared.observe(|state, _| Ok(query::counted(state, shard))).await?;
    let mut counted = HashMap::new();
    for (table, prefix) in wanted {
        let count = count(shared, table, &prefix).await?;
        counted.insert((table, prefix), count);
    }
    // A processor that came meanwhile has nothing yet.
    let of = |table: Table, prefix: &[u8]| Ok(counted.get(&(table, prefix.to_vec())).copied().unwrap_or(0));
    shared.observe(|state, _| query::counts(state, shard, of)).await
}

async fn count(shared: &Shared, table: Table, prefix: &[u8]) -> Result<u64> {
    let (mut total, mut after) = (0, None);
    loop {
        let look = |state: &Seen<'_>, _| state.count_page(table, prefix, after.as_deref(), ROWS_AT_ONCE);
        let (count, last) = shared.observe(look).await?;
        total += count;
        match last {
            Some(last) => after = Some(last),
            None => return Ok(total),
        }
    }
}
