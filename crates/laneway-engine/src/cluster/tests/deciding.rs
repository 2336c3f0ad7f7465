//! What a node does about what it saw, moment by moment.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use laneway_core::{ProcessorId, Steady, Term, Timestamp};

use crate::cluster::decide::{Decision, Own, Steps, Watched, Work, decide};
use crate::cluster::documents::{Leader, NodeRecord, NodeToken, Seen, View};
use crate::cluster::node::NodeSettings;

const ME: NodeToken = NodeToken(1);
const OTHER: NodeToken = NodeToken(2);
const LEASE: Duration = Duration::from_secs(10);

/// A moment of a cluster, by both clocks.
struct Moment {
    view: View,
    watched: Watched,
    own: Own,
    now: Steady,
}

fn record(expires: u64) -> NodeRecord {
    NodeRecord {
        name: "other".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        weight: 1,
        standby: false,
        tags: Vec::new(),
        role: "all".to_owned(),
        since: Timestamp(0),
        lease: LEASE,
        expires: Some(Timestamp(expires)),
        leaving: false,
        runs: BTreeSet::from([ProcessorId(1)]),
        asked: BTreeSet::new(),
    }
}

fn seconds(seconds: u64) -> u64 {
    seconds * 1_000_000
}

impl Moment {
    /// This node joined and renewed a second ago, and the other has a lease until the twentieth second.
    fn at(clock: u64) -> Self {
        let own = Own {
            node: ME,
            joined: true,
            since: Some(Timestamp(0)),
            renewed: Some(Steady(seconds(clock.saturating_sub(1)))),
            leaving: false,
        };
        let mine = NodeRecord { name: "me".to_owned(), ..record(seconds(clock + 9)) };
        let nodes = [(ME, mine), (OTHER, record(seconds(20)))];
        let nodes = nodes.map(|(node, record)| (node, Seen { version: 7, content: Some(record) }));
        let view = View { clock: Some(Timestamp(seconds(clock))), nodes: nodes.into(), ..View::default() };
        let now = Steady(seconds(clock));
        let mut watched = Watched::default();
        watched.see(&view, now);
        Self { view, watched, own, now }
    }

    fn led_by(mut self, node: NodeToken) -> Self {
        self.view.leader = Some(Seen { version: 3, content: Some(Leader { node, term: Term(5) }) });
        self
    }

    fn decide(&self) -> Decision {
        let work = Work {
            runs: BTreeSet::from([ProcessorId(1)]),
            asked: BTreeSet::new(),
            processors: BTreeMap::from([(ProcessorId(1), 4)]),
        };
        let settings = NodeSettings::new("me");
        decide(&self.view, &self.own, &settings, &self.watched, &work, self.now)
    }

    fn steps(&self) -> Steps {
        match self.decide() {
            Decision::Steps(steps) => *steps,
            Decision::Fenced => panic!("fenced"),
        }
    }
}

#[test]
fn nothing_is_to_do_while_all_leases_are_fresh() {
    let steps = Moment::at(12).led_by(OTHER).steps();
    assert_eq!(steps, Steps { look_after: Some(Duration::from_secs(8)), ..Steps::default() });
}

#[test]
fn a_lease_is_renewed_after_a_third_of_it_and_counts_from_the_stores_clock() {
    let mut moment = Moment::at(12).led_by(OTHER);
    moment.own.renewed = Some(Steady(seconds(8)));
    let (version, renewed) = moment.steps().renew.unwrap();
    assert_eq!((version, renewed.expires), (Some(7), Some(Timestamp(seconds(22)))));
}

#[test]
fn what_a_node_says_of_itself_is_told_at_once() {
    let mut moment = Moment::at(12).led_by(OTHER);
    moment.own.leaving = true;
    assert!(moment.steps().renew.unwrap().1.leaving);
}

#[test]
fn who_is_gone_or_expired_is_fenced_and_never_revives_its_lease() {
    let mut moment = Moment::at(12).led_by(OTHER);
    moment.view.nodes.get_mut(&ME).unwrap().content.as_mut().unwrap().expires = Some(Timestamp(seconds(12)));
    assert_eq!(moment.decide(), Decision::Fenced);
    moment.view.nodes.remove(&ME);
    assert_eq!(moment.decide(), Decision::Fenced);
    moment.own.joined = false;
    assert!(moment.steps().renew.is_some(), "who has not joined yet joins");
}

#[test]
fn the_dead_are_buried_as_they_were_seen_and_the_living_are_not() {
    assert!(Moment::at(19).led_by(ME).steps().bury.is_empty());
    assert_eq!(Moment::at(20).led_by(ME).steps().bury, [(OTHER, 7)]);
}

#[test]
fn without_a_clock_a_node_is_dead_when_it_was_seen_unchanged_for_a_whole_lease() {
    let mut moment = Moment::at(1).led_by(OTHER);
    moment.view.clock = None;
    moment.now = Steady(seconds(10));
    moment.own.renewed = Some(moment.now);
    assert!(moment.steps().bury.is_empty());
    moment.now = Steady(seconds(11));
    assert_eq!(moment.steps().bury, [(OTHER, 7)]);
    moment.view.nodes.get_mut(&OTHER).unwrap().version = 8;
    moment.watched.see(&moment.view, moment.now);
    assert!(moment.steps().bury.is_empty(), "it was heard of");
}

#[test]
fn who_finds_no_living_leader_leads_with_the_next_term() {
    assert!(Moment::at(12).led_by(OTHER).steps().lead.is_none());
    let lead = Moment::at(20).led_by(OTHER).steps().lead;
    assert_eq!(lead, Some((Some(3), Leader { node: ME, term: Term(6) })));
    assert_eq!(Moment::at(12).steps().lead, Some((None, Leader { node: ME, term: Term(1) })));
    let mut leaving = Moment::at(20).led_by(OTHER);
    leaving.own.leaving = true;
    assert!(leaving.steps().lead.is_none());
}

#[test]
fn only_the_leader_plans_and_only_with_those_who_live_and_stay() {
    assert!(Moment::at(12).led_by(OTHER).steps().plan.is_none());
    let owners = |moment: &Moment| {
        let (_, plan) = moment.steps().plan.expect("the leader plans");
        plan.0[&ProcessorId(1)].iter().flatten().copied().collect::<BTreeSet<_>>()
    };
    let mut moment = Moment::at(12).led_by(ME);
    assert_eq!(owners(&moment), BTreeSet::from([ME, OTHER]));
    assert_eq!(owners(&Moment::at(20).led_by(ME)), BTreeSet::from([ME]));
    moment.view.drained.insert("other".to_owned());
    assert_eq!(owners(&moment), BTreeSet::from([ME]));
    moment.view.drained.clear();
    moment.view.nodes.get_mut(&OTHER).unwrap().content.as_mut().unwrap().leaving = true;
    assert_eq!(owners(&moment), BTreeSet::from([ME]));
}

#[test]
fn a_plan_that_says_the_same_is_not_written_again() {
    let mut moment = Moment::at(12).led_by(ME);
    let (_, plan) = moment.steps().plan.unwrap();
    moment.view.plan = Some(Seen { version: 2, content: Some(plan) });
    assert!(moment.steps().plan.is_none());
}
