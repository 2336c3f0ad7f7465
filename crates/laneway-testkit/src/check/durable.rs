//! D1: what was acknowledged is there. D2: nothing else is. D3: an unanswered call may have happened or not, so it
//! is asked of neither. D4: one event per name, whatever was repeated.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use laneway_core::store::Receipt;
use laneway_core::{Draft, EventId, Shard};

use super::history::{History, Outcome, Violation, report};

pub(super) fn check(history: &History, violations: &mut Vec<Violation>) {
    check_acknowledged(history, violations);
    check_invented(history, violations);
    check_once(history, violations);
    for (shard, id) in &history.changed {
        report(violations, "D1", format!("event {shard}/{id} was read twice and differed"));
    }
}

/// The event that a receipt names, if any.
fn named(receipt: &Receipt) -> Option<&Receipt> {
    match receipt {
        Receipt::New { .. } => Some(receipt),
        Receipt::Duplicate { first: Some(first) } => named(first),
        _ => None,
    }
}

fn check_acknowledged(history: &History, violations: &mut Vec<Violation>) {
    for record in &history.appends {
        let Outcome::Answered(receipts) = &record.outcome else { continue };
        if receipts.len() != record.drafts.len() {
            let detail = format!("{} receipts for {} drafts", receipts.len(), record.drafts.len());
            report(violations, "D1", detail);
        }
        for (draft, receipt) in record.drafts.iter().zip(receipts) {
            if let Some(Receipt::New { id, prev, seq, .. }) = named(receipt) {
                let found = history.events.get(&(record.shard, *id));
                let right = found.is_some_and(|event| {
                    (&event.data, &event.key, event.prev, event.seq) == (&draft.data, &draft.key, *prev, *seq)
                });
                if !right {
                    let detail = format!(
                        "{}/{id} was acknowledged for {:?}: found {found:?}",
                        record.shard, draft.data
                    );
                    report(violations, "D1", detail);
                }
            }
        }
    }
    for (shard, snapshot) in &history.finals {
        let missing =
            (1..=snapshot.info.head.0).map(EventId).find(|id| !history.events.contains_key(&(*shard, *id)));
        if let Some(id) = missing {
            report(violations, "D1", format!("event {shard}/{id} was gone before anybody could read it"));
        }
    }
}

fn check_invented(history: &History, violations: &mut Vec<Violation>) {
    let mut possible: BTreeSet<(Shard, &Bytes)> = BTreeSet::new();
    for record in history.appends.iter().filter(|record| record.outcome != Outcome::Refused) {
        possible.extend(record.drafts.iter().map(|draft| (record.shard, &draft.data)));
    }
    for ((shard, id), event) in &history.events {
        if !possible.contains(&(*shard, &event.data)) {
            report(violations, "D2", format!("nobody appended event {shard}/{id}: {:?}", event.data));
        }
    }
}

fn check_once(history: &History, violations: &mut Vec<Violation>) {
    let mut ids: BTreeMap<(Shard, &Bytes), EventId> = BTreeMap::new();
    for ((shard, id), event) in &history.events {
        if let Some(first) = ids.insert((*shard, &event.data), *id) {
            report(
                violations,
                "D4",
                format!("{:?} was appended as {first} and as {id} in {shard}", event.data),
            );
        }
    }
    let mut answers: BTreeMap<(Shard, String), &Receipt> = BTreeMap::new();
    for record in &history.appends {
        let Outcome::Answered(receipts) = &record.outcome else { continue };
        for (draft, receipt) in record.drafts.iter().zip(receipts) {
            let (Some(name), Some(receipt)) = (dedup_name(draft), named(receipt)) else { continue };
            let first = *answers.entry((record.shard, name.clone())).or_insert(receipt);
            if first != receipt {
                report(violations, "D4", format!("{name} was answered {first:?} and {receipt:?}"));
            }
        }
    }
}

fn dedup_name(draft: &Draft) -> Option<String> {
    draft.dedup.as_ref().map(|dedup| format!("{:?}/{:?}", draft.key, dedup.id))
}
