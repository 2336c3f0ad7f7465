//! A history as it was seen from outside, and what is wrong with it.
//!
//! The steps of the handlers are read as an outside system reads them that is handed the fence: what comes with a lower
//! one than was seen before in its lane is late, and does not count. A killed server leaves such runs behind.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

/// The name of an event and its place in its lane.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Receipt {
    pub(crate) reference: String,
    pub(crate) key: String,
    pub(crate) seq: u64,
}

/// An event as the server shows it in the end.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) receipt: Receipt,
    pub(crate) id: u64,
    pub(crate) prev: Option<u64>,
    pub(crate) status: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Word {
    Begin,
    End,
}

/// What a handler wrote when it began a run, and before it answered.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Step {
    pub(crate) word: Word,
    #[serde(rename = "ref")]
    pub(crate) reference: String,
    pub(crate) key: String,
    pub(crate) seq: u64,
    pub(crate) attempt: u32,
    pub(crate) fence: String,
    pub(crate) outcome: Option<String>,
    pub(crate) data: Value,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    /// What appends answered.
    pub(crate) acknowledged: Vec<Receipt>,
    /// What is in the stream.
    pub(crate) stored: Vec<Stored>,
    /// What handlers did, in the order in which it happened.
    pub(crate) steps: Vec<Step>,
    /// What was settled, one effect each, in the order of the stream they were emitted to.
    pub(crate) effects: Vec<Receipt>,
}

impl Receipt {
    /// What an append said of an event of this lane.
    pub(crate) fn read(key: &str, told: &Value) -> Self {
        let reference = told["ref"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned();
        Self { reference, key: key.to_owned(), seq: told["seq"].as_u64().unwrap() }
    }
}

impl Stored {
    pub(crate) fn read(event: &Value) -> Self {
        Self {
            receipt: Receipt::read(event["key"].as_str().unwrap(), event),
            id: event["id"].as_u64().unwrap(),
            prev: event["prev"].as_u64(),
            status: event["processors"][0]["status"].as_str().unwrap().to_owned(),
        }
    }
}

impl Step {
    /// Which owner of the partition began the run: each start of a server is another one.
    pub(crate) fn term(&self) -> &str {
        &self.fence[..16]
    }

    fn is_done(&self) -> bool {
        self.outcome.as_deref() == Some("done")
    }
}

/// Things by their lane, in the order they had.
pub(crate) fn by_lane<'a, T>(
    things: &'a [T],
    key: impl Fn(&'a T) -> &'a str,
) -> BTreeMap<&'a str, Vec<&'a T>> {
    let mut lanes: BTreeMap<&str, Vec<&T>> = BTreeMap::new();
    for thing in things {
        lanes.entry(key(thing)).or_default().push(thing);
    }
    lanes
}

impl History {
    /// Everything that is wrong with it.
    pub(crate) fn violations(&self) -> Vec<String> {
        let mut found = self.lost();
        let steps = by_lane(&self.steps, |step| &step.key);
        let effects = by_lane(&self.effects, |effect| &effect.key);
        for (key, stored) in by_lane(&self.stored, |stored| &stored.receipt.key) {
            found.extend(chain(key, &stored));
            found.extend(runs(key, steps.get(key).map_or(&[], Vec::as_slice), stored.len() as u64));
            let settled: Vec<u64> = effects.get(key).into_iter().flatten().map(|effect| effect.seq).collect();
            if settled != (1..=stored.len() as u64).collect::<Vec<_>>() {
                found.push(format!("lane {key}: not settled once each in order: {settled:?}"));
            }
        }
        found
    }

    /// Acknowledged events that are not there as they were acknowledged.
    fn lost(&self) -> Vec<String> {
        let stored: BTreeSet<&Receipt> = self.stored.iter().map(|stored| &stored.receipt).collect();
        let lost = self.acknowledged.iter().filter(|acknowledged| !stored.contains(acknowledged));
        lost.map(|lost| format!("acknowledged and lost: {lost:?}")).collect()
    }
}

/// What is wrong with the ids and numbers of a lane, and with how its events ended.
fn chain(key: &str, stored: &[&Stored]) -> Vec<String> {
    let (mut found, mut before) = (Vec::new(), None);
    for (stored, seq) in stored.iter().zip(1..) {
        if (stored.receipt.seq, stored.prev) != (seq, before) || before >= Some(stored.id) {
            found.push(format!("lane {key}: {stored:?} does not follow {before:?} as number {seq}"));
        }
        if stored.status != "done" {
            found.push(format!("lane {key}: {stored:?} has not ended"));
        }
        before = Some(stored.id);
    }
    found
}

/// What is wrong with the runs of a lane of so many events.
fn runs(key: &str, steps: &[&Step], events: u64) -> Vec<String> {
    let mut found = Vec::new();
    let mut wrong = |what: &str, step: &Step| found.push(format!("lane {key}: {what}: {step:?}"));
    let (mut running, mut done): (Option<&Step>, Option<&Step>) = (None, None);
    let mut newest = "";
    for &step in steps {
        if step.fence.as_str() < newest {
            continue;
        }
        if step.word == Word::End {
            match running.take() {
                Some(begun) if begun.fence == step.fence && begun.seq == step.seq => {}
                _ => wrong("ends what has not begun", step),
            }
            done = if step.is_done() { Some(step) } else { done };
            continue;
        }
        if running.is_some_and(|running| running.term() == step.term()) {
            wrong("two runs at a time", step);
        }
        if step.fence.as_str() == newest {
            wrong("the fence of another run", step);
        }
        let next = done.map_or(1, |done| done.seq + 1);
        // What had ended when the server was killed may not have been settled: then it runs again, before all else.
        let unsettled = done.is_some_and(|done| done.seq == step.seq && done.term() < step.term());
        if step.seq != next && !unsettled {
            wrong(&format!("out of order, number {next} is next"), step);
        }
        (running, newest) = (Some(step), &step.fence);
    }
    if done.map_or(0, |done| done.seq) != events {
        found.push(format!("lane {key}: {done:?} is the last that ran of {events}"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(word: Word, term: u64, seq: u64, attempt: u32, outcome: Option<&str>) -> Step {
        Step {
            word,
            reference: format!("orders/0/{seq}"),
            key: "ann".to_owned(),
            seq,
            attempt,
            fence: format!("{term:016x}.{seq:016x}.{attempt:08x}"),
            outcome: outcome.map(str::to_owned),
            data: Value::Null,
        }
    }

    fn run(term: u64, seq: u64, attempt: u32, outcome: &str) -> [Step; 2] {
        [step(Word::Begin, term, seq, attempt, None), step(Word::End, term, seq, attempt, Some(outcome))]
    }

    /// Four events: the second is tried twice, the third was cut by a kill and ended late, the fourth ended unsettled.
    fn good() -> History {
        let receipt = |seq| Receipt { reference: format!("orders/0/{seq}"), key: "ann".to_owned(), seq };
        let stored = (1..=4).map(|seq| Stored {
            receipt: receipt(seq),
            id: seq,
            prev: (seq > 1).then(|| seq - 1),
            status: "done".to_owned(),
        });
        let mut steps = [run(1, 1, 1, "done"), run(1, 2, 1, "retry"), run(1, 2, 2, "done")].concat();
        steps.push(step(Word::Begin, 1, 3, 1, None));
        steps.push(step(Word::Begin, 2, 3, 1, None));
        steps.push(step(Word::End, 1, 3, 1, Some("done")));
        steps.push(step(Word::End, 2, 3, 1, Some("done")));
        steps.extend(run(2, 4, 1, "done"));
        steps.extend(run(3, 4, 1, "done"));
        History {
            acknowledged: (1..=4).map(receipt).collect(),
            stored: stored.collect(),
            steps,
            effects: (1..=4).map(receipt).collect(),
        }
    }

    #[test]
    fn a_good_history_has_no_violation() {
        assert_eq!(good().violations(), Vec::<String>::new());
    }

    #[test]
    fn every_wrong_history_is_caught() {
        type Spoil = fn(&mut History);
        let spoils: [(&str, Spoil); 13] = [
            ("acknowledged and lost", |history| {
                history.stored.pop();
            }),
            ("does not follow", |history| history.stored.swap(0, 1)),
            ("does not follow", |history| history.stored[3].prev = Some(1)),
            ("does not follow", |history| history.stored[3].receipt.seq = 5),
            ("has not ended", |history| history.stored[2].status = "waiting".to_owned()),
            ("out of order", |history| history.steps.rotate_left(2)),
            ("out of order", |history| history.steps.splice(0..0, run(1, 2, 1, "done")).for_each(drop)),
            ("out of order", |history| history.steps.extend(run(4, 3, 1, "done"))),
            ("two runs at a time", |history| history.steps.swap(1, 2)),
            ("the fence of another run", |history| history.steps.extend(run(3, 4, 1, "done"))),
            ("ends what has not begun", |history| history.steps.remove(0).word = Word::End),
            ("is the last that ran of 4", |history| history.steps.truncate(10)),
            ("not settled once each", |history| history.effects.push(history.effects[0].clone())),
        ];
        for (caught, spoil) in spoils {
            let mut history = good();
            spoil(&mut history);
            let found = history.violations();
            assert!(found.iter().any(|found| found.contains(caught)), "{caught}: {found:?}");
        }
        let mut unsettled = good();
        unsettled.effects.remove(2);
        assert!(unsettled.violations()[0].contains("not settled once each"));
    }
}
