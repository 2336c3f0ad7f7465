//! The process that is killed: actors and producers work on one folder and report every answer on standard output
//! after the store gave it. The parent starts this test binary again with nothing but this "test" to run.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures::executor::block_on;
use futures::future::{join, join_all};
use laneway_core::event::Dedup;
use laneway_core::store::{Append, Appended, Receipt, Trim};
use laneway_core::{Draft, EventId, Key, Kind, ManualClock, Result, Seq, Store};
use laneway_embedded::{FileOptions, FileStore, SyncMode};

use super::actor::Actor;
use super::lives::small;
use super::oracle::digest;
use super::world::{Territory, World};

const TEST: &str = "proof::child::works_until_it_is_killed";
const ORDERS: &str = "LANEWAY_PROOF_ORDERS";

/// What a child is told.
#[derive(Clone, Debug)]
pub(super) struct Orders {
    pub(super) dir: PathBuf,
    pub(super) seed: u64,
    /// How long after the beginning of all clocks.
    pub(super) seconds: u64,
    pub(super) sync: SyncMode,
    /// Steps done, per actor.
    pub(super) actors: Vec<u64>,
    /// Sends done, per producer.
    pub(super) producers: Vec<u64>,
}

fn numbers(list: &[u64]) -> String {
    list.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}

fn parse(list: &str) -> Vec<u64> {
    list.split(',').map(|number| number.parse().expect("a number in the orders")).collect()
}

impl Orders {
    fn encode(&self) -> String {
        let sync = if self.sync == SyncMode::Os { "os" } else { "always" };
        let (actors, producers) = (numbers(&self.actors), numbers(&self.producers));
        format!("{} {} {sync} {actors} {producers} {}", self.seed, self.seconds, self.dir.display())
    }

    fn decode(text: &str) -> Self {
        let parts: Vec<&str> = text.splitn(6, ' ').collect();
        let [seed, seconds, sync, actors, producers, dir] = parts[..] else { panic!("six parts: {text}") };
        Self {
            dir: PathBuf::from(dir),
            seed: parse(seed)[0],
            seconds: parse(seconds)[0],
            sync: if sync == "os" { SyncMode::Os } else { SyncMode::Always },
            actors: parse(actors),
            producers: parse(producers),
        }
    }

    pub(super) fn options(&self) -> FileOptions {
        FileOptions { sync: self.sync, ..small() }
    }

    pub(super) fn clock(&self) -> ManualClock {
        let clock = ManualClock::default();
        clock.advance(Duration::from_secs(self.seconds));
        clock
    }
}

/// The child of a proof; killed when dropped.
pub(super) struct Working {
    pub(super) process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Working {
    pub(super) fn start(orders: &Orders) -> Self {
        let binary = std::env::current_exe().expect("a test binary knows its own path");
        let mut command = Command::new(binary);
        command.args(["--exact", "--nocapture", TEST]).env(ORDERS, orders.encode());
        // Standard input stays open and silent: a child that has done everything waits for its end there.
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("the test binary starts");
        let lines = BufReader::new(process.stdout.take().expect("the output was piped")).lines();
        Self { process, lines }
    }

    /// The next line; `None` when the child ended.
    pub(super) fn line(&mut self) -> Option<String> {
        self.lines.next().and_then(std::result::Result::ok)
    }

    /// Kills it and gives the lines that had not been read.
    pub(super) fn kill(&mut self) -> Vec<String> {
        self.process.kill().expect("a child that was not waited for can be killed");
        let rest = std::iter::from_fn(|| self.line()).collect();
        self.process.wait().expect("a killed child ends");
        rest
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let _ended_before = self.process.kill();
        let _no_matter_how = self.process.wait();
    }
}

fn report(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("the parent reads until it kills");
}

/// The drafts of one send of a producer: names and payloads tell them apart, lanes are shared by all producers.
pub(super) fn drafts(producer: usize, number: u64) -> Vec<Draft> {
    let draft = |index: u64| {
        let key = Key::new(format!("shared-{}", (number + index) % 5)).expect("a short key");
        let name = format!("{producer}-{number}-{index}");
        let data = name.repeat(1 + usize::try_from(number % 7).expect("small") * 20);
        let dedup = Dedup { id: name.into(), body: 1, window: Duration::from_secs(100_000) };
        Draft {
            dedup: Some(dedup),
            ..Draft::new(Some(key), Kind::new("shared").expect("a short kind"), data)
        }
    };
    (0..=number % 3).map(draft).collect()
}

/// Place in the chain of the event that a receipt names.
fn place(receipt: &Receipt) -> String {
    match receipt {
        Receipt::New { id, prev, seq, .. } => {
            format!("{id}:{}:{}", prev.unwrap_or(EventId(0)), seq.unwrap_or(Seq(0)))
        }
        Receipt::Duplicate { first: Some(first) } => place(first),
        other => panic!("a draft with a name of its own is new or a duplicate: {other:?}"),
    }
}

async fn act(store: &FileStore, territory: &Territory, seed: u64, first: u64) {
    for number in first.. {
        let step = Actor { store, territory, seed }.step(number).await;
        let answer = step.answer.unwrap_or_else(|error| panic!("trouble in a healthy store: {error}"));
        report(&format!("step {} {number} {}", territory.actor, digest(&answer)));
    }
}

async fn send(store: &FileStore, world: &World, producer: usize, number: u64) -> Result<Appended> {
    let ground = &world.shared;
    let incarnation = store.about().incarnation;
    let drafts = drafts(producer, number);
    let (shard, layout) = (ground.shard, ground.layout);
    store.append(Append { shard, incarnation, layout, origin: None, drafts, object: None }).await
}

async fn produce(store: &FileStore, world: &World, producer: usize, first: u64) {
    for number in first.. {
        let sent = send(store, world, producer, number).await;
        let receipts = sent.unwrap_or_else(|error| panic!("trouble in a healthy store: {error}")).receipts;
        let places: Vec<String> = receipts.iter().map(place).collect();
        report(&format!("sent {producer} {number} {}", places.join(",")));
        if number % 16 == 0 {
            store.trim(Trim { shard: world.shared.shard }).await.expect("trim of a shard that exists");
        }
    }
}

#[test]
fn works_until_it_is_killed() {
    let Ok(orders) = std::env::var(ORDERS) else { return };
    let orders = Orders::decode(&orders);
    report("\nopening");
    let store = open(&orders.dir, &orders);
    report("ready");
    block_on(async {
        let world = World::look(&store).await.expect("the world was founded");
        let actors = world.territories.iter().zip(&orders.actors);
        let actors = join_all(actors.map(|(territory, first)| act(&store, territory, orders.seed, *first)));
        let producers = orders.producers.iter().enumerate();
        let producers =
            join_all(producers.map(|(producer, first)| produce(&store, &world, producer, *first)));
        join(actors, producers).await;
    });
}

pub(super) fn open(dir: &Path, orders: &Orders) -> FileStore {
    FileStore::open_with(dir, orders.options(), Arc::new(orders.clock()))
        .unwrap_or_else(|error| panic!("{error}"))
}
