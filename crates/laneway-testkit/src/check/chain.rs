//! The chain: in every lane seq counts 1, 2, 3 and prev names the event before.

use std::collections::BTreeMap;

use laneway_core::{Event, Key, Shard};

use super::history::{History, Violation, report};

pub(super) fn check(history: &History, violations: &mut Vec<Violation>) {
    let mut last: BTreeMap<(Shard, &Key), &Event> = BTreeMap::new();
    for ((shard, id), event) in &history.events {
        let Some(key) = &event.key else {
            if event.prev.is_some() || event.seq.is_some() {
                report(violations, "chain", format!("keyless event {shard}/{id} has a place in a chain"));
            }
            continue;
        };
        let before = last.insert((*shard, key), event);
        let expected =
            (before.map(|event| event.id), before.and_then(|event| event.seq).map_or(1, |seq| seq.0 + 1));
        if (event.prev, event.seq.map_or(0, |seq| seq.0)) != expected {
            let detail = format!(
                "event {shard}/{id} of lane {key} has {:?} and {:?}, expected {expected:?}",
                event.prev, event.seq
            );
            report(violations, "chain", detail);
        }
    }
    for (shard, snapshot) in &history.finals {
        for tail in &snapshot.tails {
            let found = last.get(&(*shard, &tail.key)).map(|event| (event.id, event.seq));
            if found != Some((tail.tail.id, Some(tail.tail.seq))) {
                report(
                    violations,
                    "chain",
                    format!("the tail of {shard}, lane {} is not its last event", tail.key),
                );
            }
        }
    }
}
