//! The model that a history is judged by, and what was found to be wrong.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use laneway_core::store::{Emit, JobEnd};
use laneway_core::{Event, EventId, Key, LaneName, Seat, Shard, Steady};

use super::cluster::ClusterModel;
use super::runs::Going;
use super::seats::SeatModel;
use super::shards::Scheduled;
use crate::check::Violation;
use crate::sim::life::{Skew, TrueNow};
use crate::sim::options::Options;
use crate::sim::record::Record;

/// After so many nobody reads on.
const VIOLATIONS_MAX: usize = 20;

/// The model, and what was found to be wrong.
#[derive(Clone)]
pub(crate) struct Judge {
    pub(super) options: Options,
    violations: Vec<Violation>,
    happened: BTreeMap<&'static str, u64>,
    pub(super) lives: BTreeMap<u32, Lived>,
    pub(super) calm: bool,
    /// Every event that ever joined a lane.
    pub(super) events: BTreeMap<Shard, BTreeMap<EventId, Event>>,
    /// Lanes of each shard, in order.
    pub(super) lanes: BTreeMap<(Shard, Key), Vec<EventId>>,
    /// Data that somebody tried to append, and where it was found.
    pub(super) tried: BTreeMap<Bytes, Option<(Shard, EventId)>>,
    pub(super) acked: Vec<(Shard, EventId, Bytes)>,
    /// Events that the store has lost.
    pub(super) lost: BTreeSet<(Shard, EventId)>,
    /// Emits that may arrive twice, because the store lost that they had arrived.
    pub(super) may_double: BTreeSet<Bytes>,
    /// Numbers of origins that were taken as new.
    pub(super) origins: BTreeSet<String>,
    pub(super) scheduled: BTreeMap<Bytes, Scheduled>,
    pub(super) tickets: BTreeMap<(Shard, u64), Bytes>,
    pub(super) seats: BTreeMap<Seat, SeatModel>,
    pub(super) ends: BTreeMap<(Shard, EventId), JobEnd>,
    /// Jobs whose ends may be gone.
    pub(super) forgotten: BTreeSet<(Shard, EventId)>,
    /// Emits of accepted commits, in order.
    pub(super) emits: Vec<(Seat, Emit)>,
    pub(super) runs: BTreeMap<u64, Going>,
    pub(super) starts: BTreeMap<(Seat, EventId), u32>,
    pub(super) helped: BTreeSet<(Seat, LaneName)>,
    /// Requests that help every lane of a seat, until they are applied.
    pub(super) help_for_all: BTreeMap<Seat, u64>,
    /// Events that somebody asked to end.
    pub(super) unwanted: BTreeSet<(Seat, EventId)>,
    pub(super) cluster: ClusterModel,
}

/// What is known of one life of the process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lived {
    pub(super) dead: bool,
    pub(super) died_at: Steady,
    /// How the clocks of its machine go wrong.
    pub(super) skew: Skew,
}

impl Judge {
    pub(crate) fn new(options: Options) -> Self {
        let skewed = options.is_skewed().then_some(("world with skewed clocks", 1));
        Self {
            options,
            violations: Vec::new(),
            happened: skewed.into_iter().collect(),
            lives: BTreeMap::new(),
            calm: false,
            events: BTreeMap::new(),
            lanes: BTreeMap::new(),
            tried: BTreeMap::new(),
            acked: Vec::new(),
            lost: BTreeSet::new(),
            may_double: BTreeSet::new(),
            origins: BTreeSet::new(),
            scheduled: BTreeMap::new(),
            tickets: BTreeMap::new(),
            seats: BTreeMap::new(),
            ends: BTreeMap::new(),
            forgotten: BTreeSet::new(),
            emits: Vec::new(),
            runs: BTreeMap::new(),
            starts: BTreeMap::new(),
            helped: BTreeSet::new(),
            help_for_all: BTreeMap::new(),
            unwanted: BTreeSet::new(),
            cluster: ClusterModel::default(),
        }
    }

    pub(crate) fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// How often each interesting thing happened.
    pub(crate) fn happened(&self) -> Vec<(&'static str, u64)> {
        self.happened.iter().map(|(what, count)| (*what, *count)).collect()
    }

    pub(crate) fn hit(&mut self, what: &'static str) {
        *self.happened.entry(what).or_default() += 1;
    }

    pub(super) fn report(&mut self, invariant: &'static str, detail: String) {
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(Violation { invariant, detail });
        }
    }

    /// Judges one thing that happened.
    pub(crate) fn step(&mut self, now: TrueNow, record: &Record) {
        match record {
            Record::Began { life, skew } => {
                self.disturb(now);
                self.lives.insert(*life, Lived { skew: *skew, ..Lived::default() });
            }
            Record::Died { life, why } => self.died(now, *life, why),
            Record::NotStarted { .. } => self.hit("could not start"),
            Record::Drained { .. } => self.hit("drained"),
            Record::CutOff { .. } => self.hit("node cut off"),
            Record::Frozen { .. } => self.hit("node frozen"),
            // The model goes back with the store.
            Record::FailedOver { .. } => {}
            Record::ClockSet { life, by_micros } => self.set_clock(*life, *by_micros),
            Record::Calm => {
                self.disturb(now);
                self.calm = true;
            }
            Record::Lifted { .. } => self.disturb(now),
            Record::Fault { .. } => self.hit("fault"),
            Record::Append { by, append, answer } => self.append(now, *by, append, answer),
            Record::Acked { append, receipts, .. } => self.acknowledge(append, receipts),
            Record::Joined { shard, events } => self.join(now, *shard, events),
            Record::Seize { by, seize, answer } => self.seize(now, *by, seize, answer),
            Record::Commit { by, commit, answer } => self.commit(now, *by, commit, answer),
            Record::Document { by, name, change, answer } => {
                if answer.is_ok() {
                    self.document(now, *by, name, *change);
                }
            }
            Record::Request { request, answer, .. } => self.request(request, answer),
            Record::EndSeen { shard, number, end, result, .. } => {
                self.end_seen(*shard, *number, end, result.as_ref());
            }
            Record::Forgot { shard, number, .. } => self.forget(*shard, *number),
            Record::CancelledScheduled { shard, ticket, .. } => self.cancel_scheduled(*shard, *ticket),
            Record::Start { life, run, seat, lanes, remote } => {
                self.start(now, *life, *run, *seat, lanes, *remote);
            }
            Record::End { run, .. } => drop(self.runs.remove(run)),
        }
    }

    fn set_clock(&mut self, life: u32, by_micros: i64) {
        self.hit("wall clock set");
        let lived = self.lives.entry(life).or_default();
        lived.skew = lived.skew.set_by(by_micros);
    }

    fn died(&mut self, now: TrueNow, life: u32, why: &'static str) {
        let lived = self.lives.entry(life).or_default();
        (lived.dead, lived.died_at) = (true, now.steady);
        self.runs.retain(|_, going| going.life != life || going.remote);
        self.hit(match why {
            "between the effect of a call and its answer" => "crash between effect and answer",
            "a handler ended the process" => "killed by a handler",
            "drained" | "the end of the run" => "stopped",
            _ => "crash",
        });
    }

    pub(super) fn is_dead(&self, life: u32) -> bool {
        self.lives.get(&life).is_some_and(|lived| lived.dead)
    }
}
