//! The table against a model of it that is slow and plain: vectors, looked through from the front each time.
//!
//! Random histories of every operation run on both; after each step both must say the same. The shelf is compacted
//! all the time under test, so the histories move lanes about too.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::{
    Arrival, Ending, Kind, Mode, Outbox, Priority, Pushed, Revision, Settings, Table, Tick, Turn, Verdict,
    Version,
};

const KEYS: u8 = 12;
const CASES: u32 = 10_000;

#[derive(Debug, Clone)]
enum Step {
    Push { key: u8, priority: Priority, ttl: Option<u64>, revision: Revision },
    Start,
    Finish { pick: usize, verdict: Verdict },
    Retry { pick: usize, wait: u64 },
    Pause(u8),
    Resume(u8),
    Cancel(u8),
    CancelItem(usize),
    Advance(u64),
}

#[derive(Debug, Clone)]
struct Item {
    id: u64,
    key: u8,
    priority: Priority,
    version: Version,
    expires: Option<u64>,
    attempt: u32,
}

#[derive(Debug, Default)]
struct Lane {
    running: Option<Item>,
    waiting: Vec<Item>,
    paused: bool,
    parked: bool,
    retry_at: Option<u64>,
    stop: Option<Ending>,
    burst: u32,
    ready_since: u64,
    accepted: Option<Version>,
    done: Option<(u64, Version)>,
}

#[derive(Debug)]
struct Model {
    settings: Settings,
    lanes: BTreeMap<u8, Lane>,
    /// Ready lanes in the order in which they would be served within a priority.
    ready: Vec<(Priority, u8)>,
    idle: Vec<u8>,
    ended: Vec<(u64, Ending)>,
    now: u64,
    last_id: u64,
    stamps: u64,
    turns: u64,
}

fn id(number: u64) -> super::ItemId {
    super::ItemId::from_number(number)
}

impl Model {
    fn new(settings: Settings) -> Self {
        let empty = BTreeMap::new();
        let (ready, idle, ended) = (Vec::new(), Vec::new(), Vec::new());
        Self { settings, lanes: empty, ready, idle, ended, now: 0, last_id: 0, stamps: 0, turns: 0 }
    }

    fn running(&self) -> impl Iterator<Item = &Item> {
        self.lanes.values().filter_map(|lane| lane.running.as_ref())
    }

    /// Puts a lane where it belongs, the slow way.
    fn rank(&mut self, key: u8, front: bool) {
        let latest = self.settings.mode == Mode::Latest;
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        let startable = !lane.waiting.is_empty()
            && lane.running.is_none()
            && !(lane.paused || lane.parked || lane.retry_at.is_some());
        let urgency = lane.waiting.iter().map(|item| item.priority).max();
        let wanted = urgency.filter(|_| startable).map(|priority| (priority, key));
        let present = self.ready.iter().copied().find(|(_, other)| *other == key);
        let idle = lane.waiting.is_empty() && lane.running.is_none() && !lane.paused;
        if wanted != present {
            self.ready.retain(|(_, other)| *other != key);
            if let Some(entry) = wanted {
                if front {
                    self.ready.insert(0, entry);
                } else {
                    self.stamps += 1;
                    (lane.ready_since, lane.burst) = (self.stamps, 0);
                    self.ready.push(entry);
                }
            }
        }
        if !idle || !latest {
            self.idle.retain(|other| *other != key);
        } else if !self.idle.contains(&key) {
            self.idle.push(key);
        }
        if idle && !(latest && lane.accepted.is_some()) {
            self.lanes.remove(&key);
            self.idle.retain(|other| *other != key);
        }
        while self.idle.len() > self.settings.remember {
            let oldest = self.idle.remove(0);
            self.lanes.remove(&oldest);
        }
    }

    /// Pushes; answers whether the push is stale.
    fn push(&mut self, key: u8, priority: Priority, ttl: Option<u64>, revision: Revision) -> bool {
        self.last_id += 1;
        let expires = ttl.map(|ttl| self.now + ttl);
        let given = Version {
            incarnation: revision.incarnation.unwrap_or(0),
            generation: revision.generation.unwrap_or(0),
            kind: revision.kind,
        };
        let mut item = Item { id: self.last_id, key, priority, version: given, expires, attempt: 0 };
        if self.settings.mode == Mode::Queue {
            self.lanes.entry(key).or_default().waiting.push(item);
            self.rank(key, false);
            return false;
        }
        let accepted = self.lanes.get(&key).and_then(|lane| lane.accepted);
        let life = revision.incarnation.or(accepted.map(|newest| newest.incarnation)).unwrap_or(0);
        let newest = accepted.filter(|newest| newest.incarnation == life);
        if accepted.is_some_and(|newest| newest.incarnation > life) {
            return true;
        }
        item.version.incarnation = life;
        item.version.generation =
            revision.generation.unwrap_or(newest.map_or(1, |newest| newest.generation + 1));
        if newest
            .is_some_and(|newest| newest.kind == Kind::Delete || newest.generation > item.version.generation)
        {
            return true;
        }
        self.replace(key, item);
        false
    }

    fn replace(&mut self, key: u8, mut item: Item) {
        let lane = self.lanes.entry(key).or_default();
        (lane.parked, lane.retry_at) = (false, None);
        lane.accepted = Some(item.version);
        let winner = Ending::Superseded { by: id(item.id) };
        for old in lane.waiting.drain(..) {
            item.priority = item.priority.max(old.priority);
            self.ended.push((old.id, winner));
        }
        match (&lane.running, lane.done) {
            (None, Some((done, version))) if version == item.version => {
                self.ended.push((item.id, Ending::Superseded { by: id(done) }));
            }
            (running, _) => {
                let outdated = running.as_ref().is_some_and(|running| running.version < item.version);
                if outdated && self.settings.supersede_running && lane.stop != Some(Ending::Cancelled) {
                    lane.stop = Some(winner);
                }
                lane.waiting.push(item);
            }
        }
        self.rank(key, false);
    }

    fn start(&mut self) -> Option<Item> {
        self.advance(self.now);
        if self.running().count() >= self.settings.concurrency {
            return None;
        }
        let aged = self.settings.ageing > 0
            && self.turns % u64::from(self.settings.ageing) == u64::from(self.settings.ageing) - 1;
        let firsts: Vec<_> = [Priority::Urgent, Priority::High, Priority::Normal, Priority::Background]
            .into_iter()
            .filter_map(|priority| self.ready.iter().find(|(other, _)| *other == priority))
            .map(|(_, key)| *key)
            .collect();
        let oldest = firsts.iter().min_by_key(|key| self.lanes[key].ready_since);
        let key = *if aged { oldest } else { firsts.first() }?;
        self.turns += 1;
        self.ready.retain(|(_, other)| *other != key);
        let lane = self.lanes.get_mut(&key).expect("a ready lane");
        let mut item = lane.waiting.remove(0);
        (item.attempt, item.expires, lane.burst) = (item.attempt + 1, None, lane.burst + 1);
        lane.running = Some(item.clone());
        Some(item)
    }

    fn finish(&mut self, key: u8, verdict: Verdict) -> Option<Ending> {
        let latest = self.settings.mode == Mode::Latest;
        let keeps = self.settings.quantum;
        let lane = self.lanes.get_mut(&key).expect("a running lane");
        let item = lane.running.take().expect("a running item");
        let newer =
            lane.waiting.first().filter(|_| latest).map(|newer| Ending::Superseded { by: id(newer.id) });
        let stopped = lane.stop.take().or(newer);
        let ending = match verdict {
            Verdict::Done => Some(Ending::Done),
            Verdict::Failed => Some(Ending::Failed),
            Verdict::Stopped => stopped.or(Some(Ending::Cancelled)),
            Verdict::RetryAt(_) | Verdict::Park => stopped,
        };
        if latest && ending == Some(Ending::Done) {
            lane.done = Some((item.id, item.version));
            let repeats = |other: &Item| other.version == item.version;
            let ended = lane.waiting.iter().filter(|other| repeats(other));
            self.ended.extend(ended.map(|other| (other.id, Ending::Superseded { by: id(item.id) })));
            lane.waiting.retain(|other| !repeats(other));
        }
        if ending.is_none() {
            match verdict {
                Verdict::RetryAt(at) => lane.retry_at = Some(at.as_micros()),
                _ => lane.parked = true,
            }
            lane.waiting.insert(0, item);
        }
        let front = lane.burst < keeps;
        self.rank(key, front);
        ending
    }

    fn advance(&mut self, now: u64) {
        self.now = now;
        let mut late: Vec<(u64, u64, u8)> = Vec::new();
        for item in self.lanes.values().flat_map(|lane| &lane.waiting) {
            late.extend(item.expires.filter(|at| *at <= now).map(|at| (at, item.id, item.key)));
        }
        late.sort_unstable();
        for (_, number, key) in late {
            self.lanes.get_mut(&key).expect("its lane").waiting.retain(|item| item.id != number);
            self.ended.push((number, Ending::Expired));
            self.rank(key, false);
        }
        let mut due: Vec<(u64, u64, u8)> = Vec::new();
        for (key, lane) in &self.lanes {
            due.extend(lane.retry_at.filter(|at| *at <= now).map(|at| (at, lane.waiting[0].id, *key)));
        }
        due.sort_unstable();
        for (_, _, key) in due {
            self.lanes.get_mut(&key).expect("its lane").retry_at = None;
            self.rank(key, false);
        }
    }

    fn pause(&mut self, key: u8) {
        self.lanes.entry(key).or_default().paused = true;
        self.rank(key, false);
    }

    fn resume(&mut self, key: u8) {
        if let Some(lane) = self.lanes.get_mut(&key) {
            (lane.paused, lane.parked) = (false, false);
            self.rank(key, false);
        }
    }

    fn cancel(&mut self, key: u8) {
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        self.ended.extend(lane.waiting.drain(..).map(|item| (item.id, Ending::Cancelled)));
        (lane.parked, lane.retry_at) = (false, None);
        lane.stop = lane.running.as_ref().map(|_| Ending::Cancelled);
        self.rank(key, false);
    }

    fn cancel_item(&mut self, key: u8, number: u64) {
        let lane = self.lanes.get_mut(&key).expect("its lane");
        if lane.running.as_ref().is_some_and(|item| item.id == number) {
            lane.stop = Some(Ending::Cancelled);
            return;
        }
        if lane.waiting[0].id == number {
            (lane.parked, lane.retry_at) = (false, None);
        }
        lane.waiting.retain(|item| item.id != number);
        self.ended.push((number, Ending::Cancelled));
        self.rank(key, false);
    }

    fn items(&self) -> Vec<(u8, u64)> {
        let all = self.lanes.values().flat_map(|lane| lane.running.iter().chain(&lane.waiting));
        all.map(|item| (item.key, item.id)).collect()
    }
}

struct Pair {
    table: Table<u8, u64>,
    turns: Vec<Turn<u8, u64>>,
    model: Model,
}

impl Pair {
    fn new(settings: Settings) -> Self {
        Self { table: Table::new(settings.clone()), turns: Vec::new(), model: Model::new(settings) }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Push { key, priority, ttl, revision } => {
                let expires = ttl.map(|ttl| Tick::from_micros(self.model.now + ttl));
                let payload = self.model.last_id + 1;
                let pushed = self.table.push(Arrival { key, payload, priority, expires, revision });
                let stale = matches!(pushed, Pushed::Stale { .. });
                assert_eq!(stale, self.model.push(key, priority, ttl, revision), "stale or not");
            }
            Step::Start => {
                let turn = self.table.start(Tick::from_micros(self.model.now));
                let expected = self.model.start().map(|item| (item.key, item.id, item.attempt, item.version));
                let given = turn.as_ref().map(|turn| (turn.key, turn.payload, turn.attempt, turn.version));
                assert_eq!(given, expected, "which head starts");
                self.turns.extend(turn);
            }
            Step::Finish { pick, verdict } => self.finish(pick, verdict),
            Step::Retry { pick, wait } => {
                self.finish(pick, Verdict::RetryAt(Tick::from_micros(self.model.now + wait)));
            }
            Step::Pause(key) => {
                self.table.pause(key);
                self.model.pause(key);
            }
            Step::Resume(key) => {
                self.table.resume(&key);
                self.model.resume(key);
            }
            Step::Cancel(key) => {
                self.table.cancel(&key);
                self.model.cancel(key);
            }
            Step::CancelItem(pick) => {
                let items = self.model.items();
                if let Some(&(key, number)) = items.get(pick % items.len().max(1)) {
                    self.table.cancel_item(&key, id(number));
                    self.model.cancel_item(key, number);
                }
            }
            Step::Advance(by) => {
                self.model.advance(self.model.now + by);
                self.table.advance(Tick::from_micros(self.model.now));
            }
        }
        self.compare();
    }

    fn finish(&mut self, pick: usize, verdict: Verdict) {
        if self.turns.is_empty() {
            return;
        }
        let turn = self.turns.swap_remove(pick % self.turns.len());
        assert_eq!(self.table.finish(&turn, verdict), self.model.finish(turn.key, verdict), "how a run ends");
    }

    fn compare(&mut self) {
        let mut outbox = Outbox::default();
        self.table.swap_outbox(&mut outbox);
        let ended: Vec<_> = outbox.ended.into_iter().map(|ended| (ended.payload, ended.ending)).collect();
        assert_eq!(ended, std::mem::take(&mut self.model.ended), "what ended");
        let snapshot = self.table.snapshot();
        let lanes = &self.model.lanes;
        assert_eq!(snapshot.lanes, lanes.len(), "lanes");
        assert_eq!(snapshot.waiting, lanes.values().map(|lane| lane.waiting.len()).sum::<usize>(), "waiting");
        assert_eq!(snapshot.running, self.model.running().count(), "running");
        assert_eq!(snapshot.ready, self.model.ready.len(), "ready");
        assert_eq!(snapshot.paused, lanes.values().filter(|lane| lane.paused).count(), "paused");
        assert_eq!(snapshot.parked, lanes.values().filter(|lane| lane.parked).count(), "parked");
        assert_eq!(
            snapshot.retrying,
            lanes.values().filter(|lane| lane.retry_at.is_some()).count(),
            "retrying"
        );
        assert_eq!(snapshot.remembered, self.model.idle.len(), "remembered");
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let priority = prop_oneof![
        4 => Just(Priority::Normal),
        1 => Just(Priority::Background),
        1 => Just(Priority::High),
        1 => Just(Priority::Urgent)
    ];
    let kind = prop_oneof![6 => Just(Kind::Update), 1 => Just(Kind::Delete)];
    let revision = (prop::option::of(1..6_u64), prop::option::weighted(0.3, 0..3_u64), kind)
        .prop_map(|(generation, incarnation, kind)| Revision { generation, incarnation, kind });
    let push = (0..KEYS, priority, prop::option::weighted(0.2, 0..5_u64), revision)
        .prop_map(|(key, priority, ttl, revision)| Step::Push { key, priority, ttl, revision });
    let verdict = prop_oneof![
        5 => Just(Verdict::Done),
        2 => Just(Verdict::Failed),
        1 => Just(Verdict::Park),
        1 => Just(Verdict::Stopped)
    ];
    let step = prop_oneof![
        8 => push,
        7 => Just(Step::Start),
        5 => (any::<usize>(), verdict).prop_map(|(pick, verdict)| Step::Finish { pick, verdict }),
        2 => (any::<usize>(), 0..4_u64).prop_map(|(pick, wait)| Step::Retry { pick, wait }),
        1 => (0..KEYS).prop_map(Step::Pause),
        2 => (0..KEYS).prop_map(Step::Resume),
        1 => (0..KEYS).prop_map(Step::Cancel),
        1 => any::<usize>().prop_map(Step::CancelItem),
        2 => (0..4_u64).prop_map(Step::Advance),
    ];
    prop::collection::vec(step, 1..60)
}

fn compare_in(mode: Mode) {
    let settings = (1..5_usize, 1..4_u32, 0..5_u32, 0..4_usize, any::<bool>()).prop_map(
        move |(concurrency, quantum, ageing, remember, supersede_running)| Settings {
            mode,
            concurrency,
            quantum,
            ageing,
            remember,
            keep_last: true,
            supersede_running,
        },
    );
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let checked = TestRunner::new(config).run(&(settings, steps()), |(settings, steps)| {
        let mut pair = Pair::new(settings);
        steps.into_iter().for_each(|step| pair.step(step));
        Ok(())
    });
    if let Err(fault) = checked {
        panic!("the table and its model differ: {fault}");
    }
}

#[test]
fn table_agrees_with_its_model_in_queue_mode() {
    compare_in(Mode::Queue);
}

#[test]
fn table_agrees_with_its_model_in_latest_mode() {
    compare_in(Mode::Latest);
}
