//! `laneway verify STREAM`: reads a stream over HTTP and checks the chain of every lane.
//!
//! Ids grow inside a partition. In a lane, `prev` is the id of the event before and `seq` one more than its. The first
//! event that is still there may follow one that was trimmed: that is no gap.

use std::collections::HashMap;

use laneway_client::Client;
use laneway_client::wire::Event;
use serde::Serialize;

use crate::args::VerifyArgs;
use crate::exit::{Exit, Fault};
use crate::output::{Cell, Column, Progress, Row, Writer, grouped};
use crate::terminal::say;

/// Events of one call.
const PAGE: usize = 1_000;
/// Faults that are told; one damaged place can spoil any number of lanes.
const FAULTS_TOLD: usize = 100;

/// What does not fit.
#[derive(Debug, Serialize, PartialEq, Eq)]
struct Broken {
    #[serde(rename = "ref")]
    reference: String,
    key: Option<String>,
    wrong: String,
}

impl Row for Broken {
    const COLUMNS: &'static [Column] =
        &[Column::left("REF"), Column::left("KEY").cut(), Column::left("WRONG").cut()];

    fn id(&self) -> String {
        self.reference.clone()
    }

    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::Text(self.reference.clone()),
            Cell::maybe(self.key.clone()),
            Cell::Text(self.wrong.clone()),
        ]
    }
}

/// The key of a lane: as text, or in base64 when it is no text.
type LaneKey = (Option<String>, Option<String>);

/// The last event of a lane.
#[derive(Debug, Clone, Copy)]
struct End {
    id: u64,
    seq: Option<u64>,
}

/// What was read so far.
#[derive(Debug, Default)]
struct Chains {
    /// The last event of each lane.
    ends: HashMap<LaneKey, End>,
    /// The last id of the partition.
    last: u64,
    /// The first id of the partition that is still there.
    first: Option<u64>,
    events: u64,
    lanes: u64,
    broken: Vec<Broken>,
    count: u64,
    /// Ids left out: the store was adopted, because a failover or a restored backup may have lost events there.
    jumps: Vec<String>,
    jump_count: u64,
}

impl Chains {
    /// Each partition is a world of its own.
    fn next_partition(&mut self) {
        self.lanes += self.ends.len() as u64;
        self.ends.clear();
        (self.last, self.first) = (0, None);
    }

    /// Forgets what was read of this partition, before which so many events were read.
    fn begin_partition_again(&mut self, events: u64) {
        self.ends.clear();
        (self.last, self.first, self.events) = (0, None, events);
    }

    fn check(&mut self, event: &Event) {
        self.events += 1;
        let first = *self.first.get_or_insert(event.id);
        if event.id <= self.last {
            self.tell(event, format!("its id is {}, must be above {}", event.id, self.last));
        }
        // Ids are places, so nothing but an adoption leaves one out.
        if self.last > 0 && event.id > self.last + 1 {
            self.jump_count += 1;
            if self.jumps.len() < FAULTS_TOLD {
                self.jumps.push(format!("{} follows id {}", event.reference, self.last));
            }
        }
        self.last = event.id;
        // An event without a key is a lane of its own.
        if event.key.is_none() && event.key_b64.is_none() {
            return;
        }
        let lane = (event.key.clone(), event.key_b64.clone());
        let before = self.ends.insert(lane, End { id: event.id, seq: event.seq });
        match before {
            Some(End { id, seq }) => {
                if event.prev != Some(id) {
                    self.tell(event, format!("its prev is {}, must be {id}", shown(event.prev)));
                }
                if let (Some(seq), Some(own)) = (seq, event.seq)
                    && own != seq + 1
                {
                    self.tell(event, format!("its seq is {own}, must be {}", seq + 1));
                }
            }
            None => self.check_first(event, first),
        }
    }

    /// The first event of a lane that is still there.
    fn check_first(&mut self, event: &Event, first: u64) {
        match (event.prev, event.seq) {
            (None, Some(seq)) if seq != 1 => {
                self.tell(event, format!("its seq is {seq} without a prev, must be 1"))
            }
            (Some(prev), _) if prev >= first => {
                self.tell(event, format!("its prev is {prev}, which is not an event of its lane"));
            }
            (Some(_), Some(1)) => self.tell(event, "its seq is 1 with a prev, must be above 1".to_owned()),
            _ => {}
        }
    }

    fn tell(&mut self, event: &Event, wrong: String) {
        self.count += 1;
        if self.broken.len() < FAULTS_TOLD {
            self.broken.push(Broken { reference: event.reference.clone(), key: event.key.clone(), wrong });
        }
    }
}

fn shown(id: Option<u64>) -> String {
    id.map_or_else(|| "absent".to_owned(), |id| id.to_string())
}

pub(super) async fn run(client: &Client, writer: Writer, args: VerifyArgs) -> Result<(), Fault> {
    let stream = client.stream(&args.stream).await?;
    let partitions = match args.partition {
        Some(partition) => partition..partition + 1,
        None => 0..stream.partitions,
    };
    let progress = Progress::of_steps("reading", writer.is_quiet());
    let mut chains = Chains::default();
    for partition in partitions {
        let (mut after, before) = (0, chains.events);
        loop {
            let page = match client.events(&args.stream, partition, after, PAGE).await {
                // What was trimmed under the reader is no fault; from 0 on it begins with the first that is there.
                Err(error) if error.code() == Some("event_trimmed") && after > 0 => {
                    chains.begin_partition_again(before);
                    after = 0;
                    continue;
                }
                page => page?,
            };
            page.events.iter().for_each(|event| chains.check(event));
            progress.say(format!("partition {partition}: {} events", grouped(chains.events)));
            match page.next {
                Some(next) => after = next,
                None => break,
            }
        }
        chains.next_partition();
    }
    drop(progress);
    told(writer, &args.stream, &chains)
}

fn told(writer: Writer, stream: &str, chains: &Chains) -> Result<(), Fault> {
    if chains.count == 0 {
        let sentence = format!(
            "{stream} is in order: {} events of {} lanes",
            grouped(chains.events),
            grouped(chains.lanes)
        );
        let report = serde_json::json!({
            "stream": stream, "events": chains.events, "lanes": chains.lanes, "broken": 0,
            "jumps": chains.jump_count, "jump": chains.jumps,
        });
        if writer.is_for_people() {
            for jump in &chains.jumps {
                say(format_args!(
                    "{jump}: the store came back there as another, and may have lost what was last before"
                ));
            }
        }
        return writer.done(sentence, &report, stream);
    }
    writer.list(&chains.broken, "")?;
    if writer.is_for_people() {
        say(format_args!("{stream} is NOT in order: {} faults", grouped(chains.count)));
    }
    Err(Fault::silent(Exit::Failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: u64, key: Option<&str>, prev: Option<u64>, seq: Option<u64>) -> Event {
        serde_json::from_value(serde_json::json!({
            "ref": format!("s/0/{id}"), "partition": 0, "id": id, "prev": prev, "seq": seq, "key": key,
            "time": "2026-11-17T00:00:00Z", "processors": [],
        }))
        .unwrap()
    }

    fn check(events: &[Event], expected: &[&str]) {
        let mut chains = Chains::default();
        events.iter().for_each(|event| chains.check(event));
        let found: Vec<String> =
            chains.broken.iter().map(|broken| format!("{}: {}", broken.reference, broken.wrong)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn chains_that_hold_pass_also_below_a_trim() {
        let a = Some("a");
        check(&[event(1, a, None, Some(1)), event(2, None, None, None), event(3, a, Some(1), Some(2))], &[]);
        // The lane goes on from events that are no more.
        check(&[event(7, a, Some(4), Some(9)), event(9, a, Some(7), Some(10))], &[]);
    }

    #[test]
    fn a_jump_of_ids_is_told_and_is_no_fault() {
        let mut chains = Chains::default();
        let a = Some("a");
        let events = [
            event(3, a, None, Some(1)),
            event(4, a, Some(3), Some(2)),
            event(1_048_581, a, Some(4), Some(3)),
        ];
        events.iter().for_each(|event| chains.check(event));
        assert_eq!((chains.count, chains.jumps), (0, vec!["s/0/1048581 follows id 4".to_owned()]));
    }

    #[test]
    fn every_broken_link_is_found() {
        let a = Some("a");
        let first = event(5, a, None, Some(1));
        check(&[first.clone(), event(5, Some("b"), None, Some(1))], &["s/0/5: its id is 5, must be above 5"]);
        check(&[first.clone(), event(6, a, Some(4), Some(2))], &["s/0/6: its prev is 4, must be 5"]);
        check(&[first.clone(), event(6, a, None, Some(2))], &["s/0/6: its prev is absent, must be 5"]);
        check(&[first.clone(), event(6, a, Some(5), Some(3))], &["s/0/6: its seq is 3, must be 2"]);
        check(&[event(5, a, None, Some(2))], &["s/0/5: its seq is 2 without a prev, must be 1"]);
        check(
            &[first, event(8, Some("b"), Some(6), Some(2))],
            &["s/0/8: its prev is 6, which is not an event of its lane"],
        );
    }
}
