//! Where everything stands at the end: what the index and the log after it say must fit to what the log holds.

use laneway_core::store::JobResult;
use laneway_core::{EventId, Partition, Result, Seat, Shard, Timestamp};

use super::chain::{Chains, next_given};
use super::finding::{Finding, FindingKind, Place};
use super::report::VerifyReport;
use super::rows;
use crate::file::state::FileState;
use crate::machine::codec::{Numbered, keys, load};
use crate::machine::{StoredEnd, Table, View};

const PAGE: usize = 4096;

/// Checks the state as of the end of the log.
pub(super) fn check(state: &FileState, chains: &Chains, report: &mut VerifyReport) -> Result<()> {
    let mut shards = Vec::new();
    for stream in state.streams() {
        for partition in 0..stream.settings.partitions {
            shards.push(Shard { stream: stream.id, partition: Partition(partition) });
        }
    }
    for shard in shards {
        check_shard(state, chains, shard, report);
        check_tails(state, chains, shard, report)?;
    }
    for (shard, key, last) in chains.lanes() {
        if state.shard(shard).is_none() {
            continue;
        }
        let tail = state.tail(shard, key)?;
        if tail.is_none_or(|tail| tail.id != last.id || Some(tail.seq) != last.seq) {
            let end = tail.map_or_else(|| "nowhere".to_owned(), |tail| format!("at event {}", tail.id));
            let what = format!(
                "the lane ends {end} by the index and the log after it, but its last event is {}",
                last.id
            );
            report.add(Finding::new(FindingKind::Mismatch, what).of(shard, Some(key), &[last.id]));
        }
    }
    check_rows(state, report)
}

/// All ids that are neither trimmed nor kept aside are in the log, and nobody has passed more than there is.
fn check_shard(state: &FileState, chains: &Chains, shard: Shard, report: &mut VerifyReport) {
    let Some(info) = state.shard(shard) else {
        let what = "its stream is defined, the shard is not there";
        return report.add(Finding::new(FindingKind::Mismatch, what).of(shard, None, &[]));
    };
    let gap = |ids: &[EventId], what: String| Finding::new(FindingKind::Gap, what).of(shard, None, ids);
    let first = next_given(info, info.trimmed.max(state.kept_of(shard).events));
    let ids = chains.ids(shard);
    match ids {
        None if first <= info.head => {
            report.add(gap(
                &[first, info.head],
                format!("none of the events {first} to {} is in the log", info.head),
            ));
        }
        Some(ids) if ids.first > first => {
            let what = format!("the first event in the log is {}, but {first} is not trimmed", ids.first);
            report.add(gap(&[first, ids.first], what));
        }
        _ => {}
    }
    if let Some(ids) = ids {
        ids.missing(shard, info).into_iter().for_each(|finding| report.add(finding));
        let next = next_given(info, ids.last);
        let what =
            format!("the last event in the log is {}, but the shard's last id is {}", ids.last, info.head);
        if ids.last > info.head {
            report.add(Finding::new(FindingKind::Mismatch, what).of(shard, None, &[info.head, ids.last]));
        } else if next <= info.head && first <= info.head {
            report.add(gap(&[ids.last, info.head], what));
        }
    }
    if info.trimmed > info.head {
        let what = format!("ids up to {} are trimmed, but the last id is {}", info.trimmed, info.head);
        report.add(Finding::new(FindingKind::Mismatch, what).of(shard, None, &[info.head, info.trimmed]));
    }
    for (processor, seat) in state.seats(shard) {
        let floor = seat.window.floor();
        if floor > info.head {
            let seat = Seat { shard, processor };
            let what =
                format!("seat {seat} has passed everything up to {floor}, but the last id is {}", info.head);
            report.add(Finding::new(FindingKind::Mismatch, what).of(shard, None, &[info.head, floor]));
        }
    }
}

/// No lane ends at an event that should be in the log and is not.
fn check_tails(state: &FileState, chains: &Chains, shard: Shard, report: &mut VerifyReport) -> Result<()> {
    let first = chains.ids(shard).map(|ids| ids.first);
    let mut after = None;
    loop {
        let page = state.tails(shard, after.as_ref(), PAGE)?;
        report.tails += page.len() as u64;
        for (key, tail) in &page {
            if !chains.has_lane(shard, key) && first.is_some_and(|first| tail.id >= first) {
                let what = "the lane ends here by the index, but the log has no event of it";
                report.add(Finding::new(FindingKind::Gap, what).of(shard, Some(key), &[tail.id]));
            }
        }
        match page.into_iter().next_back() {
            Some((key, _)) => after = Some(key),
            None => return Ok(()),
        }
    }
}

fn check_rows(state: &FileState, report: &mut VerifyReport) -> Result<()> {
    let mut after = None::<bytes::Bytes>;
    loop {
        let page = state.all_rows(after.as_deref(), PAGE)?;
        report.rows += page.len() as u64;
        let Some((last, _)) = page.last() else { return Ok(()) };
        after = Some(last.clone());
        for (key, row) in page {
            if let Err(error) = rows::check(&key, row) {
                report.add(Finding::new(FindingKind::Damage, error.to_string()));
            }
        }
    }
}

/// Results of ended jobs that can still be read have all their chunks.
pub(super) fn check_results(
    state: &FileState,
    now: Timestamp,
    stashed: Vec<(Shard, StoredEnd, Place)>,
    report: &mut VerifyReport,
) -> Result<()> {
    for (shard, stored, place) in stashed {
        let id = stored.end.id;
        let life = load::<Numbered>(state, Table::JobLife, &keys::shard_number(shard, id.0))?;
        let until = life.map_or(stored.keep_until, |life| Timestamp(life.0).min(stored.keep_until));
        let JobResult::Stashed { nonce, chunks } = stored.end.result else { continue };
        if state.shard(shard).is_none() || until < now {
            continue;
        }
        for index in 0..chunks {
            if state.get(Table::Chunk, &keys::chunk(shard, id, nonce, index))?.is_none() {
                let what = format!("chunk {index} of {chunks} of the job's result is not there");
                report.add(Finding::new(FindingKind::Mismatch, what).at(place.clone()).of(
                    shard,
                    None,
                    &[id],
                ));
            }
        }
    }
    Ok(())
}
