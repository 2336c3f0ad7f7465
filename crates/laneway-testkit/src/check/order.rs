//! O1: lanes settle in order, without gap and repeat. O2: one owner per term, terms never go back.
//! S3: of all commits against one version at most one is accepted, and every version was somebody's commit.

use std::collections::BTreeMap;

use laneway_core::{Key, Nonce, Seat, Seq, Term};

use super::history::{History, Outcome, Violation, report};

pub(super) fn check(history: &History, violations: &mut Vec<Violation>) {
    for seat in history.seats() {
        check_lanes(history, seat, violations);
        check_terms(history, seat, violations);
        check_versions(history, seat, violations);
    }
}

fn check_lanes(history: &History, seat: Seat, violations: &mut Vec<Violation>) {
    let mut last: BTreeMap<Key, Seq> = BTreeMap::new();
    for record in history.accepted(seat) {
        for settled in &record.settled {
            let Some((key, seq)) = &settled.place else { continue };
            let expected = last.get(key).map_or(1, |last| last.0 + 1);
            if seq.0 != expected {
                let version = record.commit.fence.version;
                let detail =
                    format!("seat {seat}, version {version}: lane {key} settled {seq} instead of {expected}");
                report(violations, "O1", detail);
            }
            last.insert(key.clone(), *seq);
        }
    }
}

fn check_terms(history: &History, seat: Seat, violations: &mut Vec<Violation>) {
    let mut nonces: BTreeMap<Term, Nonce> = BTreeMap::new();
    let granted = history.grants.iter().filter(|grant| grant.seat == seat).map(|grant| grant.fence);
    let committed = history.accepted(seat).into_iter().map(|record| record.commit.fence);
    for fence in granted.chain(committed.clone()) {
        let known = *nonces.entry(fence.term).or_insert(fence.nonce);
        if known != fence.nonce {
            report(violations, "O2", format!("seat {seat}: term {} has two nonces", fence.term));
        }
    }
    let terms: Vec<Term> = committed.map(|fence| fence.term).collect();
    for pair in terms.windows(2).filter(|pair| pair[1] < pair[0]) {
        report(
            violations,
            "O2",
            format!("seat {seat}: a commit of term {} after one of {}", pair[1], pair[0]),
        );
    }
}

fn check_versions(history: &History, seat: Seat, violations: &mut Vec<Violation>) {
    let last = history.final_version(seat).unwrap_or(0);
    let of_seat = || history.commits.iter().filter(|record| record.commit.seat == seat);
    for version in 0..last {
        let at = || of_seat().filter(|record| record.commit.fence.version == version);
        let answered = at().filter(|record| matches!(record.outcome, Outcome::Answered(_))).count();
        if answered > 1 {
            report(
                violations,
                "S3",
                format!("seat {seat}: {answered} commits were accepted at version {version}"),
            );
        }
        if at().all(|record| record.outcome == Outcome::Refused) {
            report(violations, "S3", format!("seat {seat}: version {version} was nobody's commit"));
        }
    }
    let beyond = of_seat().filter(|record| record.commit.fence.version >= last);
    for record in beyond.filter(|record| matches!(record.outcome, Outcome::Answered(_))) {
        let version = record.commit.fence.version;
        report(violations, "A1", format!("seat {seat}: the accepted commit at version {version} is lost"));
    }
}
