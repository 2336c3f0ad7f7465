//! Whole histories: clocks that jump, nodes that die between append and memory, nodes that plan at once with an old
//! memory and another clock. The store is a model of contract 1.1: it accepts only numbers above the highest.

use std::time::Duration;

use laneway_core::Timestamp;
use proptest::prelude::*;
use proptest::sample::select;

use super::clocks::ZONES;
use super::fixture::{at, cron};
use crate::upkeep::schedule::definition::CATCH_UP_MAX;
use crate::upkeep::schedule::{CatchUp, Past, Plan, Spec, Timetable, plan};

const HOUR: i64 = 3600;

/// What a shard knows of the schedule.
#[derive(Default)]
struct Store {
    fired: Vec<Timestamp>,
    refused: usize,
}

impl Store {
    fn append(&mut self, due: Timestamp) {
        if self.fired.last().is_none_or(|last| due > *last) {
            self.fired.push(due);
        } else {
            self.refused += 1;
        }
    }
}

/// A schedule on its way through time.
struct World {
    timetable: Timetable,
    catch_up: CatchUp,
    since: Timestamp,
    store: Store,
}

impl World {
    fn new(spec: &Spec, catch_up: CatchUp) -> Self {
        // A clock has microseconds, cron has none: a schedule does not begin at a due time.
        let since = at("2026-03-28T12:00:00.000001Z");
        Self { timetable: Timetable::new(spec).unwrap(), catch_up, since, store: Store::default() }
    }

    /// One node plans and appends; what must hold for every plan is checked here.
    fn plan(&mut self, last_due: Option<Timestamp>, now: Timestamp) -> Plan {
        let plan = plan(&self.timetable, self.catch_up, Past { since: self.since, last_due }, now);
        assert!(plan.fire.is_sorted_by(|one, other| one < other), "ascending: {plan:?}");
        assert!(plan.fire.len() <= self.limit(), "bounded: {plan:?}");
        for due in &plan.fire {
            assert!(
                *due <= now && last_due.is_none_or(|last| *due > last),
                "old or early: {plan:?} at {now:?}"
            );
            assert_eq!(self.timetable.last_to(*due), Some(*due), "no due time");
            self.store.append(*due);
        }
        assert!(plan.last_due >= last_due, "memory goes back: {plan:?}");
        let settled = plan.last_due.map_or(now, |last| last.max(now));
        assert_eq!(Some(plan.next), self.timetable.after(settled), "silent for longer than needed");
        plan
    }

    fn limit(&self) -> usize {
        match self.catch_up {
            CatchUp::None | CatchUp::Last => 1,
            CatchUp::All { max } => max as usize,
        }
    }
}

/// One thing that happens.
#[derive(Clone, Debug)]
struct Step {
    /// How far the clock moves.
    seconds: i64,
    /// Whether the node dies before it writes down what it did.
    dies: bool,
    /// A second node, its memory from so many steps ago, its clock so many seconds off.
    other: Option<(usize, i64)>,
}

fn any_spec() -> impl Strategy<Value = Spec> {
    let expressions = [
        "* * * * *",
        "*/7 * * * *",
        "30 * * * *",
        "0 */2 * * *",
        "30 2 * * *",
        "0,30 1-3 * * *",
        "15 1,2 * * SUN",
        "0 0 L * *",
        "20 */10 * * * *",
    ];
    let length = (60u64..100_000, 0u64..100_000).prop_map(|(length, anchor)| Spec::Every {
        length: Duration::from_secs(length),
        anchor: Timestamp(at("2026-03-28T00:00Z").0 + anchor * 1_000_000),
    });
    let crons = (select(expressions.to_vec()), select(ZONES.to_vec()));
    prop_oneof![crons.prop_map(|(expression, zone)| cron(expression, zone)), length]
}

fn any_catch_up() -> impl Strategy<Value = CatchUp> {
    prop_oneof![
        Just(CatchUp::None),
        Just(CatchUp::Last),
        (1..CATCH_UP_MAX).prop_map(|max| CatchUp::All { max })
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    let seconds = prop_oneof![
        5 => 0..120i64,
        3 => 0..12 * HOUR,
        2 => -3 * HOUR..0,
        1 => -400 * 24 * HOUR..400 * 24 * HOUR,
    ];
    let other = proptest::option::weighted(0.3, (0usize..5, -2 * HOUR..2 * HOUR));
    (seconds, any::<bool>(), other).prop_map(|(seconds, dies, other)| Step { seconds, dies, other })
}

fn moved(now: Timestamp, seconds: i64) -> Timestamp {
    Timestamp(now.0.saturating_add_signed(seconds * 1_000_000))
}

/// Lives through the steps; the memory is what a node that died left behind.
fn live(world: &mut World, steps: &[Step]) -> (Timestamp, Option<Timestamp>) {
    let mut now = world.since;
    let mut memory = vec![None];
    for step in steps {
        now = moved(now, step.seconds);
        let newest = memory.last().copied().flatten();
        let plan = world.plan(newest, now);
        if let Some((steps_ago, off)) = step.other {
            let old = memory[memory.len().saturating_sub(1 + steps_ago)];
            world.plan(old, moved(now, off));
        }
        memory.push(if step.dies { newest } else { plan.last_due });
    }
    (now, memory.last().copied().flatten())
}

proptest! {
    #[test]
    fn no_due_time_fires_twice(
        spec in any_spec(),
        catch_up in any_catch_up(),
        steps in proptest::collection::vec(any_step(), 1..40),
    ) {
        let mut world = World::new(&spec, catch_up);
        live(&mut world, &steps);
        prop_assert!(world.store.fired.is_sorted_by(|one, other| one < other));
    }

    #[test]
    fn a_node_that_remembers_needs_no_refusal(
        spec in any_spec(),
        catch_up in any_catch_up(),
        mut steps in proptest::collection::vec(any_step(), 1..40),
    ) {
        for step in &mut steps {
            (step.dies, step.other) = (false, None);
        }
        let mut world = World::new(&spec, catch_up);
        live(&mut world, &steps);
        prop_assert_eq!(world.store.refused, 0);
    }

    #[test]
    fn without_jumps_all_fire_exactly_once(
        spec in any_spec(),
        // So far that all minutes of a step can be caught up.
        steps in proptest::collection::vec((0..15 * HOUR, any::<bool>()), 1..40),
    ) {
        let mut world = World::new(&spec, CatchUp::All { max: CATCH_UP_MAX });
        let (mut now, mut memory) = (world.since, None);
        for (seconds, dies) in steps {
            now = moved(now, seconds);
            // The node that takes over from a dead one comes at once.
            if dies {
                world.plan(memory, now);
            }
            memory = world.plan(memory, now).last_due;
        }
        let next = |due: &Timestamp| world.timetable.after(*due);
        let due: Vec<Timestamp> =
            std::iter::successors(next(&world.since), next).take_while(|due| *due <= now).collect();
        prop_assert_eq!(&world.store.fired, &due);
    }

    #[test]
    fn whatever_happened_the_next_time_fires(
        spec in any_spec(),
        catch_up in any_catch_up(),
        steps in proptest::collection::vec(any_step(), 1..40),
    ) {
        let mut world = World::new(&spec, catch_up);
        let (now, memory) = live(&mut world, &steps);
        let plan = world.plan(memory, now);
        let then = world.plan(plan.last_due, plan.next);
        prop_assert_eq!(then.fire, vec![plan.next]);
    }
}

#[test]
fn a_node_that_forgets_would_fire_twice() {
    let mut world = World::new(&cron("* * * * *", "UTC"), CatchUp::Last);
    for seconds in [60, 20, 20] {
        let now = moved(world.since, 60 + seconds);
        world.plan(None, now);
    }
    assert!(world.store.refused > 0, "the model does not see what it is to see");
}
