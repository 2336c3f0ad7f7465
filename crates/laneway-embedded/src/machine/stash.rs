//! Stash: one chunk of a large result, invisible until a commit names it.

use laneway_core::limits::{CHUNK_BYTES_MAX, CHUNK_KEEP, RESULT_BYTES_MAX};
use laneway_core::store::Stash;
use laneway_core::{Refusal, Result};

use super::codec::{Chunk, Stored, keys};
use super::{Now, State, Table, gate};

/// Keeps a chunk, and not for long.
pub(crate) fn stash<S: State>(state: &mut S, now: Now, stash: &Stash) -> Result<()> {
    let info = gate::shard(state, stash.shard)?;
    if stash.bytes.is_empty() || stash.bytes.len() > CHUNK_BYTES_MAX {
        let limit = format!("1 to {CHUNK_BYTES_MAX}");
        return Err(Refusal::new("chunk bytes", stash.bytes.len().to_string(), limit).into());
    }
    let index = usize::try_from(stash.index).unwrap_or(usize::MAX);
    Refusal::check_max("chunk index", index, RESULT_BYTES_MAX)?;
    if stash.id.0 == 0 || stash.id > info.head {
        return Err(Refusal::new("id", stash.id.to_string(), format!("1 to {}", info.head)).into());
    }
    let chunk = Chunk { until: now.calendar.after(CHUNK_KEEP), bytes: stash.bytes.clone() };
    let row = keys::chunk(stash.shard, stash.id, stash.nonce, stash.index);
    state.put(Table::Chunk, &row, &chunk.to_row());
    Ok(())
}
