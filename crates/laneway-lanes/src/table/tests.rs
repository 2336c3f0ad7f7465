//! The rules of the table, told as small scripts.
//!
//! A script is a line of steps; after each step everything that may start is started. Items are named by their lane, a
//! letter, and a number: `a1` is an item of lane `a`.
//!
//! | step | does |
//! | --- | --- |
//! | `+a1` | pushes; options follow a colon: `u` urgent, `h` high, `b` background, `t9` expires at 9, and for latest mode `g5` generation, `i2` incarnation, `d` delete |
//! | `-a1` `xa1` | done, failed |
//! | `ra1@9` `pa1` | retry at 9, park |
//! | `sa1` | stopped |
//! | `=a` `^a` | pause, resume the lane |
//! | `!a` `!a1` | cancel the lane, the item |
//! | `@9` | time passes up to 9 |
//! | `*a` | starts the lane out of its turn |
//!
//! The expectation lists starts by name (`a1`), ends that no step said (`a1:superseded(a2)`, `:cancelled`,
//! `:expired`, `:stale`), and requests to stop (`a1:stop`), in order.

use std::collections::HashMap;

use super::{
    Arrival, Ending, ItemId, Kind, Mode, Outbox, Priority, Pushed, Settings, Table, Tick, Turn, Verdict, Why,
};

struct Bench {
    table: Table<char, String>,
    running: HashMap<String, Turn<char, String>>,
    names: HashMap<ItemId, String>,
    now: Tick,
    said: Vec<String>,
}

impl Bench {
    fn new(settings: Settings) -> Self {
        Self {
            table: Table::new(settings),
            running: HashMap::new(),
            names: HashMap::new(),
            now: Tick::START,
            said: Vec::new(),
        }
    }

    fn play(&mut self, script: &str) -> String {
        for step in script.split_whitespace() {
            self.step(step);
            self.collect();
            while let Some(turn) = self.table.start(self.now) {
                self.collect();
                self.said.push(turn.payload.clone());
                self.running.insert(turn.payload.clone(), turn);
            }
            self.collect();
        }
        std::mem::take(&mut self.said).join(" ")
    }

    fn step(&mut self, step: &str) {
        let (verb, rest) = step.split_at(1);
        let lane = rest.chars().next().expect("a step names something");
        match verb {
            "+" => self.push(rest),
            "-" => self.finish(rest, Verdict::Done),
            "x" => self.finish(rest, Verdict::Failed),
            "p" => self.finish(rest, Verdict::Park),
            "s" => self.finish(rest, Verdict::Stopped),
            "r" => {
                let (name, at) = rest.split_once('@').expect("retry says when");
                self.finish(name, Verdict::RetryAt(tick(at)));
            }
            "=" => assert!(self.table.pause(lane), "{step}: was not paused"),
            "^" => assert!(self.table.resume(&lane), "{step}: was held"),
            "!" => {
                let cancelled = match rest.len() {
                    1 => self.table.cancel(&lane),
                    _ => self.table.cancel_item(&lane, self.id(rest)),
                };
                self.said.extend(cancelled.running.into_iter().map(|name| name + ":stop"));
            }
            "@" => {
                self.now = tick(rest);
                self.table.advance(self.now);
            }
            "*" => {
                if let Some(turn) = self.table.start_lane(&lane, self.now) {
                    self.said.push(turn.payload.clone());
                    self.running.insert(turn.payload.clone(), turn);
                }
            }
            _ => panic!("unknown step {step}"),
        }
    }

    fn push(&mut self, text: &str) {
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        let lane = name.chars().next().expect("an item names its lane");
        let mut arrival = Arrival::new(lane, name.to_owned());
        for option in options.split(',').filter(|option| !option.is_empty()) {
            let number = || option[1..].parse().expect("an option's number");
            match &option[..1] {
                "u" => arrival.priority = Priority::Urgent,
                "h" => arrival.priority = Priority::High,
                "b" => arrival.priority = Priority::Background,
                "t" => arrival.expires = Some(tick(&option[1..])),
                "g" => arrival.revision.generation = Some(number()),
                "i" => arrival.revision.incarnation = Some(number()),
                "d" => arrival.revision.kind = Kind::Delete,
                _ => panic!("unknown option {option}"),
            }
        }
        match self.table.push(arrival) {
            Pushed::Accepted { id, stop } => {
                self.names.insert(id, name.to_owned());
                self.said.extend(stop.map(|name| name + ":stop"));
            }
            Pushed::Stale { payload, .. } => self.said.push(payload + ":stale"),
        }
    }

    fn finish(&mut self, name: &str, verdict: Verdict) {
        let turn = self.running.remove(name).unwrap_or_else(|| panic!("{name} is not running"));
        let ending = self.table.finish(&turn, verdict);
        let plain = match verdict {
            Verdict::Done => Some(Ending::Done),
            Verdict::Failed => Some(Ending::Failed),
            _ => None,
        };
        if ending != plain {
            let ending = ending.expect("a run that ends otherwise still ends");
            let text = self.ending(name, ending);
            self.said.push(text);
        }
    }

    fn collect(&mut self) {
        let mut outbox = Outbox::default();
        self.table.swap_outbox(&mut outbox);
        for ended in outbox.ended {
            let text = self.ending(&ended.payload, ended.ending);
            self.said.push(text);
        }
    }

    fn ending(&self, name: &str, ending: Ending) -> String {
        match ending {
            Ending::Superseded { by } => format!("{name}:superseded({})", self.names[&by]),
            other => format!("{name}:{other:?}").to_lowercase(),
        }
    }

    fn id(&self, name: &str) -> ItemId {
        *self.names.iter().find(|(_, known)| *known == name).expect("a known item").0
    }
}

fn tick(text: &str) -> Tick {
    Tick::from_micros(text.parse().expect("a moment"))
}

#[track_caller]
fn check_with(settings: Settings, script: &str, expected: &str) -> Bench {
    let mut bench = Bench::new(settings);
    assert_eq!(bench.play(script), expected, "{script}");
    bench
}

#[track_caller]
fn check(script: &str, expected: &str) -> Bench {
    check_with(Settings::default(), script, expected)
}

fn latest() -> Settings {
    Settings { mode: Mode::Latest, ..Settings::default() }
}

/// One run at a time, so that the order of starts shows the choice.
fn narrow() -> Settings {
    Settings { concurrency: 1, quantum: 1, ageing: 0, ..Settings::default() }
}

#[track_caller]
fn check_latest(script: &str, expected: &str) -> Bench {
    check_with(latest(), script, expected)
}

#[test]
fn second_item_of_a_lane_waits_for_the_first() {
    check("+a1 +a2", "a1");
    check("+a1 +a2 -a1", "a1 a2");
    check("+a1 +a2 xa1", "a1 a2");
}

#[test]
fn lanes_run_side_by_side() {
    check("+a1 +b1 +a2 +c1 -b1", "a1 b1 c1");
}

#[test]
fn retried_head_keeps_its_place() {
    check("+a1 +a2 ra1@5 @4", "a1");
    check("+a1 +a2 ra1@5 @5 -a1", "a1 a1 a2");
    let bench = check("+a1 ra1@5 @5 ra1@9 @9", "a1 a1 a1");
    assert_eq!(bench.running["a1"].attempt, 3);
}

#[test]
fn lane_is_started_out_of_its_turn_unless_it_runs_or_is_paused() {
    check("+a1 +a2 ra1@5 *a @5 -a1", "a1 a1 a2");
    check("+a1 +a2 *a", "a1");
    check("=a +a1 *a *b", "");
    check("+a1 pa1 *a -a1", "a1 a1");
}

#[test]
fn parked_head_stays_until_resumed_or_cancelled() {
    check("+a1 +a2 pa1 @99", "a1");
    check("+a1 +a2 pa1 ^a -a1", "a1 a1 a2");
    check("+a1 +a2 pa1 !a1", "a1 a1:cancelled a2");
}

#[test]
fn paused_lane_starts_nothing_and_others_go_on() {
    check("=a +a1 +b1 -b1", "b1");
    check("=a +a1 +b1 ^a", "b1 a1");
    check("+a1 =a +a2 -a1", "a1");
    let bench = check("=a ^a", "");
    assert_eq!(bench.table.snapshot().lanes, 0, "a resumed lane without items is gone");
}

#[test]
fn cancel_ends_what_waits_and_asks_what_runs_to_stop() {
    check("+a1 +a2 +a3 !a sa1", "a1 a1:stop a2:cancelled a3:cancelled a1:cancelled");
    check("+a1 !a -a1", "a1 a1:stop");
    check("+a1 !a ra1@5", "a1 a1:stop a1:cancelled");
    check("+a1 +a2 +a3 !a2 -a1", "a1 a2:cancelled a3");
    check("+a1 ra1@5 +a2 !a1", "a1 a1:cancelled a2");
}

#[test]
fn item_not_started_in_time_expires_wherever_it_stands() {
    check("+a1 +a2:t5 +a3 @5 -a1", "a1 a2:expired a3");
    check("=a +a1:t5 @4 @5", "a1:expired");
    check("+a1:t5 @9", "a1");
    let bench = check("+a1:t5 ra1@8 @7 @8", "a1 a1");
    assert_eq!(bench.table.next_due(), None, "a started item does not expire");
}

#[test]
fn priority_chooses_between_heads() {
    check_with(narrow(), "+z1 +a1:b +b1 +c1:h +d1:u -z1 -d1 -c1 -b1", "z1 d1 c1 b1 a1");
}

#[test]
fn urgent_push_lifts_its_whole_lane_until_it_has_started() {
    check_with(narrow(), "+z1 +a1 +b1 +b2:u +b3 -z1 -b1 -b2 -a1", "z1 b1 b2 a1 b3");
}

#[test]
fn lanes_of_one_priority_take_turns() {
    check_with(narrow(), "+a1 +a2 +a3 +b1 +b2 +c1 -a1 -b1 -c1 -a2 -b2", "a1 b1 c1 a2 b2 a3");
}

#[test]
fn hot_lane_yields_after_its_quantum() {
    let settings = Settings { quantum: 2, ..narrow() };
    check_with(settings, "+a1 +a2 +a3 +a4 +b1 -a1 -a2 -b1 -a3", "a1 a2 b1 a3 a4");
}

#[test]
fn ageing_serves_the_longest_waiting_lane_now_and_then() {
    let settings = Settings { ageing: 3, ..narrow() };
    check_with(settings, "+z1 +a1:b +b1:u +c1:u +d1:u -z1 -b1 -a1 -c1", "z1 b1 a1 c1 d1");
    check_with(narrow(), "+z1 +a1:b +b1:u +c1:u +d1:u -z1 -b1 -c1 -d1", "z1 b1 c1 d1 a1");
}

#[test]
fn concurrency_cap_holds_over_all_lanes() {
    let settings = Settings { concurrency: 2, ..Settings::default() };
    check_with(settings, "+a1 +b1 +c1 +d1 -b1", "a1 b1 c1");
}

#[test]
fn stale_generation_never_runs() {
    check_latest("+a1:g5 -a1 +a2:g3", "a1 a2:stale");
    check_latest("+a1:g5 +a2:g3", "a1 a2:stale");
    check_latest("+a1:g5 xa1 +a2:g4", "a1 a2:stale");
}

#[test]
fn newest_wins_and_the_rest_is_superseded() {
    check_latest("+a1 +a2 +a3 +a4 -a1", "a1 a2:superseded(a3) a3:superseded(a4) a4");
    check_latest("+a1:g1 +a2:g7 +a3:g7 -a1", "a1 a2:superseded(a3) a3");
}

#[test]
fn generation_left_out_is_one_more_than_the_newest_accepted() {
    let bench = check_latest("+a1:g7 -a1 +a2", "a1 a2");
    assert_eq!(bench.running["a2"].version.generation, 8);
    let bench = check_latest("+a1", "a1");
    assert_eq!(bench.running["a1"].version.generation, 1);
}

#[test]
fn version_already_done_is_superseded_and_one_that_failed_runs() {
    check_latest("+a1:g5 -a1 +a2:g5", "a1 a2:superseded(a1)");
    check_latest("+a1:g5 xa1 +a2:g5", "a1 a2");
    check_latest("+a1:g5 +a2:g5 -a1", "a1 a2:superseded(a1)");
    check_latest("+a1:g5 +a2:g5 xa1", "a1 a2");
}

#[test]
fn delete_is_terminal_for_its_incarnation() {
    check_latest("+a1:g5 +a2:g5,d +a3:g5 -a1", "a1 a3:stale a2");
    check_latest("+a1:g5,d -a1 +a2:g6", "a1 a2:stale");
    check_latest("+a1:g5,d -a1 +a2 +a3:d", "a1 a2:stale a3:stale");
    check_latest("+a1:g5 -a1 +a2:g5,d", "a1 a2");
}

#[test]
fn recreated_object_starts_afresh() {
    check_latest("+a1:g9,d -a1 +a2:g1,i1", "a1 a2");
    check_latest("+a1:g9,i4 -a1 +a2:g50,i3 +a3:g1,i5", "a1 a2:stale a3");
}

#[test]
fn newer_push_replaces_a_head_in_back_off_parked_or_paused() {
    let bench = check_latest("+a1 ra1@50 +a2", "a1 a1:superseded(a2) a2");
    assert_eq!(bench.running["a2"].attempt, 1, "attempts start from zero");
    assert_eq!(bench.table.next_due(), None);
    check_latest("+a1 pa1 +a2", "a1 a1:superseded(a2) a2");
    check_latest("=a +a1 +a2 ^a", "a1:superseded(a2) a2");
}

#[test]
fn retry_while_a_newer_one_waits_ends_superseded() {
    check_latest("+a1 +a2 ra1@5", "a1 a1:superseded(a2) a2");
    check_latest("+a1 +a2 pa1", "a1 a1:superseded(a2) a2");
}

#[test]
fn running_item_is_not_interrupted_unless_asked_for() {
    check_latest("+a1 +a2", "a1");
    let settings = Settings { supersede_running: true, ..latest() };
    check_with(settings.clone(), "+a1 +a2 +a3 sa1", "a1 a1:stop a2:superseded(a3) a1:superseded(a3) a3");
    check_with(settings.clone(), "+a1 +a2 -a1", "a1 a1:stop a2");
    check_with(settings, "+a1:g5 +a2:g5 xa1", "a1 a2");
}

#[test]
fn last_done_is_shown_and_failure_does_not_count_as_done() {
    let bench = check_latest("+a1:g1 -a1 +a2:g2 xa2 +a3:g3", "a1 a2 a3");
    let last = bench.running["a3"].last_done.as_ref().expect("a1 was done");
    assert_eq!((last.version.generation, last.payload.as_deref()), (1, Some("a1")));
    let forgetful = Settings { keep_last: false, ..latest() };
    let bench = check_with(forgetful, "+a1 -a1 +a2", "a1 a2");
    let last = bench.running["a2"].last_done.as_ref().expect("a1 was done");
    assert_eq!(last.payload, None);
}

#[test]
fn only_so_many_idle_keys_are_remembered_and_the_oldest_is_forgotten_first() {
    let settings = Settings { remember: 2, ..latest() };
    let bench = check_with(
        settings,
        "+a1:g5 +b1:g5 +c1:g5 -a1 -b1 -c1 +b2:g1 +c2:g1 +a2:g1",
        "a1 b1 c1 b2:stale c2:stale a2",
    );
    assert_eq!(bench.table.snapshot().remembered, 2);
}

#[test]
fn lane_is_gone_when_nothing_is_left_of_it() {
    let bench = check("+a1 +b1 +b2 -a1 -b1 -b2", "a1 b1 b2");
    assert_eq!(bench.table.snapshot().lanes, 0);
    assert!(bench.table.is_empty());
}

#[test]
fn every_waiting_lane_has_exactly_one_reason() {
    let settings = Settings { concurrency: 2, ..Settings::default() };
    let mut bench = check_with(settings, "+a1 +a2 +a3 +b1 +c1 =d +d1", "a1 b1");
    let (first, second, third) = (bench.id("a1"), bench.id("a2"), bench.id("a3"));
    assert_eq!(bench.table.why(&'a'), Why::Behind { id: first, since: Some(Tick::START) });
    assert_eq!(bench.table.why_item(&'a', third), Why::Behind { id: first, since: Some(Tick::START) });
    assert_eq!(bench.table.why(&'c'), Why::AtConcurrency { limit: 2 });
    assert_eq!(bench.table.why(&'d'), Why::Paused);
    assert_eq!(bench.table.why(&'e'), Why::Idle);
    bench.play("-b1 ra1@9");
    assert_eq!(bench.table.why(&'a'), Why::RetryAt { id: first, at: tick("9"), attempts: 1 });
    assert_eq!(bench.table.why_item(&'a', second), Why::Behind { id: first, since: None });
    bench.play("@9 pa1");
    assert_eq!(bench.table.why(&'a'), Why::Parked { id: first });
    let running = Why::Running { id: bench.id("c1"), since: Tick::START, attempt: 1 };
    assert_eq!(bench.table.why(&'c'), running);
}

#[test]
fn room_is_given_back_after_many_keys() {
    let mut table: Table<u32, u32> = Table::new(Settings { concurrency: usize::MAX, ..Settings::default() });
    table.push(Arrival::new(u32::MAX, 0));
    let pinned = table.start(Tick::START).expect("a head");
    table.pause(u32::MAX - 1);
    for round in 0..3 {
        let keys = 100_000;
        for key in 0..keys {
            table.push(Arrival::new(key, key));
        }
        let turns: Vec<_> = std::iter::from_fn(|| table.start(Tick::START)).collect();
        assert_eq!(turns.len(), keys as usize);
        turns.iter().for_each(|turn| assert_eq!(table.finish(turn, Verdict::Done), Some(Ending::Done)));
        let snapshot = table.snapshot();
        assert_eq!((snapshot.lanes, snapshot.running, snapshot.paused), (2, 1, 1), "round {round}");
        assert!(snapshot.room < 4_096, "round {round}: room for {} lanes is left", snapshot.room);
    }
    assert_eq!(
        table.finish(&pinned, Verdict::Done),
        Some(Ending::Done),
        "a turn survives its lane being moved"
    );
}

/// A key that cannot be hashed or compared any more once the switch is on.
#[derive(Clone)]
struct Touchy(u32, std::rc::Rc<std::cell::Cell<bool>>);

impl Touchy {
    fn check(&self) {
        assert!(!self.1.get(), "the key was asked");
    }
}

impl std::hash::Hash for Touchy {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.check();
        self.0.hash(state);
    }
}

impl PartialEq for Touchy {
    fn eq(&self, other: &Self) -> bool {
        self.check();
        self.0 == other.0
    }
}

impl Eq for Touchy {}

#[test]
fn finishing_a_turn_whose_lane_was_moved_does_not_ask_the_key() {
    let broken = std::rc::Rc::new(std::cell::Cell::new(false));
    let mut table = Table::new(Settings::default());
    for number in 0..64 {
        table.push(Arrival::new(Touchy(number, std::rc::Rc::clone(&broken)), number));
    }
    let mut turns: Vec<_> = std::iter::from_fn(|| table.start(Tick::START)).collect();
    let last = turns.pop().expect("64 lanes may run");
    // Most lanes go, so that the shelf is compacted and the last lane moves.
    for turn in &turns {
        assert_eq!(table.finish(turn, Verdict::Done), Some(Ending::Done));
    }
    broken.set(true);
    assert_eq!(table.finish(&last, Verdict::Done), Some(Ending::Done));
}
