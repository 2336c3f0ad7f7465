//! Rows: every one in the index and in the log after it must be readable as what its table holds.

use bytes::Bytes;
use laneway_core::store::{DeadLetter, Ending};
use laneway_core::{LaneName, LaneRecord, Result, StoreError};

use crate::machine::codec::keys::Single;
use crate::machine::codec::{
    Chunk, Filed, IdleLanes, Numbered, Outgoing, Remembered, ScheduledJob, Seen, Stored, Token, Value,
    Waiting,
};
use crate::machine::kept::{KeptEvent, KeptRange};
use crate::machine::{StoredEnd, Table};

/// Reads a row under its whole key, which begins with its table.
pub(super) fn check(key: &[u8], row: Bytes) -> Result<()> {
    let (table, key) = key.split_first().ok_or_else(|| damaged(key))?;
    let is = |candidate: Table| *table == candidate as u8;
    if is(Table::Store) {
        return match key.first() {
            // Where a trim goes on is a key, not a number.
            Some(single) if *single == Single::TrimCursor as u8 => Ok(()),
            Some(single) if *single == Single::IdleLanes as u8 => read::<IdleLanes>(row),
            Some(single) if *single == Single::Kept as u8 => read::<KeptRange>(row),
            Some(single) if *single == Single::AheadMarks as u8 => read::<IdleLanes>(row),
            _ => read::<Numbered>(row),
        };
    }
    let empty = [
        Table::DedupOrder,
        Table::ScheduleDue,
        Table::LaneDue,
        Table::LaneBlock,
        Table::Siding,
        Table::Expiry,
    ];
    if empty.into_iter().any(is) {
        return if row.is_empty() { Ok(()) } else { Err(damaged(key)) };
    }
    match *table {
        _ if is(Table::Document) || is(Table::Object) || is(Table::LaneState) => read::<Value>(row),
        _ if is(Table::Dedup) => read::<Remembered>(row),
        _ if is(Table::Source) => read::<Seen>(row),
        _ if is(Table::Schedule) => read::<Waiting>(row),
        _ if is(Table::Urgent) => {
            if row.len() == 1 {
                Ok(())
            } else {
                Err(damaged(key))
            }
        }
        _ if is(Table::ScheduledJob) => read::<ScheduledJob>(row),
        _ if is(Table::JobLife) => read::<Numbered>(row),
        _ if is(Table::Chunk) => read::<Chunk>(row),
        _ if is(Table::Lane) => read::<LaneRecord>(row),
        _ if is(Table::SidedId) => read::<LaneName>(row),
        _ if is(Table::Ending) => read::<Ending>(row),
        _ if is(Table::Dead) => read::<DeadLetter>(row),
        _ if is(Table::Outbox) => read::<Outgoing>(row),
        _ if is(Table::Request) => read::<Filed>(row),
        _ if is(Table::RequestToken) => read::<Token>(row),
        _ if is(Table::KeptEvent) => read::<KeptEvent>(row),
        _ if is(Table::KeptEnd) => read::<StoredEnd>(row),
        _ => Err(damaged(key)),
    }
}

fn read<T: Stored>(row: Bytes) -> Result<()> {
    T::from_row(row).map(drop)
}

fn damaged(key: &[u8]) -> StoreError {
    StoreError::Corrupt { what: format!("row {} is not what its table holds", key.escape_ascii()) }
}
