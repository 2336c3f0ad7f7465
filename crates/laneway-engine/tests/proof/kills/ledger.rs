//! What the parent heard of one folder, and how it is judged.

use std::collections::BTreeMap;

use super::plan::{self, PRODUCERS, Sum};

/// Every line is taken in as it comes: an effect out of order is known at once.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// What handlers reported, by stream and lane.
    lanes: BTreeMap<(String, String), Lane>,
    /// First number that was not acknowledged, per producer.
    pub(super) next: [u64; PRODUCERS],
    /// Jobs that were acknowledged: the event each is about.
    pub(super) jobs: BTreeMap<String, (usize, u64)>,
    /// Jobs whose end was reported: how, and the count in the result.
    pub(super) ended: BTreeMap<String, (String, u64)>,
    pub(super) runs: u64,
}

/// The runs of one lane.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Numbers by their place in the lane, as far as one was run there.
    pub(super) numbers: Vec<u64>,
    /// Runs of each place: more than one where a kill came before the settling, or an attempt failed.
    pub(super) runs: Vec<u64>,
}

impl Ledger {
    /// Takes one line in.
    pub(super) fn hear(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["ran", stream, lane, number, before] => {
                self.runs += 1;
                let lane_runs = self.lanes.entry((stream.to_owned(), lane.to_owned())).or_default();
                let (number, place) = (parse(number)?, parse(before)?);
                lane_runs.ran(number, place).map_err(|wrong| format!("{stream} {lane}: {wrong}"))
            }
            ["sent", producer, from, next, jobs] => {
                self.sent(parse(producer)?, parse(from)?, parse(next)?, jobs)
            }
            ["ended", job, end, count] => {
                let end = (end.to_owned(), parse(count)?);
                match self.ended.insert(job.to_owned(), end.clone()) {
                    Some(before) if before != end => {
                        Err(format!("job {job} ended {end:?} after it had ended {before:?}"))
                    }
                    _ => Ok(()),
                }
            }
            _ if line.contains("panicked") => Err(format!("the worker failed: {line}")),
            _ => Ok(()),
        }
    }

    fn sent(&mut self, producer: u64, from: u64, next: u64, jobs: &str) -> Result<(), String> {
        let producer = usize::try_from(producer).map_err(|error| error.to_string())?;
        if self.next[producer] != from {
            return Err(format!("producer {producer} sent {from}, due was {}", self.next[producer]));
        }
        self.next[producer] = next;
        for (number, job) in (from..).zip(jobs.split(',').filter(|job| !job.is_empty())) {
            if let Some(other) = self.jobs.insert(job.to_owned(), (producer, number)) {
                return Err(format!("job {job} is both {other:?} and {:?}", (producer, number)));
            }
        }
        Ok(())
    }

    /// What the lanes must hold in the end, by stream and lane: every number that was sent, in order.
    pub(super) fn expected(&self, streams: [&str; 2]) -> BTreeMap<(String, String), Vec<u64>> {
        let mut expected: BTreeMap<(String, String), Vec<u64>> = BTreeMap::new();
        for (producer, next) in self.next.iter().enumerate() {
            for number in 0..*next {
                let lane = plan::lane(producer, number);
                expected.entry((streams[0].to_owned(), lane.clone())).or_default().push(number);
                let emits = plan::emits(number);
                if !emits.is_empty() {
                    expected.entry((streams[1].to_owned(), lane)).or_default().extend(emits);
                }
            }
        }
        expected
    }

    /// Whether every place of these lanes was run.
    pub(super) fn ran_all(&self, expected: &BTreeMap<(String, String), Vec<u64>>) -> bool {
        expected.iter().all(|(lane, numbers)| {
            self.lanes.get(lane).is_some_and(|lane| lane.numbers.len() >= numbers.len())
        })
    }

    /// Whether lanes ran what they had to, in order, and nothing else.
    pub(super) fn check_order(&self, expected: &BTreeMap<(String, String), Vec<u64>>) -> Result<(), String> {
        if let Some(lane) = self.lanes.keys().find(|lane| !expected.contains_key(*lane)) {
            return Err(format!("{lane:?} ran and was never sent"));
        }
        for (lane, numbers) in expected {
            let ran = self.lanes.get(lane).map(|lane| &lane.numbers);
            if ran != Some(numbers) {
                return Err(format!("{lane:?} was sent {numbers:?} and ran {ran:?}"));
            }
        }
        Ok(())
    }

    /// Whether the state of a lane is what its events add up to.
    pub(super) fn check_state(numbers: &[u64], state: Sum) -> Result<(), String> {
        let sum = Sum::of(numbers);
        if sum == state {
            Ok(())
        } else {
            Err(format!("{numbers:?} add up to {sum:?}, the state is {state:?}"))
        }
    }

    /// Whether every effect happened exactly once. No engine can promise that: it is the control.
    pub(super) fn check_effects(&self) -> Result<(), String> {
        let repeated = |lane: &Lane| lane.runs.iter().position(|runs| *runs > 1);
        match self.lanes.iter().find_map(|(name, lane)| repeated(lane).map(|place| (name, place))) {
            Some((lane, place)) => Err(format!("{lane:?} ran its event at place {place} again")),
            None => Ok(()),
        }
    }

    /// Runs beyond the first of an event, without those after an attempt that failed as planned.
    pub(super) fn repeats(&self, first_stream: &str) -> u64 {
        let lanes = self.lanes.iter().map(|((stream, _), lane)| {
            let places = lane.numbers.iter().zip(&lane.runs);
            places
                .map(|(number, runs)| {
                    let planned = u64::from(stream == first_stream && plan::fails_first(*number));
                    (runs - 1).saturating_sub(planned)
                })
                .sum::<u64>()
        });
        lanes.sum()
    }
}

impl Lane {
    /// A handler was given this number, with so many events settled before it.
    ///
    /// A run at a place means that everything before is settled for good: no later run may be at an earlier place, nor
    /// beyond the next one.
    fn ran(&mut self, number: u64, place: u64) -> Result<(), String> {
        let len = self.numbers.len() as u64;
        if place == len {
            self.numbers.push(number);
            self.runs.push(1);
            return Ok(());
        }
        if place + 1 != len {
            return Err(format!(
                "{number} ran at place {place} when place {} had been run",
                len.wrapping_sub(1)
            ));
        }
        let last = self.numbers.len() - 1;
        if self.numbers[last] != number {
            return Err(format!("{number} ran at place {place}, where {} had been run", self.numbers[last]));
        }
        self.runs[last] += 1;
        Ok(())
    }
}

fn parse(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("{word:?} is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &[&str], expected: Result<(), &str>) {
        let mut ledger = Ledger::default();
        let heard: Result<(), String> = lines.iter().try_for_each(|line| ledger.hear(line));
        match (heard, expected) {
            (Ok(()), Ok(())) => {}
            (Err(wrong), Err(part)) => assert!(wrong.contains(part), "{wrong}"),
            (heard, _) => panic!("{lines:?}: {heard:?}"),
        }
    }

    #[test]
    fn order_losses_and_repeats_are_seen() {
        check(&["ran orders a 3 0", "ran orders a 3 0", "ran orders a 8 1"], Ok(()));
        check(&["ran orders a 3 0", "ran orders a 8 1", "ran orders a 3 0"], Err("had been run"));
        check(&["ran orders a 3 0", "ran orders a 8 2"], Err("had been run"));
        check(&["ran orders a 3 0", "ran orders a 8 0"], Err("where 3 had been run"));
        check(&["ended x done 3", "ended x done 3"], Ok(()));
        check(&["ended x done 3", "ended x done 4"], Err("after it had ended"));
        check(&["sent 0 0 2 x,x"], Err("is both"));
    }
}
