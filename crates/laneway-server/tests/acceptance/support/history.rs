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

/// What a settlement emitted.
#[derive(Debug, Clone)]
pub(crate) struct Effect {
    pub(crate) receipt: Receipt,
    /// Of the run that was settled.
    pub(crate) fence: String,
    /// When it arrived, in microseconds by the clock of the store.
    pub(crate) at: u64,
}

/// A moment at which the store came back without the last that it had acknowledged.
#[derive(Debug, Clone)]
pub(crate) struct Loss {
    /// In microseconds by the clock of the store, as terms are.
    pub(crate) at: u64,
    /// Up to which number each lane was settled in what certainly survived.
    pub(crate) settled: BTreeMap<String, u64>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    /// What appends answered, without what the store may have lost since.
    pub(crate) acknowledged: Vec<Receipt>,
    /// What is in the stream.
    pub(crate) stored: Vec<Stored>,
    /// What handlers did, in the order in which it happened.
    pub(crate) steps: Vec<Step>,
    /// What was settled, one effect each, in the order of the stream they were emitted to.
    pub(crate) effects: Vec<Effect>,
    /// In the order in which they happened.
    pub(crate) losses: Vec<Loss>,
}

/// Something that is wrong.
#[derive(Debug)]
pub(crate) struct Violation {
    what: String,
    /// The event where it shows; nothing where it is one of no single event.
    pub(crate) reference: Option<String>,
}

impl Violation {
    pub(crate) fn of(receipt: &Receipt, what: String) -> Self {
        Self { what, reference: Some(receipt.reference.clone()) }
    }
}

impl Receipt {
    /// What an append said of an event of this lane.
    pub(crate) fn read(key: &str, told: &Value) -> Self {
        let reference = told["ref"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned();
        Self { reference, key: key.to_owned(), seq: told["seq"].as_u64().unwrap() }
    }

    /// A job of this lane that is done: its result is how many of its lane are settled, so what is settled twice counts
    /// twice. It does not name its lane where its event was lost by the store since.
    pub(crate) fn of_job(key: &str, job: &Value) -> Self {
        let reference = job["ref"].as_str().unwrap_or_else(|| panic!("{job}")).to_owned();
        let seq = job["result"].as_u64().unwrap_or_else(|| panic!("{job}"));
        Self { reference, key: key.to_owned(), seq }
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

impl Effect {
    pub(crate) fn read(event: &Value) -> Self {
        let (key, data) = (event["key"].as_str().unwrap(), &event["data"]);
        let time: jiff::Timestamp = event["time"].as_str().unwrap().parse().unwrap();
        Self {
            receipt: Receipt::read(key, data),
            fence: data["fence"].as_str().unwrap().to_owned(),
            at: u64::try_from(time.as_microsecond()).unwrap(),
        }
    }
}

impl Loss {
    /// The least term of an owner since.
    fn term(&self) -> String {
        format!("{:016x}", self.at)
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
    /// Everything that is wrong with it, in words.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.wrong().into_iter().map(|violation| violation.what).collect()
    }

    /// Everything that is wrong with it.
    pub(crate) fn wrong(&self) -> Vec<Violation> {
        let mut found = self.lost();
        let steps = by_lane(&self.steps, |step| &step.key);
        let effects = by_lane(&self.effects, |effect| &effect.receipt.key);
        for (key, stored) in by_lane(&self.stored, |stored| &stored.receipt.key) {
            found.extend(chain(key, &stored));
            let steps = steps.get(key).map_or(&[][..], Vec::as_slice);
            found.extend(runs(key, steps, stored.len() as u64, &self.losses));
            found.extend(settlements(key, &stored, effects.get(key).map_or(&[], Vec::as_slice)));
        }
        found
    }

    /// Acknowledged events that are not there as they were acknowledged.
    fn lost(&self) -> Vec<Violation> {
        let stored: BTreeSet<&Receipt> = self.stored.iter().map(|stored| &stored.receipt).collect();
        let lost = self.acknowledged.iter().filter(|acknowledged| !stored.contains(acknowledged));
        lost.map(|lost| Violation::of(lost, format!("acknowledged and lost: {lost:?}"))).collect()
    }
}

/// What is wrong with the ids and numbers of a lane, and with how its events ended.
fn chain(key: &str, stored: &[&Stored]) -> Vec<Violation> {
    let (mut found, mut before) = (Vec::new(), None);
    for (stored, seq) in stored.iter().zip(1..) {
        let mut wrong = |what| found.push(Violation::of(&stored.receipt, what));
        if (stored.receipt.seq, stored.prev) != (seq, before) || before >= Some(stored.id) {
            wrong(format!("lane {key}: {stored:?} does not follow {before:?} as number {seq}"));
        }
        if stored.status != "done" {
            wrong(format!("lane {key}: {stored:?} has not ended"));
        }
        before = Some(stored.id);
    }
    found
}

/// What is wrong with what the events of a lane emitted when they were settled.
fn settlements(key: &str, stored: &[&Stored], effects: &[&Effect]) -> Vec<Violation> {
    let mut found = Vec::new();
    let settled = effects.iter().map(|effect| Some(&effect.receipt)).chain(std::iter::repeat(None));
    let should = stored.iter().map(|stored| Some(&stored.receipt)).chain(std::iter::repeat(None));
    let mut pairs = settled.zip(should).take(stored.len().max(effects.len()));
    if let Some((settled, should)) = pairs.find(|(settled, should)| settled != should) {
        let all: Vec<u64> = effects.iter().map(|effect| effect.receipt.seq).collect();
        let first = settled.or(should).expect("both are there, or one is longer");
        found.push(Violation::of(first, format!("lane {key}: not settled once each in order: {all:?}")));
    }
    if let Some(late) = effects.windows(2).find(|pair| pair[0].fence >= pair[1].fence) {
        let what = format!("lane {key}: settled by an owner that was none any more: {late:?}");
        found.push(Violation::of(&late[1].receipt, what));
    }
    found
}

/// What is wrong with the runs of a lane of so many events.
fn runs(key: &str, steps: &[&Step], events: u64, losses: &[Loss]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut wrong = |what: &str, step: &Step| {
        let what = format!("lane {key}: {what}: {step:?}");
        found.push(Violation { what, reference: Some(step.reference.clone()) });
    };
    // The last that was done, and under which term.
    let (mut running, mut done, mut by): (Option<&Step>, u64, &str) = (None, 0, "");
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
            (done, by) = if step.is_done() { (step.seq, step.term()) } else { (done, by) };
            continue;
        }
        if running.is_some_and(|running| running.term() == step.term()) {
            wrong("two runs at a time", step);
        }
        if step.fence.as_str() == newest {
            wrong("the fence of another run", step);
        }
        // What had ended when the server was killed may not have been settled: then it runs again, before all else. A
        // store that lost its last moments goes further back, but not behind what it kept.
        let lost =
            losses.iter().rfind(|loss| by < loss.term().as_str() && loss.term().as_str() <= step.term());
        let kept = lost.map(|loss| loss.settled.get(key).copied().unwrap_or_default());
        let from = kept.unwrap_or(if by < step.term() { done.saturating_sub(1) } else { done }) + 1;
        if step.seq < from || step.seq > done + 1 {
            wrong(&format!("out of order, number {} is next", done + 1), step);
        }
        if lost.is_some() {
            (done, by) = (step.seq - 1, step.term());
        }
        (running, newest) = (Some(step), &step.fence);
    }
    if done != events {
        let what = format!("lane {key}: {done} is the last that ran of {events}");
        found.push(Violation { what, reference: None });
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
            effects: [(1, 1), (1, 2), (2, 3), (3, 4)].map(|(term, seq)| effect(term, seq)).to_vec(),
            losses: Vec::new(),
        }
    }

    fn effect(term: u64, seq: u64) -> Effect {
        let Step { reference, key, fence, .. } = step(Word::End, term, seq, 1, Some("done"));
        Effect { receipt: Receipt { reference, key, seq }, fence, at: term }
    }

    /// The same, when the store came back without what was settled since the second, and it all ran again.
    fn after_a_loss() -> History {
        let mut history = good();
        history.steps.extend([run(9, 3, 1, "done"), run(9, 4, 1, "done")].concat());
        history.effects.splice(2.., [effect(9, 3), effect(9, 4)]);
        history.losses.push(Loss { at: 8, settled: [("ann".to_owned(), 2)].into() });
        history
    }

    #[test]
    fn a_good_history_has_no_violation() {
        assert_eq!(good().violations(), Vec::<String>::new());
        assert_eq!(after_a_loss().violations(), Vec::<String>::new());
    }

    #[test]
    fn a_loss_excuses_nothing_else() {
        type Spoil = fn(&mut History);
        let spoils: [(&str, Spoil); 4] = [
            ("out of order", |history| history.losses.clear()),
            ("out of order", |history| history.losses[0].settled = [("ann".to_owned(), 3)].into()),
            ("is the last that ran", |history| history.steps.truncate(history.steps.len() - 2)),
            ("not settled once each", |history| history.effects.insert(2, effect(2, 3))),
        ];
        for (caught, spoil) in spoils {
            let mut history = after_a_loss();
            spoil(&mut history);
            let found = history.violations();
            assert!(found.iter().any(|found| found.contains(caught)), "{caught}: {found:?}");
        }
    }

    #[test]
    fn every_wrong_history_is_caught() {
        type Spoil = fn(&mut History);
        let spoils: [(&str, Spoil); 14] = [
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
            ("an owner that was none", |history| history.effects[2].fence = history.effects[0].fence.clone()),
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
