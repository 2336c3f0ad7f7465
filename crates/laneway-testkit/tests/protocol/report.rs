//! Runs a model to its end and says what came of it, in lines that can be quoted.
//!
//! A check that cannot fail shows nothing. So every model has `sometimes` properties, which must be seen, and planted
//! bugs, each of which must break the property that is there for it.

use std::collections::BTreeSet;
use std::fmt::{Debug, Write};
use std::hash::Hash;
use std::time::Duration;

use stateright::{Checker, Expectation, HasDiscoveries, Model, Path};

use crate::seam::timed;

/// As many as the machine that this must run on has cores.
const THREADS: usize = 2;
/// Set, the steps to every planted bug are printed.
const TRACE: &str = "LANEWAY_PROTOCOL_TRACE";

/// What came of the checks of one model.
#[derive(Default)]
pub(crate) struct Report {
    rows: Vec<String>,
    states: usize,
    took: Duration,
    unseen: BTreeSet<&'static str>,
    seen: BTreeSet<&'static str>,
    found: usize,
}

impl Report {
    /// Searches a model that must hold, to its bounds.
    pub(crate) fn holds<M>(&mut self, bounds: &str, model: M)
    where
        M: Model + Send + Sync + 'static,
        M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
        M::Action: Clone + Debug + PartialEq,
    {
        let (checker, took) = timed(|| {
            model.checker().threads(THREADS).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join()
        });
        let mut discoveries = checker.discoveries();
        for property in checker.model().properties() {
            match (property.expectation, discoveries.remove(property.name)) {
                (Expectation::Sometimes, Some(_)) => self.seen.insert(property.name),
                (Expectation::Sometimes, None) => self.unseen.insert(property.name),
                (_, Some(path)) => panic!("{bounds}: broken: {}\n{}", property.name, steps(path)),
                (_, None) => false,
            };
        }
        let (states, depth) = (checker.unique_state_count(), checker.max_depth());
        self.states += states;
        self.took += took;
        let seconds = took.as_secs_f64();
        self.rows
            .push(format!("  {bounds:<56} {states:>9} states, depth {depth:>2}, {seconds:>4.1} s: holds"));
    }

    /// Searches a model with a bug until this property is broken, which it must be.
    pub(crate) fn finds<M>(&mut self, bug: impl Debug, property: &'static str, model: M)
    where
        M: Model + Send + Sync + 'static,
        M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
        M::Action: Clone + Debug + PartialEq,
    {
        let until = HasDiscoveries::AnyOf(BTreeSet::from([property]));
        // By one thread, the first that is found is a shortest one.
        let (checker, took) = timed(|| model.checker().finish_when(until).spawn_bfs().join());
        let states = checker.unique_state_count();
        let Some(path) = checker.discovery(property) else {
            panic!("{bug:?} is planted, and {property:?} holds in all {states} states");
        };
        self.found += 1;
        self.took += took;
        let (name, length) = (format!("{bug:?}"), path.clone().into_actions().len());
        let seconds = took.as_secs_f64();
        self.rows.push(format!(
            "  {name:<26} {states:>7} states, {length:>2} steps, {seconds:>4.1} s: breaks {property:?}"
        ));
        if std::env::var_os(TRACE).is_some() {
            self.rows.push(steps(path));
        }
    }

    /// The summary. Whatever must have happened was seen within some of the bounds, or the checks showed nothing.
    pub(crate) fn end(self, name: &str, planted: usize) -> String {
        let never: Vec<_> = self.unseen.difference(&self.seen).collect();
        assert!(never.is_empty(), "{name}: it never happened that {never:?}: the check shows nothing");
        let Self { rows, states, took, found, seen, .. } = self;
        assert_eq!(found, planted, "{name}: bugs found");
        format!(
            "{name}: {states} states, {} rare things seen, planted bugs found {found} of {planted}, {:.1} s\n{}",
            seen.len(),
            took.as_secs_f64(),
            rows.join("\n")
        )
    }
}

/// The way to a state, one action per line, and the state.
fn steps<S: Debug, A: Debug + Clone>(path: Path<S, A>) -> String {
    let steps = path.into_vec();
    let mut text = String::new();
    for (number, (_, action)) in steps.iter().enumerate() {
        if let Some(action) = action {
            writeln!(text, "    {:>2}. {action:?}", number + 1).expect("a text takes every line");
        }
    }
    if let Some((state, _)) = steps.last() {
        writeln!(text, "    then: {state:?}").expect("a text takes every line");
    }
    text
}
