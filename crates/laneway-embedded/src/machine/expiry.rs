//! Rows that go when their time is over, in the order of that time.
//!
//! Whoever writes such a row also notes when it may go ([`note`]). A trim looks at the notes that are due and at nothing
//! else: rows that stay cost nothing, however many and however large they are. A note may be outdated, because its row
//! has changed or is gone; the row itself decides.

use laneway_core::store::DeadLetter;
use laneway_core::{Bytes, Result, Shard, Timestamp};

use super::codec::{Chunk, Stored, Token, keys};
use super::state::look_at_all;
use super::{State, Table, View};

/// Most notes of a table that one call of trim looks at.
pub(super) const ROWS_PER_CALL: usize = 200;
/// Most rows of a table that one call of trim removes by their number. Nothing but their keys is read.
pub(crate) const NUMBERED_PER_CALL: usize = 1_000;
/// Most bytes of rows that one call of trim reads in a table, unless a single row is larger.
const BYTES_PER_CALL: usize = 256 << 10;

/// The tables whose rows have notes.
pub(crate) const TABLES: [Table; 6] =
    [Table::ScheduledJob, Table::JobLife, Table::Chunk, Table::Dead, Table::RequestToken, Table::KeptEnd];

/// Notes when a row may go. Its key begins with the shard.
pub(super) fn note<S: State>(state: &mut S, table: Table, row: &[u8], time: Timestamp) {
    state.put(Table::Expiry, &keys::expiry(table, row, time), &[]);
}

/// What becomes of a row whose note is due.
pub(super) enum Fate {
    /// It goes.
    Over,
    /// It stays until then at least.
    StaysUntil(Timestamp),
}

/// What a trim does about the notes of a table.
#[derive(Default)]
pub(super) struct Sweep {
    /// Notes, and their rows if these go with them.
    gone: Vec<(Bytes, Option<Vec<u8>>)>,
    /// Notes that are written again for a later time.
    later: Vec<(Bytes, Vec<u8>, Timestamp)>,
    /// Whether more notes may be due.
    pub(super) more: bool,
}

/// Looks at the rows of a table that were to go before this time.
pub(super) fn look<S: View>(
    state: &S,
    shard: Shard,
    table: Table,
    before: Timestamp,
    fate: impl Fn(&[u8], Bytes) -> Result<Fate>,
) -> Result<Sweep> {
    let mut sweep = Sweep::default();
    let notes = state.scan(Table::Expiry, &keys::expiry_table(shard, table), None, ROWS_PER_CALL)?;
    sweep.more = notes.len() == ROWS_PER_CALL;
    let (mut due, mut bytes) = (Vec::new(), 0);
    for (note, _) in notes {
        let (time, row) = keys::expiry_of(&note)?;
        if time >= before {
            sweep.more = false;
            break;
        }
        if bytes > BYTES_PER_CALL {
            sweep.more = true;
            break;
        }
        match state.get(table, &row)? {
            None => sweep.gone.push((note, None)),
            Some(value) => {
                bytes += value.len();
                due.push((note, row, value));
            }
        }
    }
    // A fate may take a file to tell, so all of them are asked for.
    let fates = look_at_all(due, |(note, row, value)| Ok((fate(&row, value)?, note, row)))?;
    for (fate, note, row) in fates {
        match fate {
            Fate::Over => sweep.gone.push((note, Some(row))),
            Fate::StaysUntil(time) => sweep.later.push((note, row, time)),
        }
    }
    Ok(sweep)
}

impl Sweep {
    /// Removes what goes. Answers how many rows went.
    pub(super) fn apply<S: State>(self, state: &mut S, table: Table) -> u64 {
        let mut gone = 0;
        for (note, row) in self.gone {
            state.delete(Table::Expiry, &note);
            if let Some(row) = row {
                state.delete(table, &row);
                gone += 1;
            }
        }
        for (old, row, time) in self.later {
            state.delete(Table::Expiry, &old);
            note(state, table, &row, time);
        }
        gone
    }
}

/// When a row written by a version before may go, or at least be looked at.
pub(crate) fn time_of(table: Table, row: Bytes) -> Result<Option<Timestamp>> {
    Ok(match table {
        Table::Dead => Some(DeadLetter::from_row(row)?.at),
        Table::RequestToken => Token::from_row(row)?.until,
        Table::Chunk => Some(Chunk::from_row(row)?.until),
        _ => Some(Timestamp(0)),
    })
}

/// The keys of rows that go in the order of the number at their end, up to this one.
pub(super) fn numbered<S: View>(state: &S, table: Table, prefix: &[u8], through: u64) -> Result<Vec<Bytes>> {
    let mut gone = Vec::new();
    for key in state.first_keys(table, prefix, NUMBERED_PER_CALL)? {
        if keys::last_number(&key)? > through {
            break;
        }
        gone.push(key);
    }
    Ok(gone)
}
