//! Sweeping a table for rows whose time is over, a bounded piece at a time.
//!
//! Rows that do not lie in the order of their end cannot be cut at the first that stays. The sweep goes on
//! where the last one stopped and begins anew at the end, so every row is looked at again and again.

use laneway_core::{Bytes, Result, Shard};

use super::codec::keys::Single;
use super::{State, Table};

/// Most rows that one call of trim looks at in each table.
pub(super) const ROWS_PER_CALL: usize = 200;

/// Looks at the next rows of a table under a prefix of this shard, removes those that are over, and answers how
/// many went.
pub(super) fn sweep<S: State>(
    state: &mut S,
    shard: Shard,
    table: Table,
    prefix: &[u8],
    is_over: impl Fn(&S, &[u8], Bytes) -> Result<bool>,
) -> Result<Vec<Bytes>> {
    let cursor = cursor(shard, table, prefix);
    let after = state.get(Table::Store, &cursor)?;
    let rows = state.scan(table, prefix, after.as_deref(), ROWS_PER_CALL)?;
    let last = rows.last().filter(|_| rows.len() == ROWS_PER_CALL).map(|(key, _)| key.clone());
    let mut over = Vec::new();
    for (key, row) in rows {
        if is_over(state, &key, row)? {
            over.push(key);
        }
    }
    for key in &over {
        state.delete(table, key);
    }
    match (last, after) {
        (Some(last), _) => state.put(Table::Store, &cursor, &last),
        (None, Some(_)) => state.delete(Table::Store, &cursor),
        (None, None) => {}
    }
    Ok(over)
}

/// Where the sweep of this table under this prefix goes on. The prefix begins with the shard.
fn cursor(shard: Shard, table: Table, prefix: &[u8]) -> Vec<u8> {
    [&Single::TrimCursor.of(shard)[..], &[table as u8], &prefix[8..]].concat()
}

/// Forgets where a sweep stopped, because nothing is left to sweep.
pub(super) fn forget<S: State>(state: &mut S, shard: Shard, table: Table, prefix: &[u8]) {
    state.delete(Table::Store, &cursor(shard, table, prefix));
}

/// Removes the rows under a prefix whose number, at the end of their key, is not above this one. Answers how many went.
pub(super) fn cut<S: State>(state: &mut S, table: Table, prefix: &[u8], through: u64) -> Result<u64> {
    let rows = state.scan(table, prefix, None, ROWS_PER_CALL)?;
    let mut gone = 0;
    for (key, _) in rows {
        if super::codec::keys::last_number(&key)? > through {
            break;
        }
        state.delete(table, &key);
        gone += 1;
    }
    Ok(gone)
}
