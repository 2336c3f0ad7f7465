//! A1: everything of an accepted commit is there and nothing of another. A2: emits appear once and in order.
//! A3: a job has one end, from its commit, and nobody sees it earlier. S4: an event is in one place at a time.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use laneway_core::store::JobEnd;
use laneway_core::{EventId, Key, Seat, Shard, Timestamp};

use super::history::{CommitRecord, History, Outcome, Violation, report};
use crate::bench::{SeatSnapshot, Snapshot};

fn finals(history: &History, seat: Seat) -> Option<(&Snapshot, &SeatSnapshot)> {
    let snapshot = history.finals.get(&seat.shard)?;
    let found = snapshot.seats.iter().find(|view| view.view.processor == seat.processor)?;
    Some((snapshot, found))
}

pub(super) fn check_commits(history: &History, violations: &mut Vec<Violation>) {
    for seat in history.seats() {
        let accepted = history.accepted(seat);
        let Some((snapshot, found)) = finals(history, seat) else { continue };
        check_states(seat, &accepted, found, violations);
        check_places(seat, &accepted, snapshot, found, violations);
        check_endings(seat, &accepted, snapshot, found, violations);
    }
}

fn check_states(
    seat: Seat,
    accepted: &[&CommitRecord],
    found: &SeatSnapshot,
    violations: &mut Vec<Violation>,
) {
    let mut expected: BTreeMap<&Key, (u64, Option<&Bytes>)> = BTreeMap::new();
    for write in accepted.iter().flat_map(|record| &record.commit.states) {
        let (version, value) = expected.entry(&write.key).or_default();
        *version += 1;
        *value = write.value.as_ref();
    }
    let stored: BTreeMap<&Key, (u64, Option<&Bytes>)> =
        found.states.iter().map(|(key, state)| (key, (state.version, Some(&state.bytes)))).collect();
    for key in expected.keys().chain(stored.keys()).collect::<BTreeSet<_>>() {
        if expected.get(key) != stored.get(key) {
            let detail = format!(
                "seat {seat}: state of {key} is {:?}, accepted commits make {:?}",
                stored.get(key),
                expected.get(key)
            );
            report(violations, "A1", detail);
        }
    }
}

/// S4: an id is pending, sided or settled, and settled once.
fn check_places(
    seat: Seat,
    accepted: &[&CommitRecord],
    snapshot: &Snapshot,
    found: &SeatSnapshot,
    violations: &mut Vec<Violation>,
) {
    let mut settled = BTreeSet::new();
    for id in accepted.iter().flat_map(|record| &record.settled).map(|settled| settled.id) {
        if !settled.insert(id) {
            report(violations, "S4", format!("seat {seat}: event {id} was settled twice"));
        }
    }
    let sided: BTreeSet<EventId> = found.lanes.iter().flat_map(|lane| lane.siding.iter().copied()).collect();
    let above: BTreeSet<EventId> = found.above.iter().copied().collect();
    for id in (1..=snapshot.info.head.0).map(EventId) {
        let passed = id <= found.floor || above.contains(&id);
        let places = [!passed, sided.contains(&id), settled.contains(&id)];
        if places.iter().filter(|place| **place).count() != 1 {
            let detail = format!("seat {seat}: event {id} is pending, sided, settled: {places:?}");
            report(violations, "S4", detail);
        }
    }
}

fn check_endings(
    seat: Seat,
    accepted: &[&CommitRecord],
    snapshot: &Snapshot,
    found: &SeatSnapshot,
    violations: &mut Vec<Violation>,
) {
    let written = accepted.iter().flat_map(|record| &record.commit.endings);
    let mut expected: Vec<_> = written.filter(|ending| ending.id > snapshot.info.trimmed).collect();
    expected.sort_by_key(|ending| ending.id);
    if !expected.iter().copied().eq(found.endings.iter()) {
        report(
            violations,
            "A1",
            format!("seat {seat}: endings are {:?}, expected {expected:?}", found.endings),
        );
    }
}

pub(super) fn check_emits(history: &History, violations: &mut Vec<Violation>) {
    check_refused_emits(history, violations);
    for seat in history.seats() {
        let emits: Vec<_> =
            history.accepted(seat).into_iter().flat_map(|record| record.commit.emits.clone()).collect();
        let Some((_, found)) = finals(history, seat) else { continue };
        let progress = &found.view.progress;
        if progress.emitted != emits.len() as u64 {
            let detail =
                format!("seat {seat}: {} emits are numbered, {} committed", progress.emitted, emits.len());
            report(violations, "A1", detail);
        }
        let forwarded = usize::try_from(progress.forwarded).unwrap_or(usize::MAX).min(emits.len());
        let waiting: Vec<_> = found.outbox.iter().map(|row| row.emit.clone()).collect();
        if waiting != emits[forwarded..] {
            report(
                violations,
                "A1",
                format!("seat {seat}: the outbox is not what was committed: {waiting:?}"),
            );
        }
        let order: BTreeMap<&Bytes, usize> =
            emits.iter().enumerate().map(|(at, emit)| (&emit.draft.data, at)).collect();
        let arrived: Vec<usize> =
            history.events.values().filter_map(|event| order.get(&event.data).copied()).collect();
        if arrived.len() < forwarded || !arrived.iter().copied().eq(0..arrived.len()) {
            let detail = format!("seat {seat}: emits arrived as {arrived:?}, {forwarded} were forwarded");
            report(violations, "A2", detail);
        }
    }
}

fn without_time(end: &JobEnd) -> JobEnd {
    JobEnd { finished_at: Timestamp(0), ..end.clone() }
}

pub(super) fn check_results(history: &History, violations: &mut Vec<Violation>) {
    // The first accepted end of each job, and when its commit was sent.
    let mut written: BTreeMap<(Shard, EventId), (u64, &JobEnd)> = BTreeMap::new();
    for seat in history.seats() {
        for record in history.accepted(seat) {
            for end in &record.commit.jobs {
                written.entry((seat.shard, end.id)).or_insert((record.began, end));
            }
        }
    }
    let mut seen: BTreeMap<(Shard, EventId), &JobEnd> = BTreeMap::new();
    for read in &history.ends {
        let name = (read.shard, read.end.id);
        let first = *seen.entry(name).or_insert(&read.end);
        if *first != read.end {
            report(violations, "A3", format!("job {name:?} was read as {first:?} and as {:?}", read.end));
        }
        match written.get(&name) {
            Some((began, end)) if without_time(end) == without_time(&read.end) => {
                if read.ended < *began {
                    report(
                        violations,
                        "A3",
                        format!("job {name:?} was seen ended before its commit was sent"),
                    );
                }
            }
            other => report(
                violations,
                "A3",
                format!("job {name:?} was read as {:?}, written {other:?}", read.end),
            ),
        }
    }
    let lost = |shard: &Shard, id: &EventId| {
        let snapshot = history.finals.get(shard);
        snapshot.is_some_and(|snapshot| !snapshot.ended.iter().any(|end| end.id == *id))
    };
    for ((shard, id), _) in written.iter().filter(|((shard, id), _)| lost(shard, id)) {
        report(violations, "A1", format!("the end of job {shard}/{id} was committed and is not there"));
    }
    check_refused_ends(history, &written, violations);
}

/// An end that only refused commits carried must not be there.
fn check_refused_ends(
    history: &History,
    written: &BTreeMap<(Shard, EventId), (u64, &JobEnd)>,
    violations: &mut Vec<Violation>,
) {
    for (shard, snapshot) in &history.finals {
        for end in snapshot.ended.iter().filter(|end| !written.contains_key(&(*shard, end.id))) {
            let refused = history.commits.iter().filter(|record| record.outcome == Outcome::Refused).count();
            let detail = format!("job {shard}/{} ended without a commit ({refused} were refused)", end.id);
            report(violations, "A1", detail);
        }
    }
}

/// An emit that only refused commits carried must not have arrived.
fn check_refused_emits(history: &History, violations: &mut Vec<Violation>) {
    let accepted: BTreeSet<Bytes> = history
        .seats()
        .into_iter()
        .flat_map(|seat| history.accepted(seat))
        .flat_map(|record| record.commit.emits.iter().map(|emit| emit.draft.data.clone()))
        .collect();
    let all = history.commits.iter().flat_map(|record| &record.commit.emits).map(|emit| &emit.draft.data);
    let refused: BTreeSet<&Bytes> = all.filter(|data| !accepted.contains(*data)).collect();
    for ((shard, id), event) in history.events.iter().filter(|(_, event)| refused.contains(&event.data)) {
        report(
            violations,
            "A2",
            format!("event {shard}/{id} is an emit of a refused commit: {:?}", event.data),
        );
    }
}
