//! Stash: one chunk of a large result, invisible until a commit names it.

use laneway_core::limits::CHUNK_KEEP;
use laneway_core::store::Stash;
use laneway_core::{Refusal, Result};

use super::codec::{Chunk, Stored, keys};
use super::{Now, State, Table, expiry, gate};

/// Keeps a chunk, and not for long.
pub(crate) fn stash<S: State>(state: &mut S, now: Now, stash: &Stash) -> Result<()> {
    let info = gate::shard(state, stash.shard)?;
    stash.check()?;
    if stash.id.0 == 0 || stash.id > info.head {
        return Err(Refusal::new("id", stash.id.to_string(), format!("1 to {}", info.head)).into());
    }
    let chunk = Chunk { until: now.wall.after(CHUNK_KEEP), bytes: stash.bytes.clone() };
    let row = keys::chunk(stash.shard, stash.id, stash.nonce, stash.index);
    state.put(Table::Chunk, &row, &chunk.to_row());
    expiry::note(state, Table::Chunk, &row, chunk.until);
    Ok(())
}
