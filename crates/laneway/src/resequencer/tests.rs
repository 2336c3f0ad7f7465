//! Any order, any repeats, any loss: every lane comes out in order, once, and within bounds.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const WAIT_US: u64 = 10;

/// One event of a history: its item is its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sent {
    lane: u8,
    prev: Option<EventId>,
    id: EventId,
}

/// A partition's log: the lane of every id from 1 on.
fn history(lanes: &[u8]) -> Vec<Sent> {
    let mut last = BTreeMap::new();
    let events = lanes.iter().zip(1..).map(|(&lane, id)| {
        let id = EventId(id);
        Sent { lane, prev: last.insert(lane, id), id }
    });
    events.collect()
}

/// A consumer under test, and what it applied.
struct Consumer {
    lanes: Resequencer<u8, EventId>,
    settings: Settings,
    applied: Vec<(u8, EventId)>,
    now: Steady,
}

impl Consumer {
    fn new(settings: Settings) -> Self {
        Self { lanes: Resequencer::new(settings), settings, applied: Vec::new(), now: Steady(0) }
    }

    fn offer(&mut self, event: Sent) {
        let verdict = self.lanes.offer(&event.lane, event.prev, event.id, event.id, self.now);
        self.applied.extend(verdict.ready().map(|id| (event.lane, id)));
        self.check_bounds();
    }

    fn check_bounds(&self) {
        let lens: Vec<usize> = self.lanes.gaps.values().map(Gap::held_len).collect();
        assert_eq!(self.lanes.held_len(), lens.iter().sum::<usize>());
        assert!(self.lanes.held_len() <= self.settings.held_max);
        assert!(lens.iter().all(|len| *len <= self.settings.held_per_lane_max));
        assert!(self.lanes.last.len() <= self.settings.lanes_max);
        assert_eq!(self.lanes.deadlines.len(), self.lanes.gaps.len());
    }

    fn applied_in(&self, lane: u8) -> Vec<EventId> {
        self.applied.iter().filter(|(applied, _)| *applied == lane).map(|(_, id)| *id).collect()
    }
}

fn settings() -> Settings {
    Settings { wait: Duration::from_micros(WAIT_US), ..Settings::default() }
}

fn ids_of(lane: u8, events: &[Sent]) -> Vec<EventId> {
    events.iter().filter(|event| event.lane == lane).map(|event| event.id).collect()
}

/// A log of up to four lanes, and its events in any order, most of them once, some of them up to three times.
fn shuffled() -> impl Strategy<Value = (Vec<Sent>, Vec<Sent>)> {
    let lanes = prop::collection::vec((0_u8..4, 1_usize..4), 1..40);
    lanes.prop_flat_map(|chosen| {
        let lanes: Vec<u8> = chosen.iter().map(|(lane, _)| *lane).collect();
        let log = history(&lanes);
        let copies = log.iter().zip(&chosen).flat_map(|(event, (_, count))| vec![*event; *count]);
        let copies: Vec<Sent> = copies.collect();
        (Just(log), Just(copies).prop_shuffle())
    })
}

/// The same with some events of the log never sent.
fn shuffled_with_losses() -> impl Strategy<Value = (Vec<Sent>, Vec<Sent>)> {
    (shuffled(), prop::collection::vec(prop::bool::weighted(0.3), 40)).prop_map(|((log, arrivals), lost)| {
        let is_sent = |event: &Sent| !lost[usize::try_from(event.id.0).expect("a short log") - 1];
        (log, arrivals.into_iter().filter(is_sent).collect())
    })
}

proptest! {
    #[test]
    fn any_order_with_repeats_comes_out_in_order_once((log, arrivals) in shuffled()) {
        let mut consumer = Consumer::new(settings());
        for event in arrivals {
            consumer.offer(event);
        }
        for lane in 0..4 {
            prop_assert_eq!(consumer.applied_in(lane), ids_of(lane, &log));
        }
        prop_assert_eq!((consumer.lanes.held_len(), consumer.lanes.next_due()), (0, None));
    }

    #[test]
    fn a_late_joiner_gets_all_from_its_first_event_on((log, arrivals) in shuffled()) {
        let mut consumer = Consumer::new(Settings { join: Join::FirstIsBase, ..settings() });
        for event in &arrivals {
            consumer.offer(*event);
        }
        for lane in 0..4 {
            let base = arrivals.iter().find(|event| event.lane == lane).map(|event| event.id);
            let wanted: Vec<EventId> =
                ids_of(lane, &log).into_iter().filter(|id| base.is_some_and(|base| *id >= base)).collect();
            prop_assert_eq!(consumer.applied_in(lane), wanted);
        }
    }

    #[test]
    fn what_is_lost_or_refused_is_named_within_its_wait((log, arrivals) in shuffled_with_losses(), small in 1_usize..4) {
        let mut consumer =
            Consumer::new(Settings { held_max: 2 * small, held_per_lane_max: small, ..settings() });
        let mut known_at: BTreeMap<EventId, Steady> = BTreeMap::new();
        let mut named_at: BTreeMap<EventId, Steady> = BTreeMap::new();
        let quiet = vec![None; usize::try_from(WAIT_US).expect("short")];
        for arrival in arrivals.iter().map(Some).chain(quiet) {
            if let Some(event) = arrival {
                consumer.offer(*event);
                for id in ids_of(event.lane, &log).into_iter().filter(|id| *id < event.id) {
                    known_at.entry(id).or_insert(consumer.now);
                }
            }
            consumer.now = consumer.now.after(Duration::from_micros(1));
            for missing in consumer.lanes.due(consumer.now) {
                let ids = ids_of(missing.key, &log).into_iter();
                for id in ids.filter(|id| missing.after < *id && *id < missing.before) {
                    named_at.entry(id).or_insert(consumer.now);
                }
            }
        }
        let applied: BTreeSet<EventId> = consumer.applied.iter().map(|(_, id)| *id).collect();
        for (id, known) in known_at.iter().filter(|(id, _)| !applied.contains(id)) {
            let lane = log.iter().find(|event| event.id == *id).expect("from the log").lane;
            let held = consumer.lanes.gaps.get(&lane).is_some_and(|gap| gap.holds(*id));
            let in_time = named_at.get(id).is_some_and(|named| *named <= known.after(Duration::from_micros(WAIT_US)));
            prop_assert!(held || in_time, "{id} was known at {known:?} and named at {:?}", named_at.get(id));
        }
    }

    #[test]
    fn fetching_what_is_named_completes_every_lane_within_the_bounds(
        (log, arrivals) in shuffled_with_losses(),
        small in 1_usize..4,
    ) {
        let mut consumer =
            Consumer::new(Settings { held_max: small, held_per_lane_max: small.min(2), ..settings() });
        for event in &arrivals {
            consumer.offer(*event);
        }
        for _ in 0..=log.len() {
            consumer.now = consumer.now.after(Duration::from_micros(WAIT_US));
            for missing in consumer.lanes.due(consumer.now) {
                let wanted = log.iter().filter(|event| {
                    event.lane == missing.key && missing.after < event.id && event.id < missing.before
                });
                wanted.for_each(|event| consumer.offer(*event));
            }
        }
        for lane in 0..4 {
            let newest = arrivals.iter().filter(|event| event.lane == lane).map(|event| event.id).max();
            let known = ids_of(lane, &log).into_iter().filter(|id| newest.is_some_and(|newest| *id <= newest));
            prop_assert_eq!(consumer.applied_in(lane), known.collect::<Vec<_>>());
        }
        prop_assert_eq!((consumer.lanes.held_len(), consumer.lanes.next_due()), (0, None));
    }
}

/// The control: a consumer that only compares ids fails what the properties above ask for.
#[test]
fn a_consumer_that_only_compares_ids_loses_what_was_overtaken() {
    let log = history(&[0, 0, 0]);
    let (mut last, mut applied) = (EventId(0), Vec::new());
    for event in [log[0], log[2], log[1]] {
        if event.id > last {
            last = event.id;
            applied.push(event.id);
        }
    }
    assert_ne!(applied, ids_of(0, &log));
}

/// Steps are `prev>id`, 0 for no prev; expected is what each step hands out.
#[track_caller]
fn check(lanes: &mut Resequencer<u8, u64>, steps: &str, expected: &str) {
    let mut found = Vec::new();
    for step in steps.split(' ') {
        let (prev, id) = step.split_once('>').expect("prev>id");
        let prev = Some(prev.parse().expect("a number")).filter(|prev| *prev > 0).map(EventId);
        let id: u64 = id.parse().expect("a number");
        found.extend(lanes.offer(&0, prev, EventId(id), id, Steady(0)).ready().map(|id| id.to_string()));
    }
    assert_eq!(found.join(" "), expected);
}

#[test]
fn an_event_without_prev_above_the_last_is_a_new_start() {
    let mut lanes = Resequencer::new(settings());
    check(&mut lanes, "0>3 3>5", "3 5");
    assert_eq!(lanes.offer(&0, None, EventId(9), 9, Steady(0)), Verdict::NewStart { item: 9, freed: vec![] });
    check(&mut lanes, "9>12 5>7", "12");
}

#[test]
fn a_store_that_lost_a_delivered_tail_goes_on_as_a_new_start() {
    let mut lanes = Resequencer::new(settings());
    check(&mut lanes, "0>3 3>5", "3 5");
    let forked = lanes.offer(&0, Some(EventId(3)), EventId(1_000), 1_000, Steady(0));
    assert_eq!(forked, Verdict::NewStart { item: 1_000, freed: vec![] });
}

#[test]
fn a_new_start_waits_behind_known_events_that_were_not_applied() {
    check(&mut Resequencer::new(settings()), "0>3 5>7 0>9 3>5", "3 5 7 9");
    let refusing = Settings { held_max: 0, ..settings() };
    check(&mut Resequencer::new(refusing), "0>3 5>7 0>9 3>5 5>7 0>9", "3 5 7 9");
}

#[test]
fn a_given_position_makes_earlier_events_duplicates_and_later_ones_gaps() {
    let mut lanes = Resequencer::new(settings());
    lanes.start_from(0, EventId(5)).expect("there is room");
    check(&mut lanes, "0>3 3>5 7>9 5>7", "7 9");
    assert_eq!(lanes.positions().collect::<Vec<_>>(), [(&0, EventId(9))]);
    lanes.start_from(0, EventId(20)).expect("a known lane needs no room");
    assert_eq!(lanes.last(&0), Some(EventId(9)));
}

#[test]
fn passing_over_trimmed_events_sets_free_what_waited_for_them() {
    let mut lanes = Resequencer::new(settings());
    check(&mut lanes, "0>3 5>7 8>9 9>10 11>12", "3");
    assert_eq!(lanes.pass(&0, EventId(9)), [7, 9, 10]);
    check(&mut lanes, "3>5 7>8 10>11", "11 12");
    assert_eq!(lanes.pass(&1, EventId(9)), [0; 0], "an unknown lane waits for nothing");
}

#[test]
fn a_lane_that_waits_is_named_again_after_every_wait() {
    let mut lanes = Resequencer::new(settings());
    check(&mut lanes, "3>7 9>11", "");
    let named = |lanes: &mut Resequencer<u8, u64>, now| {
        lanes.due(Steady(now)).iter().map(|missing| (missing.after.0, missing.before.0)).collect::<Vec<_>>()
    };
    assert_eq!(lanes.next_due(), Some(Steady(WAIT_US)));
    assert_eq!(named(&mut lanes, WAIT_US - 1), []);
    assert_eq!(named(&mut lanes, WAIT_US), [(0, 7), (7, 11)]);
    assert_eq!(named(&mut lanes, WAIT_US + 1), []);
    assert_eq!(named(&mut lanes, 2 * WAIT_US), [(0, 7), (7, 11)]);
}

#[test]
fn what_comes_before_a_refused_event_is_named_with_it() {
    let mut lanes = Resequencer::new(Settings { held_per_lane_max: 1, ..settings() });
    check(&mut lanes, "0>3 5>7 9>12", "3");
    let ranges = lanes.due(Steady(WAIT_US)).into_iter().map(|missing| (missing.after.0, missing.before.0));
    assert_eq!(ranges.collect::<Vec<_>>(), [(3, 7), (7, 13)]);
}

#[test]
fn a_lane_too_many_is_refused_until_another_is_forgotten() {
    let mut lanes = Resequencer::new(Settings { lanes_max: 1, ..settings() });
    check(&mut lanes, "0>1", "1");
    let refused = lanes.offer(&7, None, EventId(2), 2, Steady(0));
    assert_eq!(refused, Verdict::Full { item: 2, bound: Bound::Lanes });
    assert_eq!(lanes.forget(&0), Some(EventId(1)));
    assert_eq!(lanes.offer(&7, Some(EventId(1)), EventId(2), 2, Steady(0)), Verdict::Held);
    assert_eq!(lanes.forget(&7), None, "it waits for something");
}
